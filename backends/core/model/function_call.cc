// SPDX-License-Identifier: Apache-2.0
//
// FunctionCall: names of the body bound to values of the caller, and back.

#include "backends/core/model/function_call.h"

#include <utility>

#include "backends/core/model/attribute_proto.h"
#include "backends/core/model/refusal.h"
#include "backends/core/model/schema.h"
#include "backends/core/model/versions.h"

namespace onnxifi::model {
namespace {

using base::Code;
using base::Result;
using base::Status;
using graph::kNoValue;
using graph::Type;
using graph::Value;
using graph::ValueId;
using graph::ValueIds;
using onnx::AttributeProto;

std::string FunctionKey(std::string_view domain, const std::string& name,
                        const std::string& overload) {
  std::string key(domain);
  key += '\0';
  key += name;
  key += '\0';
  return key + overload;
}

}  // namespace

Status FunctionTable::Add(const onnx::ModelProto& model) {
  for (const onnx::FunctionProto& function : model.functions()) {
    const std::string key =
        FunctionKey(CanonicalDomain(function.domain()), function.name(), function.overload());
    if (!functions_.emplace(key, &function).second) {
      return Invalid("The model defines function " + Quote(function.name()) + " of domain " +
                     Quote(function.domain()) + " twice.");
    }
  }
  return base::Ok();
}

const onnx::FunctionProto* FunctionTable::Find(const onnx::NodeProto& node,
                                               std::string_view domain) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(FunctionKey(domain, node.op_type(), node.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

namespace {

int64_t NumberBytes(const onnx::TensorProto& tensor) {
  return static_cast<int64_t>(tensor.raw_data().size()) +
         int64_t{tensor.float_data_size()} * static_cast<int64_t>(sizeof(float)) +
         int64_t{tensor.double_data_size()} * static_cast<int64_t>(sizeof(double));
}

// NOLINTNEXTLINE(misc-no-recursion): files nest only so deep, or do not parse
int64_t NumberBytes(const onnx::NodeProto& node) {
  int64_t bytes = 0;
  const auto add = [&](const onnx::GraphProto& graph) {
    for (const onnx::TensorProto& initializer : graph.initializer()) {
      bytes += NumberBytes(initializer);
    }
    for (const onnx::NodeProto& inner : graph.node()) bytes += NumberBytes(inner);
  };
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_t()) bytes += NumberBytes(attribute.t());
    for (const onnx::TensorProto& tensor : attribute.tensors()) bytes += NumberBytes(tensor);
    if (attribute.has_g()) add(attribute.g());
    for (const onnx::GraphProto& graph : attribute.graphs()) add(graph);
  }
  return bytes;
}

}  // namespace

int64_t TextBytes(const onnx::NodeProto& node) {
  return static_cast<int64_t>(node.ByteSizeLong()) - NumberBytes(node);
}

Status InlineBudget::Spend(int64_t count, int64_t size_bytes, const Scope& scope) {
  if (scope.call == nullptr) return base::Ok();
  count_ += count;
  size_bytes_ += size_bytes;
  if (count_ <= kMaxInlined && size_bytes_ <= kMaxInlinedBytes) return base::Ok();
  return {Code::kUnsupportedOperator,
          "The model's functions expand to more than the largest supported number of nodes, names "
          "and attributes (" +
              std::to_string(kMaxInlined) + ") or of bytes in them (" +
              std::to_string(kMaxInlinedBytes) + ")."};
}

Status InlineBudget::SpendRepeated(const google::protobuf::MessageLite& content, int64_t size_bytes,
                                   const Scope& scope) {
  if (scope.call == nullptr || expanded_.insert(&content).second) return base::Ok();
  return Spend(0, size_bytes, scope);
}

Status CheckCall(const onnx::NodeProto& node, const onnx::FunctionProto& function,
                 const Scope& scope) {
  for (const Call* caller = scope.call; caller != nullptr; caller = caller->caller) {
    if (caller->function == &function) {
      return Invalid("Function " + Quote(function.name()) + " calls itself.");
    }
  }
  ONNXIFI_RETURN_IF_ERROR(scope.CheckDepth());
  const auto check_count = [&](int given, int most, const char* what) -> Status {
    if (given <= most) return base::Ok();
    return Invalid("The node has " + std::to_string(given) + " " + what + ", but function " +
                   Quote(function.name()) + " has " + std::to_string(most) + ".");
  };
  ONNXIFI_RETURN_IF_ERROR(check_count(node.input_size(), function.input_size(), "inputs"));
  return check_count(node.output_size(), function.output_size(), "outputs");
}

Result<const graph::Attribute*> FindCallAttribute(const AttributeProto& proto,
                                                  AttributeProto::AttributeType expected,
                                                  const Scope& body) {
  const std::string named =
      "Attribute " + Quote(proto.name()) + " refers to attribute " + Quote(proto.ref_attr_name());
  if (body.call == nullptr) return Invalid(named + " of a function, but is in none.");
  const auto found = body.call->attributes.find(proto.ref_attr_name());
  if (found == body.call->attributes.end()) return nullptr;
  const AttributeProto::AttributeType actual = TypeOf(found->second);
  const bool is_dense_form =
      expected == AttributeProto::SPARSE_TENSOR && actual == AttributeProto::TENSOR;
  if (expected != AttributeProto::UNDEFINED && actual != expected && !is_dense_form) {
    return Invalid(named + ", which has another type.");
  }
  if (body.call->graph != body.graph && HasCaptures(found->second)) {
    return Status(Code::kUnsupportedOperator,
                  "Attribute " + Quote(proto.name()) +
                      " takes a graph with captured values into a subgraph of a function.");
  }
  return &found->second;
}

Status BindCallInputs(const onnx::FunctionProto& function, const ValueIds& inputs, Scope& body) {
  for (int index = 0; index < function.input_size(); ++index) {
    const auto position = static_cast<size_t>(index);
    const ValueId id = position < inputs.size() ? inputs[position] : kNoValue;
    if (body.names.Find(function.input(index)) != nullptr) {
      return Invalid("Function " + Quote(function.name()) + " has input " +
                     Quote(function.input(index)) + " twice.");
    }
    body.names[function.input(index)] = {.id = id, .is_defined = true, .is_input = true};
  }
  return base::Ok();
}

// A value that has a name outside already - an input handed through, or an output used twice - goes
// through an Identity.
Status BindCallOutput(const std::string& inner_name, const std::string& outer_name,
                      const graph::Node& node, Scope& body, Scope& scope) {
  Scope::Entry* found = body.names.Find(inner_name);
  if (found == nullptr || !found->is_defined || found->id == kNoValue) {
    return Invalid("Output " + Quote(inner_name) + " is computed by no node of the function.");
  }
  const ValueId inner_id = found->id;
  if (!found->is_input) {
    Scope::Entry& entry = scope.names[outer_name];
    if (entry.is_defined) return Invalid("Value " + Quote(outer_name) + " is defined twice.");
    Value& value = scope.graph->values[static_cast<size_t>(inner_id)];
    value.name = scope.prefix + outer_name;
    if (entry.id != kNoValue && value.type.kind == Type::Kind::kUnknown) {
      value.type = scope.graph->values[static_cast<size_t>(entry.id)].type;
    }
    entry.id = inner_id;
    entry.is_defined = true;
    found->is_input = true;  // a second output of this name needs a value of its own
    return base::Ok();
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Schema identity, Schema::Find("Identity", "", *NewestOpset("")));
  graph::Node copy{.name = node.name,
                   .op_type = "Identity",
                   .since_version = identity.since_version(),
                   .index = node.index,
                   .inputs = {inner_id}};
  ONNXIFI_ASSIGN_OR_RETURN(const ValueId id,
                           scope.Define(outer_name, {.name = scope.prefix + outer_name}));
  copy.outputs.push_back(id);
  scope.graph->nodes.push_back(std::move(copy));
  return base::Ok();
}

}  // namespace onnxifi::model
