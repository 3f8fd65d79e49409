// SPDX-License-Identifier: Apache-2.0
//
// DeformConv: a convolution whose taps are moved by offsets that are data: a Map samples the taps
// of every channel, bilinearly and with 0 outside the input, and a convolution of 1 x 1 over what
// it sampled sums them up for every output channel.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/core/ops/contract/product.h"
#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"
#include "backends/core/ops/window/sliding.h"

namespace onnxifi::ops {
namespace {

constexpr int kSpatialRank = 2;
// A sampled tensor that would be larger is made in bands of output rows, which use the same memory
// one after another. As many as kMaxBands have steps of their own.
constexpr int64_t kMaxSampledBytes = int64_t{1} << 24;
constexpr int64_t kMaxBands = 64;

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

struct Geometry {
  Sliding sliding;
  int64_t group = 1;
  int64_t offset_group = 1;
  Shape out;  // N, M, oh, ow
};

Result<Geometry> MakeGeometry(Lowering& lowering) {
  const Operand& x = lowering.In(0);
  const Operand& w = lowering.In(1);
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
  Geometry geometry;
  ONNXIFI_ASSIGN_OR_RETURN(geometry.group, Groups(lowering, "group", w.shape[0]));
  ONNXIFI_ASSIGN_OR_RETURN(geometry.offset_group, Groups(lowering, "offset_group", x.shape[1]));
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(x.shape[1], w.shape[1] * Dim(geometry.group),
                                                "The channels of X and of W times group"));
  ONNXIFI_ASSIGN_OR_RETURN(
      geometry.sliding, MakeSliding(lowering, {x.shape[2], x.shape[3]}, {w.shape[2], w.shape[3]}));
  geometry.out = {x.shape[0], w.shape[0], geometry.sliding.out[0], geometry.sliding.out[1]};
  for (int input : {2, 4}) {
    if (!lowering.Has(input)) continue;
    const Dim depth =
        w.shape[2] * w.shape[3] * Dim(geometry.offset_group * (input == 2 ? kSpatialRank : 1));
    const Shape expected = {geometry.out[0], depth, geometry.out[2], geometry.out[3]};
    for (int axis = 0; axis < 4; ++axis) {
      ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
          lowering.In(input).shape[axis], expected[axis],
          "Extents of axis " + std::to_string(axis) + " of input " + std::to_string(input)));
    }
  }
  return geometry;
}

// [N, C, kh, kw, rows, ow]: the taps of output rows [first, first + rows), times the mask.
Operand Sampled(Lowering& lowering, const Geometry& geometry, Dim first, Dim rows) {
  const Operand& x = lowering.In(0);
  const Operand& w = lowering.In(1);
  const Dim taps = w.shape[2] * w.shape[3];
  StepBuilder step(lowering,
                   {x.shape[0], x.shape[1], w.shape[2], w.shape[3], rows, geometry.out[3]});
  const Expr n = step.Coordinate(0);
  const Expr channel = step.Coordinate(1);
  const Expr tap = step.Coordinate(2) * step.Extent(w.shape[3]) + step.Coordinate(3);
  const Expr out[kSpatialRank] = {step.Coordinate(4) + step.Extent(first), step.Coordinate(5)};
  const Expr offset_tap =
      channel / step.Extent(FloorDiv(x.shape[1], geometry.offset_group)) * step.Extent(taps) + tap;
  const ElementType type = tensor::ArithmeticType(x.type());
  Expr low[kSpatialRank];
  Expr part[kSpatialRank];
  for (int axis = 0; axis < kSpatialRank; ++axis) {
    const Expr row = offset_tap * step.Extent(kSpatialRank) + step.Extent(axis);
    const Expr moved = Cast(step.ReadAt(lowering.In(2), {n, row, out[0], out[1]}), type);
    const Expr start = out[axis] * step.Extent(geometry.sliding.strides[axis]) +
                       step.Coordinate(2 + axis) * step.Extent(geometry.sliding.dilations[axis]) -
                       step.Extent(geometry.sliding.pads_begin[axis]);
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
  if (lowering.Has(4)) {
    value = value * Cast(step.ReadAt(lowering.In(4), {n, offset_tap, out[0], out[1]}), type);
  }
  return step.WriteMap(value, type);
}

// Output rows [first, first + rows) of `out`.
Status LowerBand(Lowering& lowering, const Geometry& geometry, const Operand& out, Dim first,
                 Dim rows) {
  const Operand& x = lowering.In(0);
  const Operand& w = lowering.In(1);
  const Dim taps = w.shape[2] * w.shape[3];
  const Operand sampled = lowering.Reshaped(Sampled(lowering, geometry, first, rows),
                                            {x.shape[0], x.shape[1] * taps, rows, geometry.out[3]});
  const Operand weights = lowering.Reshaped(w, {w.shape[0], w.shape[1] * taps, Dim(1), Dim(1)});
  StepBuilder step(lowering, {geometry.out[0], geometry.out[1], rows, geometry.out[3]});
  program::Contract contract;
  contract.form = program::Contract::Form::kConv;
  contract.inner.assign(weights.shape.begin() + 1, weights.shape.end());
  contract.a_spatial = {rows, geometry.out[3]};
  contract.strides = {1, 1};
  contract.dilations = {1, 1};
  contract.pads_begin = {Dim(0), Dim(0)};
  contract.group = geometry.group;
  Expr value = SumOfProducts(step, {sampled}, {weights}, sampled.type(), contract);
  if (lowering.Has(3)) {
    ONNXIFI_ASSIGN_OR_RETURN(const Operand bias,
                             ChannelVector(lowering, 3, x.rank(), geometry.out[1]));
    value = value + Cast(step.Read(bias), value.type());
  }
  contract.roots = {Cast(value, x.type()).id()};
  step.Finish(std::move(contract), {program::Slice(out, 2, first, 1, rows).view});
  return base::Ok();
}

// How many output rows are sampled at a time; 0: all, as where extents are symbols.
int64_t RowsOfBand(const Geometry& geometry, const Operand& x, const Operand& w) {
  const Dim row = x.shape[0] * x.shape[1] * w.shape[2] * w.shape[3] * geometry.out[3];
  if (!row.is_constant() || !geometry.out[2].is_constant()) return 0;
  const int64_t row_bytes = tensor::SizeBytes(tensor::ArithmeticType(x.type()), row.constant());
  const int64_t fitting = std::max<int64_t>(kMaxSampledBytes / std::max<int64_t>(row_bytes, 1), 1);
  const int64_t rows = geometry.out[2].constant();
  return rows <= fitting ? 0 : std::max(fitting, (rows + kMaxBands - 1) / kMaxBands);
}

// X[N, C, H, W], W[M, C / group, kh, kw], offset[N, offset_group * kh * kw * 2, oh, ow], B[M],
// mask[N, offset_group * kh * kw, oh, ow]
Status LowerDeformConv(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  ONNXIFI_ASSIGN_OR_RETURN(const Geometry geometry, MakeGeometry(lowering));
  const Operand out = lowering.Temporary(lowering.In(0).type(), geometry.out);
  const Dim rows = geometry.out[2];
  const int64_t band = RowsOfBand(geometry, lowering.In(0), lowering.In(1));
  if (band == 0) {
    ONNXIFI_RETURN_IF_ERROR(LowerBand(lowering, geometry, out, 0, rows));
  } else {
    for (int64_t first = 0; first < rows.constant(); first += band) {
      ONNXIFI_RETURN_IF_ERROR(
          LowerBand(lowering, geometry, out, first, std::min(band, rows.constant() - first)));
    }
  }
  lowering.Set(0, out);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"DeformConv", 22, LowerDeformConv},
};

}  // namespace

std::span<const Operator> DeformConvOperators() { return kOperators; }

}  // namespace onnxifi::ops
