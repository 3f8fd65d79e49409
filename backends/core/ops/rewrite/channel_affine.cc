// SPDX-License-Identifier: Apache-2.0
//
// ChannelAffine: only vectors of one number per channel are computed with on the way, so that the
// weights are multiplied once however long the chain is.

#include "backends/core/ops/rewrite/channel_affine.h"

#include <algorithm>
#include <span>
#include <utility>

#include "backends/core/graph/constant_folding.h"

namespace onnxifi::ops {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueIds;
using tensor::ElementType;
using tensor::Tensor;

namespace {

bool HasBias(const Node& node) { return node.inputs.size() > 2 && node.inputs[2] != kNoValue; }

// Which axis of the weights counts output channels; nothing where they cannot take a scale.
std::optional<int> ChannelAxis(const GraphEdit& edit, const Node& node, const Tensor& weight) {
  if (!node.domain.empty()) return std::nullopt;
  if (node.op_type == "Conv" && weight.rank() >= 3) return 0;
  if (node.op_type == "ConvTranspose" && weight.rank() >= 3) return 1;
  if (node.op_type == "Gemm" && weight.rank() == 2 && node.since_version >= 7 &&
      AttributeOr(node, "beta", 1.0f) == 1.0f) {
    return AttributeOr<int64_t>(node, "transB", 0) != 0 ? 0 : 1;
  }
  if (node.op_type == "MatMul" && weight.rank() == 2) {
    const auto* a = edit.ExtentsOf(node.inputs[0]);
    if (a != nullptr && a->size() == 2) return 1;
  }
  return std::nullopt;
}

// One number for each channel, which is axis 1 of `rank`, or one for all.
bool IsPerChannel(const tensor::Extents& extents, int rank, int64_t channels) {
  const int operand_rank = static_cast<int>(extents.size());
  if (operand_rank > rank) return false;
  const int channel_axis = operand_rank - (rank - 1);
  for (int axis = 0; axis < operand_rank; ++axis) {
    const int64_t extent = extents[static_cast<size_t>(axis)];
    if (extent != 1 && (axis != channel_axis || extent != channels)) return false;
  }
  return true;
}

}  // namespace

std::optional<ChannelAffine> ChannelAffine::Make(GraphEdit& edit, Node& producer) {
  if (producer.inputs.size() < 2) return std::nullopt;
  const Tensor* weight = edit.FindConstant(producer.inputs[1]);
  if (weight == nullptr ||
      (weight->type() != ElementType::kFloat32 && weight->type() != ElementType::kFloat64)) {
    return std::nullopt;
  }
  const std::optional<int> channel_axis = ChannelAxis(edit, producer, *weight);
  if (!channel_axis) return std::nullopt;
  ChannelAffine affine(edit, producer);
  affine.type_ = weight->type();
  affine.rank_ = weight->rank();
  affine.channel_axis_ = *channel_axis;
  if (producer.op_type == "ConvTranspose")
    affine.groups_ = AttributeOr<int64_t>(producer, "group", 1);
  if (affine.groups_ < 1 || weight->extents()[0] % affine.groups_ != 0 ||
      __builtin_mul_overflow(weight->extents()[static_cast<size_t>(*channel_axis)], affine.groups_,
                             &affine.channels_)) {
    return std::nullopt;
  }
  if (HasBias(producer)) {
    if (!affine.TakesBias()) return std::nullopt;
    affine.shift_ = producer.inputs[2];
  }
  return affine;
}

bool ChannelAffine::TakesBias() const {
  const ValueId bias = producer_->inputs[2];
  return producer_->op_type == "Gemm" ? Accepts(bias) : IsVector(bias);
}

bool ChannelAffine::Accepts(ValueId value) const {
  const Tensor* constant = edit_->FindConstant(value);
  return constant != nullptr && constant->type() == type_ &&
         IsPerChannel(constant->extents(), rank_, channels_);
}

bool ChannelAffine::IsVector(ValueId value) const {
  const Tensor* constant = edit_->FindConstant(value);
  return constant != nullptr && constant->type() == type_ && constant->rank() == 1 &&
         constant->extents()[0] == channels_;
}

bool ChannelAffine::TakesScale() const {
  const ValueId weight = producer_->inputs[1];
  return edit_->UseCount(weight) == 1 ||
         edit_->FindConstant(weight)->size_bytes() <= graph::kMaxFoldedBytes;
}

void ChannelAffine::Add(ValueId value) {
  value = Vector(value);
  shift_ = shift_ == kNoValue ? value : Emit("Add", 14, {Vector(shift_), value});
}

void ChannelAffine::Subtract(ValueId value) {
  value = Vector(value);
  shift_ = shift_ == kNoValue ? Emit("Neg", 13, {value}) : Emit("Sub", 14, {Vector(shift_), value});
}

void ChannelAffine::SubtractFrom(ValueId value) {
  value = Vector(value);
  scale_ = scale_ == kNoValue ? Vector(EmitNumber(-1)) : Emit("Neg", 13, {scale_});
  shift_ = shift_ == kNoValue ? value : Emit("Sub", 14, {value, Vector(shift_)});
}

void ChannelAffine::Multiply(ValueId value) {
  value = Vector(value);
  scale_ = scale_ == kNoValue ? value : Emit("Mul", 14, {scale_, value});
  if (shift_ != kNoValue) shift_ = Emit("Mul", 14, {Vector(shift_), value});
}

void ChannelAffine::Divide(ValueId value) {
  value = Vector(value);
  scale_ = scale_ == kNoValue ? Emit("Reciprocal", 13, {value}) : Emit("Div", 14, {scale_, value});
  if (shift_ != kNoValue) shift_ = Emit("Div", 14, {Vector(shift_), value});
}

ValueId ChannelAffine::Emit(const char* op_type, int since_version, ValueIds inputs) {
  return edit_->InsertBefore(*producer_, op_type, since_version, std::move(inputs));
}

ValueId ChannelAffine::EmitNumber(double number) {
  const float narrow = static_cast<float>(number);
  return edit_->AddConstant(
      producer_->name + "/number",
      type_ == ElementType::kFloat64
          ? Tensor::FromValues<double>(type_, {1}, std::span<const double>(&number, 1))
          : Tensor::FromValues<float>(type_, {1}, std::span<const float>(&narrow, 1)));
}

ValueId ChannelAffine::EmitExtents(const std::vector<int64_t>& extents) {
  return edit_->AddConstant(
      producer_->name + "/extents",
      Tensor::FromValues<int64_t>(ElementType::kInt64, {static_cast<int64_t>(extents.size())},
                                  extents));
}

ValueId ChannelAffine::Vector(ValueId value) {
  // What was emitted is one already.
  if (edit_->FindConstant(value) == nullptr || IsVector(value)) return value;
  const Tensor constant = *edit_->FindConstant(value);
  const std::string name = producer_->name + "/channels";
  if (constant.element_count() == channels_) {
    return edit_->AddConstant(name, constant.Reshaped({channels_}));
  }
  const ValueId number = edit_->AddConstant(name, constant.Reshaped({1}));
  return Emit("Expand", 13, {number, EmitExtents({channels_})});
}

ValueId ChannelAffine::AlignedScale(const tensor::Extents& weight) {
  std::vector<int64_t> extents(weight.size(), 1);
  extents[static_cast<size_t>(channel_axis_)] = weight[static_cast<size_t>(channel_axis_)];
  ValueId scale = scale_;
  if (groups_ > 1) {
    // The weights of a ConvTranspose are [groups * C, M, ...], its channels [groups * M].
    const int64_t inputs = weight[0] / groups_;
    scale = Emit("Reshape", 14, {scale, EmitExtents({groups_, 1, weight[1]})});
    scale = Emit("Expand", 13, {scale, EmitExtents({groups_, inputs, weight[1]})});
    extents[0] = weight[0];
  }
  return Emit("Reshape", 14, {scale, EmitExtents(extents)});
}

void ChannelAffine::Apply() {
  if (scale_ != kNoValue) {
    const tensor::Extents weight = edit_->FindConstant(producer_->inputs[1])->extents();
    producer_->inputs[1] = Emit("Mul", 14, {producer_->inputs[1], AlignedScale(weight)});
  }
  if (shift_ == kNoValue) return;
  producer_->inputs.resize(2);
  producer_->inputs.push_back(shift_);
  if (producer_->op_type == "MatMul") {
    producer_->op_type = "Gemm";
    producer_->since_version = 13;
    producer_->attributes.clear();
  }
}

}  // namespace onnxifi::ops
