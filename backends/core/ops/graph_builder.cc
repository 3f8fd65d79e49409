// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: constants carry their types, so that operators find them as they find a model's.

#include "backends/core/ops/graph_builder.h"

#include <utility>

#include "backends/core/tensor/convert.h"

namespace onnxifi::ops {

using graph::Node;
using graph::ValueId;
using graph::ValueIds;
using tensor::ElementType;

ValueId AddNamed(graph::Graph& graph, std::string name) {
  graph::Value value;
  value.name = std::move(name);
  return graph.AddValue(std::move(value));
}

Node MakeNode(const Node& like, std::string op_type, int since_version, ValueIds inputs,
              ValueIds outputs) {
  Node node;
  node.name = like.name;
  node.op_type = std::move(op_type);
  node.since_version = since_version;
  node.index = like.index;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

ValueId GraphBuilder::AddInput(std::string name) {
  graph_.inputs.push_back(AddNamed(graph_, std::move(name)));
  return graph_.inputs.back();
}

Node& GraphBuilder::AddNode(std::string op_type, int since_version, ValueIds inputs,
                            ValueIds outputs) {
  graph_.nodes.push_back(
      MakeNode(like_, std::move(op_type), since_version, std::move(inputs), std::move(outputs)));
  return graph_.nodes.back();
}

ValueId GraphBuilder::Apply(std::string op_type, int since_version, ValueIds inputs,
                            Attributes attributes) {
  const ValueId result = AddNamed(graph_, op_type + std::to_string(graph_.nodes.size()));
  AddNode(std::move(op_type), since_version, std::move(inputs), {result}).attributes =
      std::move(attributes);
  return result;
}

ValueId GraphBuilder::CastTo(ValueId value, ElementType type) {
  return Apply("Cast", 13, {value}, {{"to", static_cast<int64_t>(type)}});
}

ValueId GraphBuilder::AddConstant(tensor::Tensor tensor) {
  graph::Value value;
  value.name = "constant" + std::to_string(graph_.values.size());
  value.type.kind = graph::Type::Kind::kTensor;
  value.type.element = tensor.type();
  value.type.extents.emplace();
  for (const int64_t extent : tensor.extents()) {
    value.type.extents->push_back(graph::Extent{.number = extent});
  }
  value.constant = std::move(tensor);
  return graph_.AddValue(std::move(value));
}

ValueId GraphBuilder::AddScalar(ElementType type, double number) {
  tensor::Tensor scalar = *tensor::Tensor::Allocate(type, {});
  tensor::StoreScalar(type, scalar.mutable_data(), 0,
                      tensor::CastScalar(ElementType::kFloat64, type, tensor::Scalar{.f = number}));
  return AddConstant(std::move(scalar));
}

ValueId GraphBuilder::AddIntegers(const std::vector<int64_t>& numbers) {
  return AddConstant(tensor::Tensor::FromValues<int64_t>(
      ElementType::kInt64, {static_cast<int64_t>(numbers.size())}, numbers));
}

}  // namespace onnxifi::ops
