// SPDX-License-Identifier: Apache-2.0
//
// FunctionExpander: the definition becomes a model-local function, the node a model of one call of
// it, and the importer inlines it like any other.

#include "backends/core/model/function_expander.h"

#include <onnx/onnx_pb.h>

#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "backends/core/model/import.h"
#include "backends/core/model/schema.h"
#include "backends/core/model/type_proto.h"
#include "backends/core/model/versions.h"

namespace onnxifi::model {
namespace {

using base::Code;
using base::Result;
using base::Status;
using onnx::AttributeProto;

// No model can hold a node of this domain beside the body, since the model here has one node.
constexpr const char* kDomain = "onnxifi.function";
constexpr const char* kName = "Body";

void WriteTensor(const tensor::Tensor& tensor, onnx::TensorProto& proto) {
  proto.set_data_type(static_cast<int32_t>(tensor.type()));
  for (const int64_t extent : tensor.extents()) proto.add_dims(extent);
  if (tensor.type() == tensor::ElementType::kString) {
    for (const std::string& text : tensor.strings()) proto.add_string_data(text);
    return;
  }
  proto.set_raw_data(tensor.data(), static_cast<size_t>(tensor.size_bytes()));
}

// False for graphs.
bool WriteAttribute(const graph::Attribute& attribute, AttributeProto& proto) {
  return std::visit(
      [&proto](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, int64_t>) {
          proto.set_type(AttributeProto::INT);
          proto.set_i(value);
        } else if constexpr (std::is_same_v<T, float>) {
          proto.set_type(AttributeProto::FLOAT);
          proto.set_f(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          proto.set_type(AttributeProto::STRING);
          proto.set_s(value);
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          proto.set_type(AttributeProto::INTS);
          for (const int64_t one : value) proto.add_ints(one);
        } else if constexpr (std::is_same_v<T, std::vector<float>>) {
          proto.set_type(AttributeProto::FLOATS);
          for (const float one : value) proto.add_floats(one);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          proto.set_type(AttributeProto::STRINGS);
          for (const std::string& one : value) proto.add_strings(one);
        } else if constexpr (std::is_same_v<T, tensor::Tensor>) {
          proto.set_type(AttributeProto::TENSOR);
          WriteTensor(value, *proto.mutable_t());
        } else if constexpr (std::is_same_v<T, std::vector<tensor::Tensor>>) {
          proto.set_type(AttributeProto::TENSORS);
          for (const tensor::Tensor& one : value) WriteTensor(one, *proto.add_tensors());
        } else if constexpr (std::is_same_v<T, graph::Type>) {
          proto.set_type(AttributeProto::TYPE_PROTO);
          *proto.mutable_tp() = TypeToProto(value);
        } else {
          return false;
        }
        return true;
      },
      attribute);
}

Result<onnx::NodeProto> WriteNode(const graph::Node& node) {
  onnx::NodeProto proto;
  proto.set_op_type(node.op_type);
  proto.set_domain(node.domain);
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    proto.add_input(node.inputs[index] == graph::kNoValue ? "" : "i" + std::to_string(index));
  }
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    proto.add_output("o" + std::to_string(index));
  }
  for (const auto& [name, attribute] : node.attributes) {
    AttributeProto& written = *proto.add_attribute();
    written.set_name(name);
    if (!WriteAttribute(attribute, written)) {
      return Status(Code::kUnsupportedOperator, "Operator '" + node.op_type +
                                                    "' is defined as a function of graph '" + name +
                                                    "', and such definitions are not expanded.");
    }
  }
  return proto;
}

}  // namespace

Result<graph::Graph> ExpandFunction(const graph::Node& node,
                                    const std::vector<graph::Type>& input_types,
                                    const Domains& domains) {
  ONNXIFI_ASSIGN_OR_RETURN(const Schema schema,
                           Schema::Find(node.op_type, node.domain, node.since_version, domains));
  if (!schema.HasFunction()) {
    return Status(Code::kUnsupportedOperator,
                  "Operator '" + node.op_type + "' is not defined as a function.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(onnx::NodeProto call, WriteNode(node));
  std::vector<onnx::TypeProto> types;
  types.reserve(input_types.size());
  for (const graph::Type& type : input_types) types.push_back(TypeToProto(type));
  // The body would do something with any type: casts in it, made for others, lose what it means.
  ONNXIFI_RETURN_IF_ERROR(schema.CheckInputTypes(types));
  std::vector<bool> wants;
  for (const graph::ValueId output : node.outputs) wants.push_back(output != graph::kNoValue);
  ONNXIFI_ASSIGN_OR_RETURN(onnx::FunctionProto function, schema.BuildFunction(call, types, wants));

  onnx::ModelProto model;
  model.set_ir_version(NewestIrVersion());
  onnx::OperatorSetIdProto* opset = model.add_opset_import();
  opset->set_domain(kDomain);
  opset->set_version(1);
  function.set_domain(kDomain);
  function.set_name(kName);
  function.clear_overload();
  *model.add_functions() = std::move(function);
  call.set_domain(kDomain);
  call.set_op_type(kName);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name(node.op_type);
  for (int index = 0; index < call.input_size(); ++index) {
    if (call.input(index).empty()) continue;
    onnx::ValueInfoProto& input = *graph.add_input();
    input.set_name(call.input(index));
    if (static_cast<size_t>(index) < types.size()) {
      *input.mutable_type() = types[static_cast<size_t>(index)];
    }
  }
  for (const std::string& output : call.output()) graph.add_output()->set_name(output);
  *graph.add_node() = std::move(call);

  const std::string bytes = model.SerializeAsString();
  Result<graph::Graph> body = Import(std::as_bytes(std::span(bytes)),
                                     ImportOptions{.is_definition = true, .domains = &domains});
  if (!body.ok()) {
    return Status(Code::kUnsupportedOperator,
                  "The definition of operator '" + node.op_type +
                      "' as a function cannot be used: " + body.status().Text());
  }
  return body;
}

}  // namespace onnxifi::model
