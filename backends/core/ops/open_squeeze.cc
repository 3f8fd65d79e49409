// SPDX-License-Identifier: Apache-2.0
//
// GraphLowering: a Squeeze without axes, of extents of which a run tells whether they are 1.

#include <algorithm>
#include <string>
#include <utility>

#include "backends/core/ops/graph_builder.h"
#include "backends/core/ops/graph_lowering.h"
#include "backends/core/ops/squeezed_axes.h"

namespace onnxifi::ops {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

bool IsSqueezeOfOnes(const Node& node) {
  return node.domain.empty() && node.op_type == "Squeeze" &&
         node.FindAttribute<std::vector<int64_t>>("axes") == nullptr &&
         (node.inputs.size() < 2 || node.inputs[1] == kNoValue);
}

ExtentsOfOne::ExtentsOfOne(const Shape& shape, std::optional<size_t> declared_rank) {
  for (const Dim& extent : shape) {
    const Dim is_one = Equal(extent, 1);
    known += is_one == Dim(1) ? 1 : 0;
    open += is_one.is_constant() ? 0 : 1;
  }
  if (declared_rank) {
    wanted = static_cast<int64_t>(shape.size()) - static_cast<int64_t>(*declared_rank);
  }
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
    const Shape& shape = inputs[0]->shape;
    const ExtentsOfOne ones(shape, declared->size());
    const bool are_known =
        std::ranges::all_of(shape, [&](const Dim& dim) { return Evaluate(dim).has_value(); });
    if (ones.open > 0 && ones.are_enough()) NoteSqueezed(node, shape);
    if (is_of_body || !ones.need_open() || !are_known) {
      ONNXIFI_RETURN_IF_ERROR(LowerWith(node, std::move(inputs), entry.lower));
      if (!is_of_body) *target_.depends_on_ones = *target_.depends_on_ones || ones.need_open();
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
  constexpr int kFirstVersionWithInput = 13;
  for (const Node& squeezed : nodes) {
    for (graph::Node& node : graph.nodes) {
      if (node.index != squeezed.index || !IsSqueezeOfOnes(node)) continue;
      if (node.since_version < kFirstVersionWithInput) {
        node.attributes["axes"] = squeezed.axes;
      } else {
        node.inputs.resize(2);
        node.inputs[1] = GraphBuilder(graph, node).AddIntegers(squeezed.axes);
      }
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

}  // namespace onnxifi::ops
