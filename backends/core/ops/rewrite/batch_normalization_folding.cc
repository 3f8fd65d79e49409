// SPDX-License-Identifier: Apache-2.0
//
// BatchNormalizationFolding: matched from the normalisation; its producer must have no other
// reader.

#include "backends/core/ops/rewrite/batch_normalization_folding.h"

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

int64_t Int(const Node& node, std::string_view name, int64_t fallback) {
  const int64_t* value = node.FindAttribute<int64_t>(name);
  return value == nullptr ? fallback : *value;
}

float Float(const Node& node, std::string_view name, float fallback) {
  const float* value = node.FindAttribute<float>(name);
  return value == nullptr ? fallback : *value;
}

// Normalises by given statistics per channel, and nobody wants statistics back.
bool IsInference(const Node& node) {
  const bool has_one_output = std::all_of(node.outputs.begin() + 1, node.outputs.end(),
                                          [](ValueId output) { return output == kNoValue; });
  if (!has_one_output || Int(node, "training_mode", 0) != 0) return false;
  if (node.since_version < 7 && Int(node, "is_test", 0) == 0) return false;
  return node.since_version >= 9 || Int(node, "spatial", 1) != 0;
}

// Which axis of the weight counts output channels; nothing where the weights cannot take the scale.
std::optional<int> ChannelAxis(const Node& node, const Tensor& weight) {
  if (!node.domain.empty()) return std::nullopt;
  if (node.op_type == "Conv" && weight.rank() >= 3) return 0;
  if (node.op_type == "ConvTranspose" && weight.rank() >= 3 && Int(node, "group", 1) == 1) return 1;
  if (node.op_type == "Gemm" && weight.rank() == 2 && node.since_version >= 7 &&
      Float(node, "beta", 1.0f) == 1.0f) {
    return Int(node, "transB", 0) != 0 ? 0 : 1;
  }
  return std::nullopt;
}

// One number of a float type, to add to a vector.
Tensor Number(ElementType type, double value) {
  if (type == ElementType::kFloat64) {
    return Tensor::FromValues<double>(type, {1}, std::span<const double>(&value, 1));
  }
  const float narrow = static_cast<float>(value);
  return Tensor::FromValues<float>(type, {1}, std::span<const float>(&narrow, 1));
}

void EmitWeights(GraphEdit& edit, const Node& normalization, Node& producer, int channel_axis) {
  const Tensor weight = *edit.FindConstant(producer.inputs[1]);
  auto emit = [&](const char* op_type, int version, std::vector<ValueId> inputs) {
    return edit.InsertBefore(producer, op_type, version, std::move(inputs));
  };
  const ValueId epsilon =
      edit.AddConstant(normalization.name + "/epsilon",
                       Number(weight.type(), Float(normalization, "epsilon", 1e-5f)));
  const ValueId deviation = emit("Sqrt", 13, {emit("Add", 14, {normalization.inputs[4], epsilon})});
  const ValueId scale = emit("Div", 14, {normalization.inputs[1], deviation});

  std::vector<int64_t> extents(static_cast<size_t>(weight.rank()), 1);
  extents[static_cast<size_t>(channel_axis)] = -1;
  const ValueId shape =
      edit.AddConstant(normalization.name + "/shape",
                       Tensor::FromValues<int64_t>(ElementType::kInt64, {weight.rank()}, extents));
  const ValueId aligned = emit("Reshape", 14, {scale, shape});
  const bool has_bias = producer.inputs.size() > 2 && producer.inputs[2] != kNoValue;
  ValueId shift = emit("Mul", 14, {normalization.inputs[3], scale});
  shift = emit("Sub", 14, {normalization.inputs[2], shift});
  if (has_bias) {
    shift = emit("Add", 14, {emit("Mul", 14, {producer.inputs[2], scale}), shift});
  }
  producer.inputs[1] = emit("Mul", 14, {producer.inputs[1], aligned});
  producer.inputs.resize(2);
  producer.inputs.push_back(shift);
}

void Fold(GraphEdit& edit, NodeId id) {
  const Node& node = edit.node(id);
  if (node.op_type != "BatchNormalization" || !node.domain.empty() || node.inputs.size() != 5 ||
      node.outputs.empty() || node.outputs[0] == kNoValue || !IsInference(node)) {
    return;
  }
  Node* producer = edit.Producer(node.inputs[0]);
  if (producer == nullptr || producer->inputs.size() < 2 || edit.UseCount(node.inputs[0]) != 1) {
    return;
  }
  const Tensor* weight = edit.FindConstant(producer->inputs[1]);
  if (weight == nullptr ||
      (weight->type() != ElementType::kFloat32 && weight->type() != ElementType::kFloat64)) {
    return;
  }
  const std::optional<int> channel_axis = ChannelAxis(*producer, *weight);
  if (!channel_axis) return;
  const int64_t channels = weight->extents()[static_cast<size_t>(*channel_axis)];
  for (size_t k = 1; k < 5; ++k) {
    const Tensor* statistic = edit.FindConstant(node.inputs[k]);
    if (statistic == nullptr || statistic->type() != weight->type() || statistic->rank() != 1 ||
        statistic->extents()[0] != channels) {
      return;
    }
  }
  const bool has_bias = producer->inputs.size() > 2 && producer->inputs[2] != kNoValue;
  if (has_bias) {
    const Tensor* bias = edit.FindConstant(producer->inputs[2]);
    if (bias == nullptr || bias->rank() != 1 || bias->extents()[0] != channels) return;
  }
  EmitWeights(edit, node, *producer, *channel_axis);
  edit.Absorb(id, *producer);
}

}  // namespace

base::Result<bool> BatchNormalizationFolding::Run(graph::Graph& graph) {
  GraphEdit edit(graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) Fold(edit, id);
  return edit.Finish();
}

}  // namespace onnxifi::ops
