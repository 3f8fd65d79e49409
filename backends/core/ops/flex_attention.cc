// SPDX-License-Identifier: Apache-2.0
//
// FlexAttention of ai.onnx.preview, as ONNX defines it.

#include "backends/core/ops/flex_attention.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/tensor/convert.h"

namespace onnxifi::ops {
namespace {

using base::Code;
using base::Result;
using base::Status;
using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueIds;
using program::Operand;
using tensor::ElementType;
using Attributes = std::map<std::string, graph::Attribute, std::less<>>;

ValueId AddNamed(Graph& graph, std::string name) {
  graph::Value value;
  value.name = std::move(name);
  return graph.AddValue(std::move(value));
}

ValueId AddInput(Graph& graph, std::string name) {
  graph.inputs.push_back(AddNamed(graph, std::move(name)));
  return graph.inputs.back();
}

ValueId AddConstant(Graph& graph, tensor::Tensor tensor) {
  graph::Value value;
  value.type.kind = graph::Type::Kind::kTensor;
  value.type.element = tensor.type();
  value.type.extents.emplace();
  for (const int64_t extent : tensor.extents()) value.type.extents->push_back({extent, {}});
  value.constant = std::move(tensor);
  return graph.AddValue(std::move(value));
}

ValueId AddScalar(Graph& graph, ElementType type, double number) {
  tensor::Tensor scalar = *tensor::Tensor::Allocate(type, {});
  tensor::StoreScalar(type, scalar.mutable_data(), 0,
                      tensor::CastScalar(ElementType::kFloat64, type, tensor::Scalar{.f = number}));
  return AddConstant(graph, std::move(scalar));
}

ValueId Apply(Graph& graph, const Node& like, std::string op_type, int version, ValueIds inputs,
              Attributes attributes = {}) {
  Node node;
  node.name = like.name;
  node.index = like.index;
  node.since_version = version;
  node.inputs = std::move(inputs);
  node.outputs = {AddNamed(graph, op_type + std::to_string(graph.nodes.size()))};
  node.op_type = std::move(op_type);
  node.attributes = std::move(attributes);
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().outputs[0];
}

Status Invalid(std::string sentence) {
  return Status(Code::kInvalidModel, "FlexAttention: " + std::move(sentence));
}

// The number of ONNX's TensorProto.DataType.
int64_t NumberOf(ElementType type) {
  for (int64_t number = 1; number < 64; ++number) {
    if (tensor::ElementTypeFromOnnx(number) == type) return number;
  }
  return 0;
}

ValueId CastTo(Graph& graph, const Node& like, ValueId value, ElementType from, ElementType to) {
  return from == to ? value : Apply(graph, like, "Cast", 13, {value}, {{"to", NumberOf(to)}});
}

Result<std::shared_ptr<const Graph>> FindModifier(const Node& node, std::string_view name) {
  const auto* modifier = node.FindAttribute<std::shared_ptr<const Graph>>(name);
  if (modifier == nullptr) return std::shared_ptr<const Graph>();
  if ((*modifier)->inputs.size() != 1 || (*modifier)->outputs.size() != 1) {
    return Invalid("Graph " + std::string(name) + " has " +
                   std::to_string((*modifier)->inputs.size()) + " inputs and " +
                   std::to_string((*modifier)->outputs.size()) +
                   " outputs where one of each is required.");
  }
  return *modifier;
}

// Heads of K or V, each as often as heads of Q share it.
ValueId Repeat(Graph& graph, const Node& node, ValueId value, int64_t heads, int64_t group) {
  if (group == 1) return value;
  std::vector<int64_t> positions;
  for (int64_t head = 0; head < heads * group; ++head) positions.push_back(head / group);
  const ValueId indices = AddConstant(
      graph, tensor::Tensor::FromValues<int64_t>(ElementType::kInt64, {heads * group}, positions));
  return Apply(graph, node, "Gather", 13, {value, indices}, {{"axis", int64_t{1}}});
}

}  // namespace

Result<FlexAttention> ExpandFlexAttention(const Node& node, const Operand& q, const Operand& k,
                                          const Operand& v) {
  const ElementType type = q.type();
  if (!tensor::IsFloat(type) || k.type() != type || v.type() != type) {
    return Status(Code::kMismatchingDatatype,
                  "FlexAttention: Q, K and V are " + std::string(Name(type)) + ", " +
                      std::string(Name(k.type())) + " and " + std::string(Name(v.type())) +
                      "; they must be of one float type.");
  }
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) {
    return Invalid("Q, K and V have " + std::to_string(q.rank()) + ", " + std::to_string(k.rank()) +
                   " and " + std::to_string(v.rank()) + " axes instead of 4.");
  }
  int64_t heads = 1, group = 1;
  if (q.shape[1] != k.shape[1] || v.shape[1] != k.shape[1]) {
    if (!q.shape[1].is_constant() || !k.shape[1].is_constant() || v.shape[1] != k.shape[1]) {
      return Status(Code::kUnsupportedShape,
                    "FlexAttention: The numbers of heads are not known before the run.");
    }
    heads = k.shape[1].constant();
    if (heads < 1 || q.shape[1].constant() % heads != 0) {
      return Invalid("The heads of Q (" + std::to_string(q.shape[1].constant()) +
                     ") are no multiple of those of K and V (" + std::to_string(heads) + ").");
    }
    group = q.shape[1].constant() / heads;
  }
  ElementType compute = type == ElementType::kFloat64 ? type : ElementType::kFloat32;
  if (const auto* precision = node.FindAttribute<int64_t>("softmax_precision")) {
    const std::optional<ElementType> given = tensor::ElementTypeFromOnnx(*precision);
    if (!given || !tensor::IsFloat(*given)) {
      return Invalid("Attribute softmax_precision (" + std::to_string(*precision) +
                     ") is not the number of a float type.");
    }
    compute = *given;
  }
  FlexAttention flex;
  ONNXIFI_ASSIGN_OR_RETURN(flex.score_mod, FindModifier(node, "score_mod"));
  ONNXIFI_ASSIGN_OR_RETURN(flex.prob_mod, FindModifier(node, "prob_mod"));

  // Scaled before the type becomes narrower: large products are not lost.
  const ElementType wide = type == ElementType::kFloat64 ? type : ElementType::kFloat32;
  double scale = 0;
  if (const auto* given = node.FindAttribute<float>("scale")) {
    scale = *given;
  } else if (q.shape[3].is_constant() && q.shape[3].constant() > 0) {
    scale = 1 / std::sqrt(static_cast<double>(q.shape[3].constant()));
  } else {
    return Status(Code::kUnsupportedShape,
                  "FlexAttention: Neither the scale nor the head size is known before the run.");
  }
  Graph& scores = flex.scores;
  const ValueId queries = CastTo(scores, node, AddInput(scores, "Q"), type, wide);
  const ValueId keys =
      CastTo(scores, node, Repeat(scores, node, AddInput(scores, "K"), heads, group), type, wide);
  const ValueId turned =
      Apply(scores, node, "Transpose", 13, {keys}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const ValueId products = Apply(scores, node, "MatMul", 13, {queries, turned});
  const ValueId scaled = Apply(scores, node, "Mul", 14, {products, AddScalar(scores, wide, scale)});
  scores.outputs = {CastTo(scores, node, scaled, wide, compute)};

  flex.softmax.outputs = {Apply(flex.softmax, node, "Softmax", 13,
                                {AddInput(flex.softmax, "scores")}, {{"axis", int64_t{-1}}})};

  Graph& product = flex.product;
  const ValueId probabilities = AddInput(product, "probabilities");
  const ValueId values = CastTo(
      product, node, Repeat(product, node, AddInput(product, "V"), heads, group), type, compute);
  const ValueId result = Apply(product, node, "MatMul", 13, {probabilities, values});
  product.outputs = {CastTo(product, node, result, compute, type)};
  return flex;
}

}  // namespace onnxifi::ops
