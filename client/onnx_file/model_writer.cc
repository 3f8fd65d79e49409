// SPDX-License-Identifier: Apache-2.0
//
// Messages of onnx.proto, written field by field.

#include "client/onnx_file/model_writer.h"

#include <cstring>

#include "client/onnx_file/wire_writer.h"

namespace onnxifi::onnx_file {
namespace {

// AttributeProto.type
constexpr int64_t kInt = 2;
constexpr int64_t kGraph = 5;
constexpr int64_t kInts = 7;

std::string MakeValueInfo(std::string_view name, ElementType type,
                          const std::vector<Dimension>& shape) {
  std::string dimensions;
  for (const Dimension& dimension : shape) {
    std::string content;
    if (const auto* extent = std::get_if<int64_t>(&dimension)) {
      AppendIntegerField(content, 1, *extent);
    } else if (const auto& symbol = std::get<std::string>(dimension); !symbol.empty()) {
      AppendBytesField(content, 2, symbol);
    }
    AppendBytesField(dimensions, 1, content);
  }
  std::string tensor_type;
  AppendIntegerField(tensor_type, 1, static_cast<int32_t>(type));
  AppendBytesField(tensor_type, 2, dimensions);
  std::string type_message;
  AppendBytesField(type_message, 1, tensor_type);
  std::string value;
  AppendBytesField(value, 1, name);
  AppendBytesField(value, 2, type_message);
  return value;
}

}  // namespace

std::string MakeIntAttribute(std::string_view name, int64_t value) {
  std::string attribute;
  AppendBytesField(attribute, 1, name);
  AppendIntegerField(attribute, 3, value);
  AppendIntegerField(attribute, 20, kInt);
  return attribute;
}

std::string MakeIntsAttribute(std::string_view name, const std::vector<int64_t>& values) {
  std::string attribute;
  AppendBytesField(attribute, 1, name);
  for (const int64_t value : values) AppendIntegerField(attribute, 8, value);
  AppendIntegerField(attribute, 20, kInts);
  return attribute;
}

std::string MakeGraphAttribute(std::string_view name, std::string_view graph) {
  std::string attribute;
  AppendBytesField(attribute, 1, name);
  AppendBytesField(attribute, 6, graph);
  AppendIntegerField(attribute, 20, kGraph);
  return attribute;
}

ModelWriter& ModelWriter::Input(std::string_view name, ElementType type,
                                std::vector<Dimension> shape) {
  AppendBytesField(graph_, 11, MakeValueInfo(name, type, shape));
  return *this;
}

ModelWriter& ModelWriter::Output(std::string_view name, ElementType type,
                                 std::vector<Dimension> shape) {
  AppendBytesField(graph_, 12, MakeValueInfo(name, type, shape));
  return *this;
}

ModelWriter& ModelWriter::Intermediate(std::string_view name, ElementType type,
                                       std::vector<Dimension> shape) {
  AppendBytesField(graph_, 13, MakeValueInfo(name, type, shape));
  return *this;
}

ModelWriter& ModelWriter::Initializer(const DenseTensor& tensor) {
  return RawInitializer(SerializeTensor(tensor));
}

ModelWriter& ModelWriter::RawInitializer(std::string_view tensor) {
  AppendBytesField(graph_, 5, tensor);
  return *this;
}

ModelWriter& ModelWriter::Node(std::string_view op_type,
                               std::initializer_list<std::string_view> inputs,
                               std::initializer_list<std::string_view> outputs,
                               const std::vector<std::string>& attributes,
                               std::string_view domain) {
  std::string node;
  for (const std::string_view input : inputs) AppendBytesField(node, 1, input);
  for (const std::string_view output : outputs) AppendBytesField(node, 2, output);
  AppendBytesField(node, 4, op_type);
  for (const std::string& attribute : attributes) AppendBytesField(node, 5, attribute);
  if (!domain.empty()) AppendBytesField(node, 7, domain);
  AppendBytesField(graph_, 1, node);
  return *this;
}

ModelWriter& ModelWriter::Import(std::string_view domain, int64_t version) {
  std::string opset;
  AppendBytesField(opset, 1, domain);
  AppendIntegerField(opset, 2, version);
  AppendBytesField(imports_, 8, opset);
  return *this;
}

std::string ModelWriter::BuildGraph() const {
  std::string graph = graph_;
  AppendBytesField(graph, 2, "small");
  return graph;
}

std::string ModelWriter::Build() const {
  std::string opset;
  AppendBytesField(opset, 1, "");
  AppendIntegerField(opset, 2, opset_);
  std::string model;
  AppendIntegerField(model, 1, ir_version_);
  AppendBytesField(model, 7, BuildGraph());
  AppendBytesField(model, 8, opset);
  model += imports_;
  return model;
}

DenseTensor MakeFloatTensor(std::string_view name, std::vector<int64_t> extents,
                            const std::vector<float>& values) {
  DenseTensor tensor;
  tensor.name = name;
  tensor.type = ElementType::kFloat32;
  tensor.extents = std::move(extents);
  tensor.bytes.resize(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

}  // namespace onnxifi::onnx_file
