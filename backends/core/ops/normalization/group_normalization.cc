// SPDX-License-Identifier: Apache-2.0
//
// InstanceNormalization and GroupNormalization: per image, over the space of each channel, or of
// each group of channels.
//   y = (x - mean) / sqrt(variance + epsilon) * scale + bias
// Scale and bias are per channel; GroupNormalization-18 has them per group.

#include <numeric>

#include "backends/core/ops/normalization/channel.h"
#include "backends/core/ops/normalization/row.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// All axes from `first` on.
std::vector<int> AxesFrom(int first, int rank) {
  std::vector<int> axes(rank - first);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

Operand WriteNormalized(Lowering& lowering, const Operand& x, int first_row_axis,
                        const Operand& scale, const Operand& bias) {
  const ElementType type = tensor::ArithmeticType(x.type());
  RowBuilder row(lowering, x.shape, AxesFrom(first_row_axis, x.rank()));
  Expr element = row.Read(x, type);
  const RowBuilder::Moments moments = row.AddMoments(element);
  Expr epsilon = Like(element, lowering.Float("epsilon", 1e-5f));
  Expr inverse = Like(element, 1) / Unary(ExprOp::kSqrt, moments.variance + epsilon);
  Expr value = (element - moments.mean) * inverse * row.Read(scale, type) + row.Read(bias, type);
  Operand out = row.Write(value, x.type());
  row.Finish();
  return out;
}

Status LowerInstanceNormalization(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_RETURN_IF_ERROR(NeedRank(lowering, 3));
  ONNXIFI_ASSIGN_OR_RETURN(Operand scale, ChannelVector(lowering, x, 1));
  ONNXIFI_ASSIGN_OR_RETURN(Operand bias, ChannelVector(lowering, x, 2));

  lowering.Set(0, WriteNormalized(lowering, x, 2, scale, bias));
  return base::Ok();
}

// A vector per group, or per channel, over [groups, channels per group, space...].
Result<Operand> GroupVector(Lowering& lowering, int input, Dim groups, Dim per_group) {
  Operand vector = lowering.In(input);
  const bool is_per_channel = lowering.version() >= 21;
  if (vector.rank() != 1) {
    return Status(Code::kMismatchingShape, "GroupNormalization: Input " + std::to_string(input) +
                                               " has " + std::to_string(vector.rank()) +
                                               " axes and must have 1.");
  }
  ONNXIFI_RETURN_IF_ERROR(
      lowering.RequireEqual(vector.shape[0], is_per_channel ? lowering.In(0).shape[1] : groups,
                            "Length of input " + std::to_string(input) + " and the number of " +
                                (is_per_channel ? "channels" : "groups")));
  vector = lowering.Reshaped(vector, {groups, is_per_channel ? per_group : Dim(1)});
  while (vector.rank() < lowering.In(0).rank()) {
    vector = program::InsertAxis(vector, vector.rank());
  }
  return vector;
}

Status LowerGroupNormalization(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_RETURN_IF_ERROR(NeedRank(lowering, 2));
  const int64_t group_count = lowering.Int("num_groups", 0);
  if (group_count <= 0) {
    return lowering.InvalidModel("Number of groups (" + std::to_string(group_count) +
                                 ") is not positive.");
  }
  const Dim groups = group_count;
  const Dim channels = x.shape[1];
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(
      Equal(Mod(channels, groups), Dim(0)), Code::kInvalidModel,
      "Number of channels " + channels.ToString() + " is no multiple of the number of groups (" +
          std::to_string(group_count) + ").",
      {channels}));
  const Dim per_group = FloorDiv(channels, groups);
  ONNXIFI_ASSIGN_OR_RETURN(Operand scale, GroupVector(lowering, 1, groups, per_group));
  ONNXIFI_ASSIGN_OR_RETURN(Operand bias, GroupVector(lowering, 2, groups, per_group));

  Shape grouped = x.shape;
  grouped[1] = per_group;
  grouped.insert(grouped.begin() + 1, groups);
  const Operand out = WriteNormalized(lowering, lowering.Reshaped(x, grouped), 2, scale, bias);
  lowering.Set(0, lowering.Reshaped(out, x.shape));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"GroupNormalization", 21, LowerGroupNormalization},
    {"InstanceNormalization", 22, LowerInstanceNormalization},
};

}  // namespace

std::span<const Operator> GroupNormalizationOperators() { return kOperators; }

}  // namespace onnxifi::ops
