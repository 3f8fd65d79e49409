// SPDX-License-Identifier: Apache-2.0
//
// AffineFolding: matched from the node that goes; what it reads must have no other reader.

#include "backends/core/ops/rewrite/affine_folding.h"

#include <algorithm>
#include <map>

#include "backends/core/ops/rewrite/channel_affine.h"
#include "backends/core/ops/rewrite/graph_edit.h"

namespace onnxifi::ops {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

// By producer, in the order of the nodes.
using Affines = std::map<const Node*, ChannelAffine>;

// Normalises by given statistics per channel, and nobody wants statistics back.
bool IsInference(const Node& node) {
  const bool has_one_output = std::all_of(node.outputs.begin() + 1, node.outputs.end(),
                                          [](ValueId output) { return output == kNoValue; });
  if (!has_one_output || AttributeOr<int64_t>(node, "training_mode", 0) != 0) return false;
  if (node.since_version < 7 && AttributeOr<int64_t>(node, "is_test", 0) == 0) return false;
  return node.since_version >= 9 || AttributeOr<int64_t>(node, "spatial", 1) != 0;
}

// What is gathered so far, or can be gathered, behind the producer of `value`.
std::optional<ChannelAffine> AffineBehind(GraphEdit& edit, const Affines& affines, ValueId value) {
  Node* producer = edit.Producer(value);
  if (producer == nullptr || edit.UseCount(value) != 1) return std::nullopt;
  auto found = affines.find(producer);
  return found == affines.end() ? ChannelAffine::Make(edit, *producer) : found->second;
}

// (x - mean) * scale / sqrt(var + epsilon) + B
bool FoldNormalization(const Node& node, ChannelAffine& affine) {
  if (!IsInference(node) || !affine.TakesScale()) return false;
  for (size_t k = 1; k < 5; ++k) {
    if (!affine.IsVector(node.inputs[k])) return false;
  }
  const ValueId epsilon = affine.EmitNumber(AttributeOr(node, "epsilon", 1e-5f));
  const ValueId variance = affine.Emit("Add", 14, {node.inputs[4], epsilon});
  const ValueId deviation = affine.Emit("Sqrt", 13, {variance});
  affine.Subtract(node.inputs[3]);
  affine.Multiply(affine.Emit("Div", 14, {node.inputs[1], deviation}));
  affine.Add(node.inputs[2]);
  return true;
}

// Sub from the operand, Mul and Div, which scale.
bool FoldScale(const Node& node, size_t side, ValueId operand, ChannelAffine& affine) {
  if (node.op_type == "Sub") {
    affine.SubtractFrom(operand);
  } else if (node.op_type == "Mul") {
    affine.Multiply(operand);
  } else if (side == 0) {
    affine.Divide(operand);
  } else {
    return false;
  }
  return true;
}

bool FoldArithmetic(const Node& node, size_t side, ChannelAffine& affine) {
  const ValueId operand = node.inputs[1 - side];
  if (!affine.Accepts(operand)) return false;
  if (node.op_type == "Add") {
    affine.Add(operand);
  } else if (node.op_type == "Sub" && side == 0) {
    affine.Subtract(operand);
  } else {
    return affine.TakesScale() && FoldScale(node, side, operand, affine);
  }
  return true;
}

void FoldIntoProducer(GraphEdit& edit, NodeId id, Affines& affines) {
  const Node& node = edit.node(id);
  if (!node.domain.empty() || node.outputs.empty() || node.outputs[0] == kNoValue) return;
  const bool is_normalization = node.op_type == "BatchNormalization" && node.inputs.size() == 5;
  const bool is_arithmetic = node.since_version >= 7 && node.inputs.size() == 2 &&
                             (node.op_type == "Add" || node.op_type == "Sub" ||
                              node.op_type == "Mul" || node.op_type == "Div");
  if (!is_normalization && !is_arithmetic) return;
  for (size_t side = 0; side < (is_arithmetic ? 2u : 1u); ++side) {
    std::optional<ChannelAffine> affine = AffineBehind(edit, affines, node.inputs[side]);
    if (!affine ||
        !(is_arithmetic ? FoldArithmetic(node, side, *affine) : FoldNormalization(node, *affine))) {
      continue;
    }
    edit.Absorb(id, affine->producer());
    affines.insert_or_assign(&affine->producer(), *affine);
    return;
  }
}

}  // namespace

base::Result<bool> AffineFolding::Run(graph::Graph& graph) {
  GraphEdit edit(graph);
  Affines affines;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id)
    FoldIntoProducer(edit, id, affines);
  for (auto& [producer, affine] : affines) affine.Apply();
  return edit.Finish();
}

}  // namespace onnxifi::ops
