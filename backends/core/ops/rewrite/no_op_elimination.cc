// SPDX-License-Identifier: Apache-2.0
//
// NoOpElimination: one predicate per operator, each true only where types and attributes prove it.
// Extents prove nothing: files keep those that values had before somebody changed the inputs'.

#include "backends/core/ops/rewrite/no_op_elimination.h"

#include <algorithm>
#include <cstdint>

#include "backends/core/ops/rewrite/graph_edit.h"

namespace onnxifi::ops {
namespace {

using graph::kNoValue;
using graph::Node;

bool HasOneInput(const Node& node, const GraphEdit& /*edit*/) { return node.inputs.size() == 1; }

bool IsAlways(const Node& /*node*/, const GraphEdit& /*edit*/) { return true; }

bool IsInferenceDropout(const Node& node, const GraphEdit& edit) {
  // The mask, where it is read, has to be made.
  if (node.outputs.size() > 1 && node.outputs[1] != kNoValue &&
      edit.UseCount(node.outputs[1]) > 0) {
    return false;
  }
  if (node.since_version < 7) {
    const int64_t* is_test = node.FindAttribute<int64_t>("is_test");
    return is_test != nullptr && *is_test != 0;
  }
  return node.inputs.size() < 3 || node.inputs[2] == kNoValue;
}

bool IsSameType(const Node& node, const GraphEdit& edit) {
  const int64_t* to = node.FindAttribute<int64_t>("to");
  const tensor::ElementType from = edit.TypeOf(node.inputs[0]);
  return to != nullptr && from != tensor::ElementType::kUndefined &&
         *to == static_cast<int64_t>(from);
}

bool IsInOrder(const Node& node, const GraphEdit& /*edit*/) {
  const auto* perm = node.FindAttribute<std::vector<int64_t>>("perm");
  if (perm == nullptr) return false;
  for (size_t axis = 0; axis < perm->size(); ++axis) {
    if ((*perm)[axis] != static_cast<int64_t>(axis)) return false;
  }
  return true;
}

std::optional<std::vector<int64_t>> Numbers(const Node& node, const GraphEdit& edit,
                                            std::string_view attribute, size_t input) {
  if (const auto* given = node.FindAttribute<std::vector<int64_t>>(attribute)) return *given;
  if (input >= node.inputs.size()) return std::nullopt;
  return edit.FindIntegers(node.inputs[input]);
}

bool PadsNothing(const Node& node, const GraphEdit& edit) {
  const auto pads = Numbers(node, edit, node.since_version < 2 ? "paddings" : "pads", 1);
  return pads && std::all_of(pads->begin(), pads->end(), [](int64_t pad) { return pad == 0; });
}

bool SlicesAll(const Node& node, const GraphEdit& edit) {
  const auto starts = Numbers(node, edit, "starts", 1);
  const auto ends = Numbers(node, edit, "ends", 2);
  if (!starts || !ends) return false;
  const bool from_start =
      std::all_of(starts->begin(), starts->end(), [](int64_t start) { return start == 0; });
  // Exporters write the largest int64 for "to the end"; smaller numbers may cut.
  const bool to_end =
      std::all_of(ends->begin(), ends->end(), [](int64_t end) { return end == INT64_MAX; });
  if (node.inputs.size() < 5 || node.inputs[4] == kNoValue) return from_start && to_end;
  const auto steps = edit.FindIntegers(node.inputs[4]);
  return from_start && to_end && steps &&
         std::all_of(steps->begin(), steps->end(), [](int64_t step) { return step == 1; });
}

struct Candidate {
  std::string_view op_type;
  bool (*is_no_op)(const Node& node, const GraphEdit& edit);
};

constexpr Candidate kCandidates[] = {
    {"Identity", IsAlways},  {"Dropout", IsInferenceDropout},
    {"Cast", IsSameType},    {"Transpose", IsInOrder},
    {"Pad", PadsNothing},    {"Slice", SlicesAll},
    {"Concat", HasOneInput}, {"Sum", HasOneInput},
    {"Max", HasOneInput},    {"Min", HasOneInput},
    {"Mean", HasOneInput},
};

}  // namespace

base::Result<bool> NoOpElimination::Run(graph::Graph& graph) {
  GraphEdit edit(graph);
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.nodes.size()); ++id) {
    const Node& node = edit.node(id);
    if (!node.domain.empty() || node.inputs.empty() || node.inputs[0] == kNoValue ||
        node.outputs.empty() || node.outputs[0] == kNoValue) {
      continue;
    }
    const auto* found =
        std::find_if(std::begin(kCandidates), std::end(kCandidates),
                     [&](const Candidate& candidate) { return candidate.op_type == node.op_type; });
    if (found == std::end(kCandidates) || !found->is_no_op(node, edit)) continue;
    edit.Bypass(id, node.inputs[0]);
  }
  return edit.Finish();
}

}  // namespace onnxifi::ops
