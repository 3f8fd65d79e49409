// SPDX-License-Identifier: Apache-2.0
//
// GraphLowering: nodes in whose place other nodes are lowered, those that their operators are
// defined as.

#include <string>
#include <utility>

#include "backends/core/ops/declared_type.h"
#include "backends/core/ops/flex_attention.h"
#include "backends/core/ops/gradient.h"
#include "backends/core/ops/graph_lowering.h"
#include "backends/core/ops/sequence_map.h"

namespace onnxifi::ops {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Type;
using graph::ValueId;
using graph::ValueIds;

Status GraphLowering::ExpandNode(const Node& node) {
  if (target_.functions == nullptr || nesting_ >= kMaxNesting) return Unknown(node);
  std::vector<Type> types;
  ValueIds inputs;
  for (ValueId id : node.inputs) {
    Type& type = types.emplace_back();
    if (id == kNoValue) continue;
    ONNXIFI_RETURN_IF_ERROR(values_.Resolve(id));
    type = TypeOf(values_.TypeOf(id));
    inputs.push_back(id);
    const Operand* operand = values_.operand(id);
    if (operand == nullptr) continue;
    for (size_t axis = 0; axis < operand->shape.size(); ++axis) {
      const Dim& dim = operand->shape[axis];
      if (dim.is_constant()) (*type.extents)[axis].number = dim.constant();
    }
  }
  Result<std::unique_ptr<Graph>> expanded = target_.functions->Expand(node, types);
  if (!expanded.ok()) {
    return expanded.status().code() == Code::kUnsupportedOperator ? Unknown(node)
                                                                  : std::move(expanded).status();
  }
  Graph& body = **expanded;
  for (Node& inner : body.nodes) inner.index = node.index;
  DeclareRanks(node, body);
  if (inputs.size() < body.inputs.size() || body.outputs.size() < node.outputs.size()) {
    return Status(Code::kInternalError,
                  "The function body of " + node.op_type + " does not fit its node.");
  }
  GraphLowering lowering(body, target_.WithoutChoices(), /*outer=*/nullptr, nesting_ + 1);
  for (size_t k = 0; k < body.inputs.size(); ++k) {
    lowering.values_.TakeOver(body.inputs[k], values_, inputs[k]);
  }
  return LowerExpanded(node, body, lowering);
}

void GraphLowering::DeclareRanks(const Node& node, Graph& body) const {
  for (size_t k = 0; k < node.outputs.size() && k < body.outputs.size(); ++k) {
    if (node.outputs[k] == kNoValue) continue;
    const Type& declared = graph_.values[node.outputs[k]].type;
    if (declared.kind != Type::Kind::kTensor || !declared.extents) continue;
    ValueId id = body.outputs[k];
    for (auto inner = body.nodes.rbegin(); inner != body.nodes.rend(); ++inner) {
      if (inner->outputs.empty() || inner->outputs[0] != id) continue;
      Type& type = body.values[id].type;
      if (type.kind == Type::Kind::kUnknown) {
        type = {.kind = Type::Kind::kTensor, .element = declared.element};
      }
      if (type.kind != Type::Kind::kTensor || type.extents) break;
      type.extents.emplace(declared.extents->size());
      if (inner->op_type != "Identity" || !inner->domain.empty()) break;
      id = inner->inputs[0];
    }
  }
}

Status GraphLowering::LowerSequenceMap(const Node& node) {
  std::vector<bool> is_sequence;
  for (ValueId id : node.inputs) {
    if (id != kNoValue) ONNXIFI_RETURN_IF_ERROR(values_.Resolve(id));
    is_sequence.push_back(id != kNoValue && values_.TypeOf(id).is_sequence());
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> body, ExpandSequenceMap(node, is_sequence));
  GraphLowering lowering(*body, target_.WithoutChoices(), &values_, nesting_ + 1);
  return LowerExpanded(node, *body, lowering);
}

Status GraphLowering::LowerGradient(const Node& node) {
  const FindTensor find = [&](ValueId id) {
    return values_.Resolve(id).ok() ? values_.operand(id) : nullptr;
  };
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> made, ExpandGradient(graph_, node, find));
  GraphLowering lowering(*made, target_.WithoutChoices(), &values_, nesting_ + 1);
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    ONNXIFI_ASSIGN_OR_RETURN(Operand input, values_.Find(node.inputs[k]));
    ONNXIFI_RETURN_IF_ERROR(lowering.values_.Set(made->inputs[k], std::move(input)));
  }
  return LowerExpanded(node, *made, lowering);
}

Status GraphLowering::LowerFlexAttention(const Node& node) {
  std::vector<Operand> inputs;
  for (ValueId id : node.inputs) {
    if (id == kNoValue) break;
    ONNXIFI_ASSIGN_OR_RETURN(inputs.emplace_back(), values_.Find(id));
  }
  if (inputs.size() != 3 || node.outputs.size() != 1) {
    return Status(Code::kInvalidModel, "FlexAttention: It has not Q, K, V and one output.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(FlexAttention flex,
                           ExpandFlexAttention(node, inputs[0], inputs[1], inputs[2]));
  for (program::Requirement& requirement : flex.requirements) {
    requirement.violation.Context("while running " + graph::Describe(node));
    target_.program.requirements.push_back(std::move(requirement));
  }
  ONNXIFI_ASSIGN_OR_RETURN(Operand scores, LowerInPlace(node, flex.scores, {inputs[0], inputs[1]}));
  ONNXIFI_ASSIGN_OR_RETURN(scores, LowerModifier(node, flex.score_mod.get(), scores));
  ONNXIFI_ASSIGN_OR_RETURN(Operand shares, LowerInPlace(node, flex.softmax, {scores}));
  ONNXIFI_ASSIGN_OR_RETURN(shares, LowerModifier(node, flex.prob_mod.get(), shares));
  ONNXIFI_ASSIGN_OR_RETURN(Operand result, LowerInPlace(node, flex.product, {shares, inputs[2]}));
  if (node.outputs[0] == kNoValue) return base::Ok();
  return values_.Set(node.outputs[0], std::move(result));
}

Result<Operand> GraphLowering::LowerModifier(const Node& node, const Graph* modifier,
                                             const Operand& input) {
  if (modifier == nullptr) return input;
  ONNXIFI_ASSIGN_OR_RETURN(Operand result, LowerInPlace(node, *modifier, {input}));
  if (result.type() != input.type() || result.rank() != input.rank()) {
    return Status(Code::kInvalidModel, "FlexAttention: A graph that it owns gives another " +
                                           std::string("type or rank than it gets."));
  }
  return result;
}

Result<Operand> GraphLowering::LowerInPlace(const Node& node, const Graph& graph,
                                            const std::vector<Operand>& inputs) {
  if (nesting_ >= kMaxNesting) return Unknown(node);
  GraphLowering lowering(graph, target_.WithoutChoices(), &values_, nesting_ + 1);
  for (size_t k = 0; k < inputs.size(); ++k) {
    ONNXIFI_RETURN_IF_ERROR(lowering.values_.Set(graph.inputs[k], inputs[k]));
  }
  Status status = lowering.LowerNodes();
  if (!status.ok()) return std::move(status).Context("in the function body of " + node.op_type);
  return lowering.values_.Find(graph.outputs[0]);
}

Status GraphLowering::LowerExpanded(const Node& node, const Graph& body, GraphLowering& lowering,
                                    bool is_branch) {
  Status status = lowering.LowerNodes();
  if (!status.ok()) return std::move(status).Context("in the function body of " + node.op_type);
  const bool is_uninferred = is_branch || FollowsUninferred(node);
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const ValueId id = node.outputs[k];
    if (id == kNoValue) continue;
    ONNXIFI_RETURN_IF_ERROR(lowering.values_.ResolveAnyRank(body.outputs[k]));
    values_.TakeOver(id, lowering.values_, body.outputs[k]);
    ONNXIFI_RETURN_IF_ERROR(values_.CheckDeclared(id, /*has_rank=*/!is_uninferred));
    if (is_uninferred) uninferred_.insert(id);
  }
  return base::Ok();
}

}  // namespace onnxifi::ops
