// SPDX-License-Identifier: Apache-2.0
//
// ChannelAffine: what is multiplied with and added to each channel of a convolution or product,
// gathered over a chain of nodes, then written into its weights and bias once.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REWRITE_CHANNEL_AFFINE_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REWRITE_CHANNEL_AFFINE_H_

#include <optional>

#include "backends/core/ops/rewrite/graph_edit.h"

namespace onnxifi::ops {

// y = producer * scale + shift, one number of each per channel. The numbers are values that nodes
// on constants make, put in before the producer, which constant folding evaluates afterwards.
class ChannelAffine {
 public:
  // For a Conv, a ConvTranspose, a Gemm of beta 1, or a MatMul of two matrices, of which weights
  // and bias are constants of float32 or float64: narrower types would round once less. Nothing for
  // any other node. Changes nothing. `edit` and `producer` must outlive it.
  static std::optional<ChannelAffine> Make(GraphEdit& edit, graph::Node& producer);

  // Whether `value` is a constant of the producer's type with one number per channel or one for
  // all, that stretches along every other axis of the producer's result.
  bool Accepts(graph::ValueId value) const;
  // Whether `value` is a constant of the producer's type that has `channels` numbers in one row.
  bool IsVector(graph::ValueId value) const;
  // Whether new weights are worth it: evaluated, they take the place of the old ones or are small.
  bool TakesScale() const;

  // What a node does to the result so far. Each of the values is one that Accepts or IsVector says
  // yes to, or one that Emit made of such, of `channels` numbers.
  void Add(graph::ValueId value);
  void Subtract(graph::ValueId value);
  void SubtractFrom(graph::ValueId value);
  void Multiply(graph::ValueId value);
  void Divide(graph::ValueId value);

  // A node on constants before the producer; the value it makes.
  graph::ValueId Emit(const char* op_type, int since_version, graph::ValueIds inputs);
  // One number of the producer's type.
  graph::ValueId EmitNumber(double number);

  // Gives the producer its new weights and bias; a MatMul that gets a bias becomes a Gemm. Called
  // once, last.
  void Apply();
  graph::Node& producer() { return *producer_; }

 private:
  ChannelAffine(GraphEdit& edit, graph::Node& producer) : edit_(&edit), producer_(&producer) {}

  bool TakesBias() const;
  // The value in one row of `channels` numbers.
  graph::ValueId Vector(graph::ValueId value);
  graph::ValueId EmitExtents(const std::vector<int64_t>& extents);
  // The scale stretched as the weights have to be multiplied with it.
  graph::ValueId AlignedScale(const tensor::Extents& weight);

  GraphEdit* edit_;
  graph::Node* producer_;
  tensor::ElementType type_ = tensor::ElementType::kUndefined;
  int rank_ = 0;          // of the producer's result, whose channels are axis 1
  int channel_axis_ = 0;  // of the weights
  int64_t groups_ = 1;    // that the channels are counted in, where `channel_axis_` counts one's
  int64_t channels_ = 0;
  graph::ValueId scale_ = graph::kNoValue;  // kNoValue: one
  graph::ValueId shift_ = graph::kNoValue;  // kNoValue: zero
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REWRITE_CHANNEL_AFFINE_H_
