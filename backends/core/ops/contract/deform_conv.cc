// SPDX-License-Identifier: Apache-2.0
//
// DeformConv: a convolution whose taps are moved by offsets that are data. A Map works out where
// each tap lies, once for all channels; another samples the taps of every channel, bilinearly and
// with 0 outside the input; a plain convolution over the samples sums them up for every output
// channel.

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
// Samples and tables that would be larger are made in bands of output rows, which use the same
// memory one after another. As many as kMaxBands have steps of their own.
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

// Where the taps of output rows [first, first + rows) lie, for all channels of an offset group:
// tables [N, taps, rows, ow, offset_group] of the four elements around a tap.
struct Corners {
  Operand places[4];   // int64, among all pixels of the input; -1 outside
  Operand weights[4];  // times the mask
};

Corners MakeCorners(Lowering& lowering, const Geometry& geometry, Dim first, Dim rows) {
  const Operand& x = lowering.In(0);
  const Operand& w = lowering.In(1);
  StepBuilder step(
      lowering, {x.shape[0], w.shape[2], w.shape[3], rows, geometry.out[3], geometry.offset_group});
  // Output rows of an input with `columns` numbers per tap, and of them number `column`.
  const auto per_tap = [&](int input, int64_t columns, int64_t column) {
    Operand band = program::Slice(lowering.In(input), 2, first, 1, rows);
    band = lowering.Reshaped(band, {band.shape[0], geometry.offset_group, w.shape[2], w.shape[3],
                                    columns, rows, band.shape[3]});
    band = program::RemoveAxis(program::Slice(band, 4, column, 1, 1), 4);
    return step.ReadArithmetic(program::Permute(band, {0, 2, 3, 4, 5, 1}));
  };
  const ElementType type = tensor::ArithmeticType(x.type());
  const Expr out[kSpatialRank] = {step.Coordinate(3) + step.Extent(first), step.Coordinate(4)};
  // Of the two elements around a tap along an axis.
  Expr at[kSpatialRank][2], is_inside[kSpatialRank][2], shares[kSpatialRank][2];
  for (int axis = 0; axis < kSpatialRank; ++axis) {
    const Expr start = out[axis] * step.Extent(geometry.sliding.strides[axis]) +
                       step.Coordinate(1 + axis) * step.Extent(geometry.sliding.dilations[axis]) -
                       step.Extent(geometry.sliding.pads_begin[axis]);
    const Expr position = Cast(start, type) + per_tap(2, kSpatialRank, axis);
    const Expr base = Unary(ExprOp::kFloor, position);
    shares[axis][1] = position - base;
    shares[axis][0] = Like(base, 1) - shares[axis][1];
    for (int side = 0; side < 2; ++side) {
      const Expr element = Cast(base, ElementType::kInt64) + step.Extent(side);
      at[axis][side] = element;
      is_inside[axis][side] =
          !(element < step.Extent(0)) && element < step.Extent(x.shape[2 + axis]);
    }
  }
  std::vector<Expr> values;
  for (int corner = 0; corner < 4; ++corner) {
    const int y = corner / 2, z = corner % 2;
    const Expr row = step.Coordinate(0) * step.Extent(x.shape[2]) + at[0][y];
    values.push_back(Select(is_inside[0][y] && is_inside[1][z],
                            row * step.Extent(x.shape[3]) + at[1][z], step.Extent(-1)));
  }
  for (int corner = 0; corner < 4; ++corner) {
    Expr weight = shares[0][corner / 2] * shares[1][corner % 2];
    if (lowering.Has(4)) weight = weight * per_tap(4, 1, 0);
    values.push_back(weight);
  }
  std::vector<Operand> tables;
  for (const Expr& value : values) {
    tables.push_back(lowering.Temporary(value.type(), step.domain()));
  }
  step.WriteMapTo(tables, values);
  Corners corners;
  const Shape joined = {x.shape[0], w.shape[2] * w.shape[3], rows, geometry.out[3],
                        geometry.offset_group};
  for (size_t k = 0; k < tables.size(); ++k) {
    (k < 4 ? corners.places[k] : corners.weights[k - 4]) = lowering.Reshaped(tables[k], joined);
  }
  return corners;
}

// [N, taps, rows, ow, C]: the taps of output rows [first, first + rows) of `image`
// [N * H * W, offset_group, C / offset_group], which has no axis of a single offset group.
Operand Sampled(Lowering& lowering, const Operand& image, const Corners& corners) {
  Shape domain = corners.places[0].shape;
  domain.push_back(image.shape.back());
  StepBuilder step(lowering, domain);
  const auto read = [&](const Operand& table) { return step.Read(program::InsertAxis(table, 5)); };
  const GuardedSource source(step, image, {0});
  Expr value = Constant(step.exprs(), image.type(), 0);
  for (int corner = 0; corner < 4; ++corner) {
    std::vector<Expr> at = {read(corners.places[corner])};
    if (image.rank() > 2) at.push_back(step.Coordinate(4));
    at.push_back(step.Coordinate(5));
    value = value + read(corners.weights[corner]) * source.At(at);
  }
  return step.WriteMap(value, image.type());
}

// Output rows [first, first + rows) of `out` [N, oh * ow, M], as a convolution with the kernel
// [taps, 1] over an image of the samples, of which each column is what one output pixel takes.
Status LowerBand(Lowering& lowering, const Geometry& geometry, const Operand& image,
                 const Operand& out, Dim first, Dim rows) {
  const Operand& x = lowering.In(0);
  const Operand& w = lowering.In(1);
  const Dim taps = w.shape[2] * w.shape[3];
  const Dim pixels = rows * geometry.out[3];
  const Corners corners = MakeCorners(lowering, geometry, first, rows);
  const Operand samples =
      lowering.Reshaped(Sampled(lowering, image, corners), {x.shape[0], taps, pixels, x.shape[1]});
  const Operand sampled = program::Permute(samples, {0, 3, 1, 2});
  const Operand weights = lowering.Reshaped(w, {w.shape[0], w.shape[1], taps, Dim(1)});
  StepBuilder step(lowering, {geometry.out[0], geometry.out[1], Dim(1), pixels});
  program::Contract contract;
  contract.form = program::Contract::Form::kConv;
  contract.inner.assign(weights.shape.begin() + 1, weights.shape.end());
  contract.a_spatial = {taps, pixels};
  contract.strides = {1, 1};
  contract.dilations = {1, 1};
  contract.pads_begin = {Dim(0), Dim(0)};
  contract.group = geometry.group;
  Expr value = SumOfProducts(step, {sampled}, {weights}, sampled.type(), contract);
  if (lowering.Has(3)) {
    ONNXIFI_ASSIGN_OR_RETURN(const Operand bias, ChannelVector(lowering, 3, 4, geometry.out[1]));
    value = value + Cast(step.Read(bias), value.type());
  }
  contract.roots = {Cast(value, out.type()).id()};
  const Operand band =
      program::Slice(program::Permute(out, {0, 2, 1}), 2, first * geometry.out[3], 1, pixels);
  step.Finish(std::move(contract), {program::InsertAxis(band, 2).view});
  return base::Ok();
}

// How many output rows are sampled at a time; 0: all, as where extents are symbols.
int64_t RowsOfBand(const Geometry& geometry, const Operand& x, const Operand& w) {
  // Per tap and pixel a sample of each channel, and four places and weights of each offset group.
  const int64_t size = tensor::SizeBytes(tensor::ArithmeticType(x.type()), 1);
  const Dim bytes = x.shape[1] * size +
                    geometry.offset_group * 4 * (static_cast<int64_t>(sizeof(int64_t)) + size);
  const Dim row = x.shape[0] * bytes * w.shape[2] * w.shape[3] * geometry.out[3];
  if (!row.is_constant() || !geometry.out[2].is_constant()) return 0;
  const int64_t row_bytes = row.constant();
  const int64_t fitting = std::max<int64_t>(kMaxSampledBytes / std::max<int64_t>(row_bytes, 1), 1);
  const int64_t rows = geometry.out[2].constant();
  return rows <= fitting ? 0 : std::max(fitting, (rows + kMaxBands - 1) / kMaxBands);
}

// X[N, C, H, W], W[M, C / group, kh, kw], offset[N, offset_group * kh * kw * 2, oh, ow], B[M],
// mask[N, offset_group * kh * kw, oh, ow]
Status LowerDeformConv(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  ONNXIFI_ASSIGN_OR_RETURN(const Geometry geometry, MakeGeometry(lowering));
  const Operand& x = lowering.In(0);
  const Operand& w = lowering.In(1);
  // Channels innermost, as places and weights hold for all of them.
  const Operand channels_last = lowering.CastTo(lowering.Dense(program::Permute(x, {0, 2, 3, 1})),
                                                tensor::ArithmeticType(x.type()));
  Shape pixels_first = {x.shape[0] * x.shape[2] * x.shape[3]};
  if (geometry.offset_group > 1) pixels_first.push_back(geometry.offset_group);
  pixels_first.push_back(FloorDiv(x.shape[1], geometry.offset_group));
  const Operand image = lowering.Reshaped(channels_last, pixels_first);
  const Operand out = lowering.Temporary(
      x.type(), {geometry.out[0], geometry.out[2] * geometry.out[3], geometry.out[1]});
  const Dim rows = geometry.out[2];
  const int64_t band = RowsOfBand(geometry, x, w);
  if (band == 0) {
    ONNXIFI_RETURN_IF_ERROR(LowerBand(lowering, geometry, image, out, 0, rows));
  } else {
    for (int64_t first = 0; first < rows.constant(); first += band) {
      ONNXIFI_RETURN_IF_ERROR(LowerBand(lowering, geometry, image, out, first,
                                        std::min(band, rows.constant() - first)));
    }
  }
  const Operand pixels =
      lowering.Reshaped(out, {geometry.out[0], geometry.out[2], geometry.out[3], geometry.out[1]});
  lowering.Set(0, program::Permute(pixels, {0, 3, 1, 2}));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"DeformConv", 22, LowerDeformConv},
};

}  // namespace

std::span<const Operator> DeformConvOperators() { return kOperators; }

}  // namespace onnxifi::ops
