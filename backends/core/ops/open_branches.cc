// SPDX-License-Identifier: Apache-2.0
//
// GraphLowering: an If that one of its branches stands in for, because extents tell the condition:
// known ones, or those of the runs that the graph is lowered for. Likewise a Squeeze whose axes
// they tell.

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
  if (!condition || target_.choices == nullptr) return values_.SetOpenRank(id, {});
  const std::optional<int64_t> number = Evaluate(*condition);
  if (number) first = *number != 0 ? Branch::kThen : Branch::kElse;
  values_.SetOpenRank(id, {target_.choices, &node, first, /*is_only=*/number.has_value()});
}

bool IsSqueezeOfOnes(const Node& node) {
  return node.domain.empty() && node.op_type == "Squeeze" &&
         node.FindAttribute<std::vector<int64_t>>("axes") == nullptr &&
         (node.inputs.size() < 2 || node.inputs[1] == kNoValue);
}

Status GraphLowering::LowerSqueezeOfOnes(const Node& node,
                                         std::vector<std::optional<Operand>> inputs,
                                         const Operator& entry) {
  const ValueId output = node.outputs.empty() ? kNoValue : node.outputs[0];
  if (inputs.empty() || !inputs[0] || output == kNoValue) {
    return LowerWith(node, std::move(inputs), entry.lower);
  }
  const auto& declared = graph_.values[output].type.extents;
  const bool is_of_body = target_.depends_on_ones == nullptr;
  if (declared) {
    const Dims& shape = inputs[0]->shape;
    const auto ones = std::ranges::count(shape, Dim(1));
    const auto symbols =
        std::ranges::count_if(shape, [](const Dim& dim) { return !dim.is_constant(); });
    const auto wanted =
        static_cast<std::ptrdiff_t>(shape.size()) - static_cast<std::ptrdiff_t>(declared->size());
    const bool need_symbols = wanted > ones && wanted <= ones + symbols;
    const bool are_known =
        std::ranges::all_of(shape, [&](const Dim& dim) { return Evaluate(dim).has_value(); });
    if (symbols > 0 && wanted == ones) NoteSqueezed(node, shape);
    if (is_of_body || !need_symbols || !are_known) {
      ONNXIFI_RETURN_IF_ERROR(LowerWith(node, std::move(inputs), entry.lower));
      if (!is_of_body) *target_.depends_on_ones = *target_.depends_on_ones || need_symbols;
      return base::Ok();
    }
  }
  if (is_of_body) return LowerWith(node, std::move(inputs), entry.lower);
  bool is_open = false;
  ONNXIFI_RETURN_IF_ERROR(LowerWith(node, std::move(inputs), RemoveOnes(is_open)));
  // The model may declare what other runs give.
  if (is_open) uninferred_.insert(output);
  *target_.depends_on_ones = *target_.depends_on_ones || is_open;
  return base::Ok();
}

void GraphLowering::NoteSqueezed(const Node& node, const Dims& shape) {
  if (target_.squeezed == nullptr) return;
  if (target_.depends_on_ones == nullptr || nesting_ > 0) {
    target_.squeezed->are_in_bodies = true;
    return;
  }
  SqueezedAxes::Node& squeezed = target_.squeezed->nodes.emplace_back();
  squeezed.index = node.index;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == Dim(1)) squeezed.axes.push_back(static_cast<int64_t>(axis));
  }
}

void SqueezedAxes::Write(Graph& graph) const {
  constexpr int kVersionOfAttribute = 11;
  for (const Node& squeezed : nodes) {
    for (graph::Node& node : graph.nodes) {
      if (node.index != squeezed.index || !IsSqueezeOfOnes(node)) continue;
      node.since_version = kVersionOfAttribute;
      node.attributes["axes"] = squeezed.axes;
    }
  }
}

BodyLowering::WriteBody GraphLowering::RemoveOnes(bool& out_is_open) const {
  return [this, &out_is_open](Lowering& lowering) -> Status {
    ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
    Operand squeezed = lowering.In(0);
    for (int axis = squeezed.rank() - 1; axis >= 0; --axis) {
      const Dim extent = squeezed.shape[static_cast<size_t>(axis)];
      const Dim is_one = Equal(extent, 1);
      bool is_removed = is_one == Dim(1);
      if (!is_one.is_constant()) {
        is_removed = Evaluate(extent) == 1;
        out_is_open = true;
        ONNXIFI_RETURN_IF_ERROR(lowering.Require(
            is_removed ? is_one : 1 - is_one, Code::kUnsupportedShape,
            "Extent " + extent.ToString() + " of axis " + std::to_string(axis) +
                (is_removed ? " is not 1" : " is 1") +
                " in the run, and the graph is lowered for the rank of other runs.",
            {extent}));
      }
      if (is_removed) squeezed = program::RemoveAxis(squeezed, axis);
    }
    lowering.Set(0, std::move(squeezed));
    return base::Ok();
  };
}

Status GraphLowering::LowerOfOpenRank(const Node& node) {
  Status status = LowerNode(node);
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
