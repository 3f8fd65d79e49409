// SPDX-License-Identifier: Apache-2.0
//
// RoiAlign: interpolation between elements is separable, so each bin is a sum over some rows and
// columns of the image. Which ones, and their weights, are worked out once per region and bin into
// small tables. How many points an adaptive bin has depends on the regions; the most that any needs
// is read when the program runs, and smaller bins leave the rest out.

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

// The elements along one axis that contribute to each bin of each region, with their weights.
struct Taps {
  Dim count;
  Operand positions;  // int64 [region, bin, tap]; -1 where a bin has fewer
  Operand weights;    // [region, bin, tap]; for averages their sum over a bin's taps is at most 1
};

// Sampling points of an axis, as a step needs them whose domain begins with [region, bin].
struct Points {
  RoiAxis axis;
  Expr bin;
  Expr last;  // the largest coordinate of the input

  // Point `point` clamped to the input, and whether it counts.
  Expr At(Expr point) const {
    return axis.start + bin * axis.bin + (point + Like(point, 0.5)) * axis.bin / axis.points;
  }
  Expr Clamped(Expr at) const { return Minimum(Maximum(at, Like(at, 0)), last); }
  Expr IsInside(Expr at) const { return !(at < Like(at, -1) || at > last + Like(at, 1)); }
};

Points MakePoints(StepBuilder& step, const RoiAttributes& attributes, const Operand& rois,
                  bool is_width, Dim extent) {
  const int trailing = static_cast<int>(step.domain().size()) - 1;
  const RoiAxis axis = MakeRoiAxis(step, attributes, rois, is_width, trailing);
  const ElementType type = axis.start.type();
  return {axis, Cast(step.Coordinate(1), type), Cast(step.Extent(extent - 1), type)};
}

// Two taps per point: the elements on both sides of it. Points that a bin lacks are taps of nothing
// for averages, and the last point once more for maxima.
Taps MakeTapsPerPoint(Lowering& lowering, const RoiAttributes& attributes, const Operand& rois,
                      bool is_width, Dim most, Dim extent) {
  const int64_t bins = is_width ? attributes.width : attributes.height;
  Taps taps{Dim(2) * most, {}, {}};
  const Shape domain = {rois.shape[0], bins, taps.count};
  StepBuilder step(lowering, domain);
  const Points points = MakePoints(step, attributes, rois, is_width, extent);
  const ElementType type = points.bin.type();
  const Expr tap = step.Coordinate(2);
  const Expr half = tap / step.Extent(2);
  Expr point = Cast(half, type);
  const Expr zero = Like(point, 0);
  const Expr count = points.axis.points;
  Expr counts = point < count;
  if (attributes.takes_max) {
    counts = zero < count;
    point = Minimum(point, count - Like(point, 1));
  }
  const Expr at = points.At(point);
  const Expr clamped = points.Clamped(at);
  const Expr base = Unary(ExprOp::kFloor, clamped);
  const Expr is_high = !(tap == half + half);
  const Expr position = Cast(base, ElementType::kInt64) + Cast(is_high, ElementType::kInt64);
  const Expr above = clamped - base;
  Expr weight = Select(is_high, above, Like(above, 1) - above);
  if (!attributes.takes_max) weight = weight / count;
  const Expr is_taken = counts && points.IsInside(at);
  taps.positions = lowering.Temporary(ElementType::kInt64, domain);
  taps.weights = lowering.Temporary(type, domain);
  step.WriteMapTo({taps.positions, taps.weights},
                  {Select(is_taken, Minimum(position, step.Extent(extent - 1)), step.Extent(-1)),
                   Select(is_taken, weight, zero)});
  return taps;
}

// One tap per element between a bin's first and last point, where points lie less than an element
// apart: there are fewer of them than sides of points.
Taps MakeTapsPerElement(Lowering& lowering, const RoiAttributes& attributes, const Operand& rois,
                        bool is_width, Dim most, Dim extent) {
  const int64_t bins = is_width ? attributes.width : attributes.height;
  Taps taps{most + 1, {}, {}};
  const Shape shape = {rois.shape[0], bins, taps.count};
  Shape domain = shape;
  domain.push_back(most);
  auto position_of = [](StepBuilder& step, const Points& points) {
    const Expr first = points.Clamped(points.At(Like(points.bin, 0)));
    return Cast(Unary(ExprOp::kFloor, first), ElementType::kInt64) + step.Coordinate(2);
  };
  StepBuilder sum(lowering, domain);
  const Points points = MakePoints(sum, attributes, rois, is_width, extent);
  const ElementType type = points.bin.type();
  const Expr point = Cast(sum.Coordinate(3), type);
  const Expr zero = Like(point, 0);
  const Expr at = points.At(point);
  const Expr distance =
      Unary(ExprOp::kAbs, Cast(position_of(sum, points), type) - points.Clamped(at));
  const Expr share = Maximum(zero, Like(distance, 1) - distance) / points.axis.points;
  const Expr is_taken = point < points.axis.points && points.IsInside(at);
  const Expr state = State(sum.exprs(), type, 0);
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.reduction.states = {{type, zero.id(), (state + Select(is_taken, share, zero)).id(),
                              (state + Other(sum.exprs(), type, 0)).id()}};
  reduce.roots = {state.id()};
  taps.weights = lowering.Temporary(type, shape);
  sum.Finish(std::move(reduce), {taps.weights.view});

  StepBuilder place(lowering, shape);
  const Points places = MakePoints(place, attributes, rois, is_width, extent);
  const Expr weight = place.Read(taps.weights);
  const Expr position = position_of(place, places);
  taps.positions = lowering.Temporary(ElementType::kInt64, shape);
  place.WriteMapTo({taps.positions},
                   {Select(weight == Like(weight, 0), place.Extent(-1), position)});
  return taps;
}

Taps MakeTaps(Lowering& lowering, const RoiAttributes& attributes, const Operand& rois,
              bool is_width, Dim most, Dim extent) {
  const bool is_per_element = attributes.sampling_ratio == 0 && !attributes.takes_max;
  return (is_per_element ? MakeTapsPerElement : MakeTapsPerPoint)(lowering, attributes, rois,
                                                                  is_width, most, extent);
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

  const Taps rows = MakeTaps(lowering, attributes, rois, /*is_width=*/false, most, x.shape[2]);
  const Taps columns = MakeTaps(lowering, attributes, rois, /*is_width=*/true, most, x.shape[3]);

  // Channels innermost: what is told per tap holds for all of them.
  const Operand image = lowering.Dense(program::Permute(x, {0, 2, 3, 1}));
  const Shape shape = {rois.shape[0], attributes.height, attributes.width, x.shape[1]};
  Shape domain = shape;
  domain.insert(domain.end(), {rows.count, columns.count});
  StepBuilder step(lowering, domain);
  // Tables over [region, bin, tap] and [region], laid over the domain.
  auto over_domain = [](Operand table, bool is_width) {
    table = program::InsertAxis(table, is_width ? 1 : 2);
    table = program::InsertAxis(table, 3);
    return program::InsertAxis(table, is_width ? 4 : 5);
  };
  Operand images = batches;
  while (images.rank() < 6) images = program::InsertAxis(images, images.rank());
  const Expr batch = Cast(step.Read(images), ElementType::kInt64);
  const Expr weight = step.Read(over_domain(rows.weights, /*is_width=*/false)) *
                      step.Read(over_domain(columns.weights, /*is_width=*/true));
  const ElementType type = weight.type();
  const Expr element = ReadGuarded(
      step, image,
      {batch, step.Read(over_domain(rows.positions, /*is_width=*/false)),
       step.Read(over_domain(columns.positions, /*is_width=*/true)), step.Coordinate(3)},
      {0, 1, 2});
  const Expr product = weight * Cast(element, type);
  const Expr state = State(step.exprs(), type, 0);
  const Expr other = Other(step.exprs(), type, 0);
  program::Reduce reduce;
  reduce.axes = 2;
  Expr result = state;
  if (attributes.takes_max) {
    const Expr none = Like(state, -std::numeric_limits<double>::infinity());
    reduce.reduction.states = {
        {type, none.id(), Maximum(state, product).id(), Maximum(state, other).id()}};
    result = Select(state == none, Like(state, 0), state);
  } else {
    reduce.reduction.states = {
        {type, Like(state, 0).id(), (state + product).id(), (state + other).id()}};
  }
  reduce.roots = {Cast(result, x.type()).id()};
  const Operand out = lowering.Temporary(x.type(), shape);
  step.Finish(std::move(reduce), {out.view});
  lowering.Set(0, program::Permute(out, {0, 3, 1, 2}));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"RoiAlign", 22, LowerRoiAlign},
};

}  // namespace

std::span<const Operator> RoiAlignOperators() { return kOperators; }

}  // namespace onnxifi::ops
