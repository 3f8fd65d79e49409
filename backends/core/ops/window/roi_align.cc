// SPDX-License-Identifier: Apache-2.0
//
// RoiAlign: a Reduce over the sampling points of each bin, each a bilinear read. How many points an
// adaptive bin has depends on the regions; the most that any needs is read when the program runs,
// and smaller bins leave the rest out.

#include <limits>

#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

constexpr int64_t kMaxPoints = 4096;

struct RoiAttributes {
  bool is_half_pixel = true;
  bool takes_max = false;
  float scale = 1;
  int64_t sampling_ratio = 0;
  int64_t height = 1, width = 1;
};

// One axis of a region, per region: where it starts, how long a bin is, how many points a bin has.
struct RoiAxis {
  Expr start;
  Expr bin;
  Expr points;  // of the arithmetic type, a whole number
};

// Columns of a region: x1, y1, x2, y2. `trailing` axes follow the regions' in the step's domain.
RoiAxis MakeRoiAxis(StepBuilder& step, const RoiAttributes& attributes, const Operand& rois,
                    bool is_width, int trailing) {
  auto edge = [&](int column) {
    Expr value = step.ReadArithmetic(IndexColumn(rois, column, trailing));
    return value * Like(value, attributes.scale) -
           Like(value, attributes.is_half_pixel ? 0.5 : 0.0);
  };
  RoiAxis axis;
  axis.start = edge(is_width ? 0 : 1);
  Expr length = edge(is_width ? 2 : 3) - axis.start;
  if (!attributes.is_half_pixel) length = Maximum(length, Like(length, 1));
  const int64_t bins = is_width ? attributes.width : attributes.height;
  axis.bin = length / Like(length, static_cast<double>(bins));
  axis.points = attributes.sampling_ratio > 0
                    ? Like(length, static_cast<double>(attributes.sampling_ratio))
                    : Unary(ExprOp::kCeil, axis.bin);
  return axis;
}

// The most points along an axis that any region has.
Result<Dim> MaxPoints(Lowering& lowering, const RoiAttributes& attributes, const Operand& rois) {
  if (attributes.sampling_ratio > 0) return Dim(attributes.sampling_ratio);
  StepBuilder step(lowering, {rois.shape[0]});
  const RoiAxis x = MakeRoiAxis(step, attributes, rois, /*is_width=*/true, 0);
  const RoiAxis y = MakeRoiAxis(step, attributes, rois, /*is_width=*/false, 0);
  const Expr points = Maximum(x.points, y.points);
  // NaN compares false.
  const Expr bounded =
      Select(points > Like(points, 0), Minimum(points, Like(points, 0x1p30)), Like(points, 0));
  const Expr count = Cast(bounded, ElementType::kInt64);
  const Expr most = State(step.exprs(), ElementType::kInt64, 0);
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.reduction.states = {{ElementType::kInt64, step.Extent(0).id(), Maximum(most, count).id(),
                              Maximum(most, Other(step.exprs(), ElementType::kInt64, 0)).id()}};
  reduce.roots = {most.id()};
  const Operand number = lowering.Temporary(ElementType::kInt64, {});
  step.Finish(std::move(reduce), {number.view});
  const Dim found = lowering.ReadAtRunTime(lowering.Reshaped(number, {Dim(1)}), 1, 0).front();
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(Less(found, kMaxPoints + 1), Code::kUnsupportedShape,
                                           "A region has " + found.ToString() +
                                               " sampling points per bin, more than the " +
                                               std::to_string(kMaxPoints) + " supported.",
                                           {found}));
  return found;
}

// A sampling coordinate between two pixels.
struct Between {
  Expr is_outside;
  Expr low, high;  // int64
  Expr low_weight, high_weight;
};

Between MakeBetween(StepBuilder& step, Expr x, Dim extent) {
  const Expr size = Cast(step.Extent(extent), x.type());
  const Expr last = step.Extent(extent - 1);
  Between between;
  between.is_outside = x < Like(x, -1) || x > size;
  const Expr clamped = Minimum(Maximum(x, Like(x, 0)), Cast(last, x.type()));
  const Expr base = Unary(ExprOp::kFloor, clamped);
  between.low = Cast(base, ElementType::kInt64);
  between.high = Minimum(between.low + step.Extent(1), last);
  between.high_weight = clamped - base;
  between.low_weight = Like(x, 1) - between.high_weight;
  return between;
}

Result<RoiAttributes> ReadAttributes(Lowering& lowering) {
  RoiAttributes attributes;
  const std::string mode = lowering.String("mode", "avg");
  if (mode != "avg" && mode != "max") {
    return lowering.UnsupportedAttribute("mode '" + mode + "' is neither avg nor max.");
  }
  attributes.takes_max = mode == "max";
  const std::string transform =
      lowering.String("coordinate_transformation_mode",
                      lowering.version() < 16 ? "output_half_pixel" : "half_pixel");
  if (transform != "half_pixel" && transform != "output_half_pixel") {
    return lowering.UnsupportedAttribute("coordinate_transformation_mode '" + transform +
                                         "' is neither half_pixel nor output_half_pixel.");
  }
  attributes.is_half_pixel = transform == "half_pixel";
  attributes.scale = lowering.Float("spatial_scale", 1.0f);
  attributes.sampling_ratio = lowering.Int("sampling_ratio", 0);
  attributes.height = lowering.Int("output_height", 1);
  attributes.width = lowering.Int("output_width", 1);
  if (attributes.height < 1 || attributes.width < 1 || attributes.sampling_ratio < 0 ||
      attributes.sampling_ratio > kMaxPoints) {
    return lowering.InvalidModel("output_height, output_width and sampling_ratio are " +
                                 std::to_string(attributes.height) + ", " +
                                 std::to_string(attributes.width) + " and " +
                                 std::to_string(attributes.sampling_ratio) +
                                 "; the lowest are 1, 1 and 0, the largest "
                                 "sampling_ratio " +
                                 std::to_string(kMaxPoints) + ".");
  }
  return attributes;
}

// X[N, C, H, W], rois[R, 4], batch_indices[R] -> [R, C, output_height, output_width]
Status LowerRoiAlign(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  const Operand& x = lowering.In(0);
  const Operand& rois = lowering.In(1);
  const Operand& batches = lowering.In(2);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  if (rois.type() != x.type()) return lowering.UnsupportedType(1);
  if (!tensor::IsInteger(batches.type())) return lowering.UnsupportedType(2);
  if (x.rank() != 4 || rois.rank() != 2 || batches.rank() != 1) {
    return lowering.InvalidModel("X, rois and batch_indices have " + std::to_string(x.rank()) +
                                 ", " + std::to_string(rois.rank()) + " and " +
                                 std::to_string(batches.rank()) + " axes instead of 4, 2 and 1.");
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(rois.shape[1], 4, "The columns of rois and 4"));
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(rois.shape[0], batches.shape[0],
                                                "The numbers of rois and batch_indices"));
  ONNXIFI_ASSIGN_OR_RETURN(const RoiAttributes attributes, ReadAttributes(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const Dim most, MaxPoints(lowering, attributes, rois));

  const Shape shape = {rois.shape[0], x.shape[1], attributes.height, attributes.width};
  Shape domain = shape;
  domain.insert(domain.end(), {most, most});
  StepBuilder step(lowering, domain);
  const RoiAxis axes[2] = {MakeRoiAxis(step, attributes, rois, /*is_width=*/false, 5),
                           MakeRoiAxis(step, attributes, rois, /*is_width=*/true, 5)};
  const ElementType type = axes[0].start.type();
  Between between[2];
  Expr is_point = step.Extent(0) == step.Extent(0);
  for (int k = 0; k < 2; ++k) {
    const Expr bin = Cast(step.Coordinate(2 + k), type);
    const Expr point = Cast(step.Coordinate(4 + k), type);
    is_point = is_point && point < axes[k].points;
    const Expr at = axes[k].start + bin * axes[k].bin +
                    (point + Like(point, 0.5)) * axes[k].bin / axes[k].points;
    between[k] = MakeBetween(step, at, x.shape[2 + k]);
  }
  Operand aligned = batches;
  while (aligned.rank() < 6) aligned = program::InsertAxis(aligned, aligned.rank());
  const Expr batch = Cast(step.Read(aligned), ElementType::kInt64);
  const GuardedSource source(step, x, {0, 2, 3});
  auto corner = [&](Expr row, Expr column, Expr weight) {
    const Expr element = source.At({batch, step.Coordinate(1), row, column});
    const Expr product = weight * Cast(element, type);
    return Select(between[0].is_outside || between[1].is_outside, Like(product, 0), product);
  };
  const Between& y = between[0];
  const Between& across = between[1];
  const Expr corners[4] = {corner(y.low, across.low, y.low_weight * across.low_weight),
                           corner(y.low, across.high, y.low_weight * across.high_weight),
                           corner(y.high, across.low, y.high_weight * across.low_weight),
                           corner(y.high, across.high, y.high_weight * across.high_weight)};
  const Expr state = State(step.exprs(), type, 0);
  const Expr other = Other(step.exprs(), type, 0);
  program::Reduce reduce;
  reduce.axes = 2;
  const Expr zero = Like(state, 0);
  const Expr count = axes[0].points * axes[1].points;
  Expr result;
  if (attributes.takes_max) {
    const Expr none = Like(state, -std::numeric_limits<double>::infinity());
    const Expr largest = Maximum(Maximum(corners[0], corners[1]), Maximum(corners[2], corners[3]));
    reduce.reduction.states = {{type, none.id(),
                                Maximum(state, Select(is_point, largest, none)).id(),
                                Maximum(state, other).id()}};
    result = Select(state == none, zero, state);
  } else {
    // Divided within the sum, since what depends on the region is not known after it.
    const Expr sum = corners[0] + corners[1] + corners[2] + corners[3];
    const Expr share = sum / Maximum(count, Like(count, 1));
    reduce.reduction.states = {
        {type, zero.id(), (state + Select(is_point, share, zero)).id(), (state + other).id()}};
    result = state;
  }
  reduce.roots = {Cast(result, x.type()).id()};
  const Operand out = lowering.Temporary(x.type(), shape);
  step.Finish(std::move(reduce), {out.view});
  lowering.Set(0, out);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"RoiAlign", 22, LowerRoiAlign},
};

}  // namespace

std::span<const Operator> RoiAlignOperators() { return kOperators; }

}  // namespace onnxifi::ops
