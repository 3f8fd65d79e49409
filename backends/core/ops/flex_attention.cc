// SPDX-License-Identifier: Apache-2.0
//
// FlexAttention of ai.onnx.preview, as ONNX defines it.

#include "backends/core/ops/flex_attention.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/ops/graph_builder.h"

namespace onnxifi::ops {
namespace {

using base::Code;
using base::Result;
using base::Status;
using graph::Graph;
using graph::Node;
using graph::ValueId;
using program::Operand;
using tensor::ElementType;

Status Invalid(std::string sentence) {
  return Status(Code::kInvalidModel, "FlexAttention: " + std::move(sentence));
}

ValueId CastTo(GraphBuilder& graph, ValueId value, ElementType from, ElementType to) {
  return from == to ? value : graph.CastTo(value, to);
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
ValueId Repeat(GraphBuilder& graph, ValueId value, int64_t heads, int64_t group) {
  if (group == 1) return value;
  std::vector<int64_t> positions;
  for (int64_t head = 0; head < heads * group; ++head) positions.push_back(head / group);
  return graph.Apply("Gather", 13, {value, graph.AddIntegers(positions)}, {{"axis", int64_t{1}}});
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
  GraphBuilder scores(flex.scores, node);
  const ValueId queries = CastTo(scores, scores.AddInput("Q"), type, wide);
  const ValueId keys =
      CastTo(scores, Repeat(scores, scores.AddInput("K"), heads, group), type, wide);
  const ValueId turned =
      scores.Apply("Transpose", 13, {keys}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const ValueId products = scores.Apply("MatMul", 13, {queries, turned});
  const ValueId scaled = scores.Apply("Mul", 14, {products, scores.AddScalar(wide, scale)});
  flex.scores.outputs = {CastTo(scores, scaled, wide, compute)};

  GraphBuilder softmax(flex.softmax, node);
  flex.softmax.outputs = {
      softmax.Apply("Softmax", 13, {softmax.AddInput("scores")}, {{"axis", int64_t{-1}}})};

  GraphBuilder product(flex.product, node);
  const ValueId probabilities = product.AddInput("probabilities");
  const ValueId values =
      CastTo(product, Repeat(product, product.AddInput("V"), heads, group), type, compute);
  const ValueId result = product.Apply("MatMul", 13, {probabilities, values});
  flex.product.outputs = {CastTo(product, result, compute, type)};
  return flex;
}

}  // namespace onnxifi::ops
