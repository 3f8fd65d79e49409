// SPDX-License-Identifier: Apache-2.0
//
// GraphLowering: an If that one of its branches stands in for, because extents tell the condition:
// known ones, or those of the runs that the graph is lowered for.

#include <algorithm>
#include <string>
#include <utility>

#include "backends/core/ops/graph_lowering.h"

namespace onnxifi::ops {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

const Graph* GraphLowering::FindGraph(const Node& node, Branch branch) {
  const auto* graph = node.FindAttribute<std::shared_ptr<const Graph>>(
      branch == Branch::kThen ? "then_branch" : "else_branch");
  return graph == nullptr ? nullptr : graph->get();
}

std::optional<Dim> GraphLowering::FindCondition(const Node& node) {
  if (!node.domain.empty() || node.op_type != "If" || node.inputs.size() != 1) {
    return std::nullopt;
  }
  for (const Branch branch : {Branch::kThen, Branch::kElse}) {
    const Graph* graph = FindGraph(node, branch);
    if (graph == nullptr || !graph->inputs.empty() ||
        graph->outputs.size() != node.outputs.size()) {
      return std::nullopt;
    }
  }
  const ValueId id = node.inputs[0];
  if (id == kNoValue || !values_.Resolve(id).ok()) return std::nullopt;
  const Operand* condition = values_.operand(id);
  if (condition == nullptr || condition->type() != ElementType::kBool) return std::nullopt;
  const std::optional<Dims> known = target_.numbers.Find(*condition);
  return known && known->size() == 1 ? std::optional(known->front()) : std::nullopt;
}

std::optional<Branch> GraphLowering::FindBranch(const Node& node, const Dim& condition) const {
  if (condition.is_constant()) return condition.constant() != 0 ? Branch::kThen : Branch::kElse;
  return target_.choices != nullptr ? target_.choices->Find(node) : std::nullopt;
}

Status GraphLowering::LowerBranch(const Node& node, const Dim& condition, Branch branch) {
  const Graph* graph = FindGraph(node, branch);
  if (nesting_ >= kMaxNesting) return Unknown(node);
  if (!condition.is_constant()) Require(node, condition, branch);
  GraphLowering lowering(*graph, target_, &values_, nesting_ + 1);
  return LowerExpanded(node, *graph, lowering, /*is_branch=*/true);
}

void GraphLowering::AddSymbols(const Dim& dim, Dims& symbols) {
  constexpr size_t kMaxShown = 4;
  if (dim.is_constant() || symbols.size() == kMaxShown) return;
  const tensor::DimNode& node = *dim.node();
  if (node.kind == tensor::DimNode::Kind::kSymbol) {
    if (std::ranges::find(symbols, dim) == symbols.end()) symbols.push_back(dim);
    return;
  }
  for (const Dim& operand : node.operands) AddSymbols(operand, symbols);
  for (const tensor::DimNode::Term& term : node.terms) {
    for (const tensor::DimNode* atom : term.atoms) AddSymbols(Dim(*atom), symbols);
  }
}

void GraphLowering::Require(const Node& node, const Dim& condition, Branch branch) {
  const bool is_then = branch == Branch::kThen;
  const Dim is_false = Equal(condition, 0);
  Status violation(Code::kUnsupportedShape,
                   std::string("If: The extents of the run take its ") +
                       (is_then ? "else_branch" : "then_branch") +
                       ", and the graph is lowered for the rank that its " +
                       (is_then ? "then_branch" : "else_branch") + " gives.");
  violation.Context("while running " + graph::Describe(node));
  Dims shown;
  AddSymbols(condition, shown);
  target_.program.requirements.push_back(
      {is_then ? Equal(is_false, 0) : is_false, std::move(violation), std::move(shown)});
}

std::optional<int64_t> GraphLowering::Evaluate(const Dim& dim) const {
  if (dim.is_constant()) return dim.constant();
  if (target_.symbols == nullptr) return std::nullopt;
  const auto known = static_cast<int>(target_.symbols->size());
  if (dim.node()->last_symbol >= known) return std::nullopt;
  const tensor::DimTable& table = *target_.program.dims;
  std::vector<int64_t> values(static_cast<size_t>(table.node_count()));
  table.Evaluate(*target_.symbols, 0, known, values);
  return tensor::ValueOf(dim, values);
}

void GraphLowering::SetOpenRank(const Node& node, ValueId id, Branch first) {
  const std::optional<Dim> condition = FindCondition(node);
  if (!condition || target_.choices == nullptr) {
    return values_.SetOpenRank(
        id, {target_.choices, &node, first, /*is_only=*/false, /*is_of_data=*/true});
  }
  const std::optional<int64_t> number = Evaluate(*condition);
  if (number) first = *number != 0 ? Branch::kThen : Branch::kElse;
  values_.SetOpenRank(id, {target_.choices, &node, first, /*is_only=*/number.has_value()});
}

Status GraphLowering::LowerOfOpenRank(const Node& node) {
  Status status = LowerNode(node);
  if (status.code() == Code::kUnsupportedShape && target_.choices != nullptr) {
    // Each branch alone may give what is missed, such as how many numbers a list has.
    const Node* conditional = FindConditional(node);
    if (conditional != nullptr) target_.choices->AskToSink(*conditional);
  }
  const bool is_of_rank =
      status.code() == Code::kInvalidModel || status.code() == Code::kMismatchingShape;
  if (!is_of_rank || target_.symbols != nullptr || target_.depends_on_ones == nullptr ||
      !*target_.depends_on_ones || !FollowsUninferred(node)) {
    return status;
  }
  return Status(Code::kUnsupportedShape,
                std::string(status.sentence()) +
                    " A Squeeze without axes before it keeps all symbols before a run is known; "
                    "give it its axes, or declare the rank of its result.");
}

}  // namespace onnxifi::ops
