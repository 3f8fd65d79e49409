// SPDX-License-Identifier: Apache-2.0
//
// DeformConv: a convolution whose taps are moved by offsets that are data: a Reduce over channels
// and taps, each tap a bilinear read of which the part outside the input is 0.

#include "backends/core/ops/contract/product.h"
#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/window/sliding.h"

namespace onnxifi::ops {
namespace {

constexpr int kSpatialRank = 2;

Result<int64_t> Groups(Lowering& lowering, std::string_view attribute, Dim channels) {
  const int64_t groups = lowering.Int(attribute, 1);
  if (groups < 1) {
    return lowering.InvalidModel(std::string(attribute) + " (" + std::to_string(groups) +
                                 ") is less than 1.");
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(Equal(Mod(channels, groups), 0), Code::kMismatchingShape,
                                           "The channels (" + channels.ToString() +
                                               ") are not a multiple of " + std::string(attribute) +
                                               " (" + std::to_string(groups) + ").",
                                           {channels}));
  return groups;
}

// X[N, C, H, W], W[M, C / group, kh, kw], offset[N, offset_group * kh * kw * 2, oh, ow], B[M],
// mask[N, offset_group * kh * kw, oh, ow]
Status LowerDeformConv(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  const Operand& x = lowering.In(0);
  const Operand& w = lowering.In(1);
  const Operand& offset = lowering.In(2);
  for (int input = 0; input < lowering.input_count(); ++input) {
    if (!lowering.Has(input)) continue;
    const ElementType type = lowering.In(input).type();
    if (!tensor::IsFloat(type) || type != x.type()) return lowering.UnsupportedType(input);
    const int rank = input == 3 ? 1 : kSpatialRank + 2;
    if (lowering.In(input).rank() != rank) {
      return lowering.UnsupportedShape(
          "Input " + std::to_string(input) + " has " + std::to_string(lowering.In(input).rank()) +
          " axes instead of the " + std::to_string(rank) + " supported.");
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t group, Groups(lowering, "group", w.shape[0]));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t offset_group,
                           Groups(lowering, "offset_group", x.shape[1]));
  const Dim channels = w.shape[1];
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(x.shape[1], channels * Dim(group),
                                                "The channels of X and of W times group"));
  ONNXIFI_ASSIGN_OR_RETURN(const Sliding sliding, MakeSliding(lowering, {x.shape[2], x.shape[3]},
                                                              {w.shape[2], w.shape[3]}));
  const Dim taps = w.shape[2] * w.shape[3];
  const Shape shape = {x.shape[0], w.shape[0], sliding.out[0], sliding.out[1]};
  for (int input : {2, 4}) {
    if (!lowering.Has(input)) continue;
    const Dim depth = taps * Dim(offset_group * (input == 2 ? kSpatialRank : 1));
    const Shape expected = {shape[0], depth, shape[2], shape[3]};
    for (int axis = 0; axis < 4; ++axis) {
      ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
          lowering.In(input).shape[axis], expected[axis],
          "Extents of axis " + std::to_string(axis) + " of input " + std::to_string(input)));
    }
  }

  Shape domain = shape;
  domain.insert(domain.end(), {channels, w.shape[2], w.shape[3]});
  StepBuilder step(lowering, domain);
  const Expr n = step.Coordinate(0);
  const Expr m = step.Coordinate(1);
  const Expr c = step.Coordinate(4);
  const Expr tap = step.Coordinate(5) * step.Extent(w.shape[3]) + step.Coordinate(6);
  const Expr channel = m / step.Extent(FloorDiv(w.shape[0], group)) * step.Extent(channels) + c;
  const Expr offset_tap =
      channel / step.Extent(FloorDiv(x.shape[1], offset_group)) * step.Extent(taps) + tap;
  const ElementType type = tensor::ArithmeticType(x.type());
  Expr low[kSpatialRank];
  Expr part[kSpatialRank];
  for (int axis = 0; axis < kSpatialRank; ++axis) {
    const Expr row = offset_tap * step.Extent(kSpatialRank) + step.Extent(axis);
    const Expr moved =
        Cast(step.ReadAt(offset, {n, row, step.Coordinate(2), step.Coordinate(3)}), type);
    const Expr start = step.Coordinate(2 + axis) * step.Extent(sliding.strides[axis]) +
                       step.Coordinate(5 + axis) * step.Extent(sliding.dilations[axis]) -
                       step.Extent(sliding.pads_begin[axis]);
    const Expr position = Cast(start, type) + moved;
    const Expr base = Unary(ExprOp::kFloor, position);
    low[axis] = Cast(base, ElementType::kInt64);
    part[axis] = position - base;
  }
  const GuardedSource source(step, x, {1, 2, 3});
  Expr value = Constant(step.exprs(), type, 0);
  for (int dy = 0; dy < 2; ++dy) {
    for (int dx = 0; dx < 2; ++dx) {
      const Expr one = Like(value, 1);
      const Expr weight = (dy ? part[0] : one - part[0]) * (dx ? part[1] : one - part[1]);
      const Expr element =
          source.At({n, channel, low[0] + step.Extent(dy), low[1] + step.Extent(dx)});
      value = value + weight * Cast(element, type);
    }
  }
  const Expr weight = step.ReadAt(w, {m, c, step.Coordinate(5), step.Coordinate(6)});
  value = value * Cast(weight, type);
  if (lowering.Has(4)) {
    const Expr mask =
        step.ReadAt(lowering.In(4), {n, offset_tap, step.Coordinate(2), step.Coordinate(3)});
    value = value * Cast(mask, type);
  }
  const Expr sum = State(step.exprs(), type, 0);
  program::Reduce reduce;
  reduce.axes = 3;
  reduce.reduction.states = {
      {type, Like(value, 0).id(), (sum + value).id(), (sum + Other(step.exprs(), type, 0)).id()}};
  reduce.roots = {sum.id()};
  const Operand summed = lowering.Temporary(type, shape);
  step.Finish(std::move(reduce), {summed.view});

  StepBuilder map(lowering, shape);
  Expr result = map.ReadView(summed.view);
  if (lowering.Has(3)) {
    ONNXIFI_ASSIGN_OR_RETURN(const Operand bias, ChannelVector(lowering, 3, x.rank(), shape[1]));
    result = result + Cast(map.Read(bias), type);
  }
  lowering.Set(0, map.WriteMap(result, x.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"DeformConv", 22, LowerDeformConv},
};

}  // namespace

std::span<const Operator> DeformConvOperators() { return kOperators; }

}  // namespace onnxifi::ops
