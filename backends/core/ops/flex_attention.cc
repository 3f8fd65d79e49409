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
using tensor::Dim;
using tensor::Dims;
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

// The extent of an axis, in a vector of one element.
ValueId ExtentOf(GraphBuilder& graph, ValueId value, int64_t axis) {
  return graph.Apply("Shape", 15, {value}, {{"start", axis}, {"end", axis + 1}});
}

// How heads of K and V are shared by those of Q.
struct Heads {
  Dim of_q;
  Dim of_k;

  bool are_shared() const { return of_q != of_k; }
  // Few enough for a constant of their positions.
  bool are_listed() const {
    constexpr int64_t kMaxListed = 4096;
    return of_q.is_constant() && of_k.is_constant() && of_q.constant() <= kMaxListed;
  }
};

// Heads of K or V, each as often as heads of Q share it. `like_q`: of as many heads as Q.
ValueId Repeat(GraphBuilder& graph, ValueId value, ValueId like_q, const Heads& heads) {
  if (!heads.are_shared()) return value;
  ValueId positions;
  if (heads.are_listed()) {
    std::vector<int64_t> numbers;
    const int64_t group = heads.of_q.constant() / heads.of_k.constant();
    for (int64_t head = 0; head < heads.of_q.constant(); ++head) numbers.push_back(head / group);
    positions = graph.AddIntegers(numbers);
  } else {
    const ValueId count = ExtentOf(graph, like_q, 1);
    // Without heads no element is read, and nothing is divided by their number.
    const ValueId shared = graph.Apply(
        "Max", 13, {ExtentOf(graph, value, 1), graph.AddScalar(ElementType::kInt64, 1)});
    const ValueId group = graph.Apply("Div", 14, {count, shared});
    const ValueId all =
        graph.Apply("Range", 11,
                    {graph.AddScalar(ElementType::kInt64, 0), graph.Apply("Squeeze", 13, {count}),
                     graph.AddScalar(ElementType::kInt64, 1)});
    positions = graph.Apply("Div", 14, {all, group});
  }
  return graph.Apply("Gather", 13, {value, positions}, {{"axis", int64_t{1}}});
}

// INVALID_MODEL: numbers of heads that are known and do not fit. What symbols must be is added to
// `requirements`.
Result<Heads> CheckHeads(const Dim& of_q, const Dim& of_k, const Dim& of_v,
                         std::vector<program::Requirement>& requirements) {
  const auto require = [&](const Dim& condition, Status violation, Dims shown) {
    if (condition.is_constant()) return condition.constant() != 0 ? base::Ok() : violation;
    requirements.push_back({condition, std::move(violation), std::move(shown)});
    return base::Ok();
  };
  ONNXIFI_RETURN_IF_ERROR(require(Equal(of_k, of_v),
                                  Invalid("The heads of K (" + of_k.ToString() + ") and V (" +
                                          of_v.ToString() + ") differ in number."),
                                  {of_k, of_v}));
  if (of_q == of_k) return Heads{of_q, of_k};
  ONNXIFI_RETURN_IF_ERROR(
      require(Max(Equal(of_q, of_k), Less(0, of_k) * Equal(Mod(of_q, Max(of_k, 1)), 0)),
              Invalid("The heads of Q (" + of_q.ToString() +
                      ") are no multiple of those of K and V (" + of_k.ToString() + ")."),
              {of_q, of_k}));
  return Heads{of_q, of_k};
}

// What scores are multiplied by: the attribute, or one by the root of the head size.
ValueId Scale(GraphBuilder& graph, const Node& node, ValueId q, const Dim& size, ElementType type) {
  if (const auto* given = node.FindAttribute<float>("scale")) {
    return graph.AddScalar(type, *given);
  }
  if (size.is_constant()) {
    return graph.AddScalar(type, 1 / std::sqrt(static_cast<double>(size.constant())));
  }
  const ValueId root = graph.Apply("Sqrt", 13, {graph.CastTo(ExtentOf(graph, q, 3), type)});
  return graph.Apply("Reciprocal", 13, {root});
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
  ONNXIFI_ASSIGN_OR_RETURN(const Heads heads,
                           CheckHeads(q.shape[1], k.shape[1], v.shape[1], flex.requirements));
  ONNXIFI_ASSIGN_OR_RETURN(flex.score_mod, FindModifier(node, "score_mod"));
  ONNXIFI_ASSIGN_OR_RETURN(flex.prob_mod, FindModifier(node, "prob_mod"));

  // Scaled before the type becomes narrower: large products are not lost.
  const ElementType wide = type == ElementType::kFloat64 ? type : ElementType::kFloat32;
  GraphBuilder scores(flex.scores, node);
  const ValueId q_input = scores.AddInput("Q");
  const ValueId queries = CastTo(scores, q_input, type, wide);
  const ValueId keys =
      CastTo(scores, Repeat(scores, scores.AddInput("K"), q_input, heads), type, wide);
  const ValueId turned =
      scores.Apply("Transpose", 13, {keys}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const ValueId products = scores.Apply("MatMul", 13, {queries, turned});
  const ValueId scaled =
      scores.Apply("Mul", 14, {products, Scale(scores, node, q_input, q.shape[3], wide)});
  flex.scores.outputs = {CastTo(scores, scaled, wide, compute)};

  GraphBuilder softmax(flex.softmax, node);
  flex.softmax.outputs = {
      softmax.Apply("Softmax", 13, {softmax.AddInput("scores")}, {{"axis", int64_t{-1}}})};

  GraphBuilder product(flex.product, node);
  const ValueId probabilities = product.AddInput("probabilities");
  const ValueId values =
      CastTo(product, Repeat(product, product.AddInput("V"), probabilities, heads), type, compute);
  const ValueId result = product.Apply("MatMul", 13, {probabilities, values});
  flex.product.outputs = {CastTo(product, result, compute, type)};
  return flex;
}

}  // namespace onnxifi::ops
