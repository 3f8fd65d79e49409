// SPDX-License-Identifier: Apache-2.0
//
// BiasFolding: matched from the Add; its producer must have no other reader.

#include "backends/core/ops/rewrite/bias_folding.h"

#include <algorithm>

#include "backends/core/ops/rewrite/graph_edit.h"

namespace onnxifi::ops {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::ElementType;
using tensor::Tensor;

bool HasBias(const Node& node) { return node.inputs.size() > 2 && node.inputs[2] != kNoValue; }

// The addend as one number per channel, where it stretches along every axis but axis 1 of `rank`.
std::optional<Tensor> ChannelBias(const Tensor& addend, int rank, int64_t channels) {
  const int channel_axis = addend.rank() - (rank - 1);
  if (channel_axis < 0 || channel_axis > 1) return std::nullopt;
  for (int axis = 0; axis < addend.rank(); ++axis) {
    if (addend.extents()[axis] != (axis == channel_axis ? channels : 1)) return std::nullopt;
  }
  return addend.Reshaped({channels});
}

// The bias that `producer` can take; nothing where it cannot.
std::optional<Tensor> BiasFor(const GraphEdit& edit, const Node& producer, const Tensor& addend) {
  const Tensor* weight =
      producer.inputs.size() > 1 ? edit.FindConstant(producer.inputs[1]) : nullptr;
  if (weight == nullptr || !producer.domain.empty() || weight->type() != addend.type()) {
    return std::nullopt;
  }
  if (producer.op_type == "Conv" && !HasBias(producer) && weight->rank() >= 3) {
    return ChannelBias(addend, weight->rank(), weight->extents()[0]);
  }
  if (producer.op_type == "ConvTranspose" && !HasBias(producer) && weight->rank() >= 3) {
    const int64_t* group = producer.FindAttribute<int64_t>("group");
    return ChannelBias(addend, weight->rank(),
                       weight->extents()[1] * (group == nullptr ? 1 : *group));
  }
  if (producer.op_type == "MatMul" && weight->rank() == 2) {
    const auto* a = edit.ExtentsOf(producer.inputs[0]);
    const bool is_matrix = a != nullptr && a->size() == 2;
    if (is_matrix && addend.rank() == 1) return ChannelBias(addend, 2, weight->extents()[1]);
  }
  return std::nullopt;
}

bool Fold(GraphEdit& edit, NodeId id) {
  const Node& add = edit.node(id);
  if (add.op_type != "Add" || !add.domain.empty() || add.since_version < 7 ||
      add.inputs.size() != 2 || add.outputs.empty() || add.outputs[0] == kNoValue) {
    return false;
  }
  for (size_t side = 0; side < 2; ++side) {
    const Tensor* addend = edit.FindConstant(add.inputs[side]);
    Node* producer = edit.Producer(add.inputs[1 - side]);
    if (addend == nullptr || producer == nullptr || edit.UseCount(add.inputs[1 - side]) != 1) {
      continue;
    }
    if (addend->type() != ElementType::kFloat32 && addend->type() != ElementType::kFloat64)
      continue;
    std::optional<Tensor> bias = BiasFor(edit, *producer, *addend);
    if (!bias) continue;
    producer->inputs.resize(2);
    producer->inputs.push_back(edit.AddConstant(producer->name + "/bias", *std::move(bias)));
    if (producer->op_type == "MatMul") {
      producer->op_type = "Gemm";
      producer->since_version = 13;
      producer->attributes.clear();
    }
    edit.Absorb(id, *producer);
    return true;
  }
  return false;
}

}  // namespace

base::Result<bool> BiasFolding::Run(graph::Graph& graph) {
  GraphEdit edit(graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) Fold(edit, id);
  return edit.Finish();
}

}  // namespace onnxifi::ops
