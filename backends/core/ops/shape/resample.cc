// SPDX-License-Identifier: Apache-2.0
//
// Resampling: formulas of ONNX's Resize. Linear and cubic kernels are separable, so each axis is a
// pass of its own.

#include "backends/core/ops/shape/resample.h"

#include "backends/core/ops/index/positions.h"

namespace onnxifi::ops {
namespace {

constexpr ElementType kReal = ElementType::kFloat64;

Expr Real(StepBuilder& step, Dim dim) { return Cast(step.Extent(dim), kReal); }
Expr Floor(Expr x) { return Unary(ExprOp::kFloor, x); }
Expr Ceil(Expr x) { return Unary(ExprOp::kCeil, x); }
Expr Abs(Expr x) { return Unary(ExprOp::kAbs, x); }

// Whether each operation that finds a position rounds to float32. A scale such as 1/3 is above or
// below what its exporter meant, by its own rounding to float32. Where a position is rounded to an
// element, float32 takes that back, as in ONNX Runtime and PyTorch: position 1 of a third lies at
// 3, at 2.9999999 in float64. With align_corners ONNX's expected values are those of float64.
bool RoundsPositions(const ResizedAxis& axis, const Resampling& how) {
  return how.kernel == Resampling::Kernel::kNearest && axis.is_float_scale &&
         how.coordinates != "align_corners" && !how.crops();
}

// Where output position `y` (float64) lies in the input. Quotients are float64's, which all devices
// round alike, and are then rounded.
Expr SourcePosition(StepBuilder& step, const ResizedAxis& axis, const Resampling& how, Expr y) {
  const bool rounds = RoundsPositions(axis, how);
  const auto rounded = [rounds](Expr value) {
    return rounds ? Cast(Cast(value, ElementType::kFloat32), kReal) : value;
  };
  const Expr scale = ScaleOf(step, axis);
  const Expr in = Real(step, axis.in);
  const Expr out = in * scale;
  const Expr one = Like(y, 1);
  const Expr half = Like(y, 0.5);
  const Expr is_single = out == one;
  if (how.coordinates == "asymmetric") return rounded(y / scale);
  if (how.coordinates == "align_corners") {
    return Select(is_single, Like(y, 0), y * (in - one) / (out - one));
  }
  if (how.crops()) {
    const Expr start = Cast(step.Read(*axis.roi_start), kReal);
    const Expr end = Cast(step.Read(*axis.roi_end), kReal);
    const Expr within = Select(is_single, (end - start) * (in - one) * half,
                               y * (end - start) * (in - one) / (out - one));
    return within + start * (in - one);
  }
  if (how.coordinates == "tf_half_pixel_for_nn") {
    // Half an element off; what is not resized stays, as in ONNX Runtime.
    return Select(scale == one, y, rounded((y + half) / scale));
  }
  const Expr half_pixel = rounded(rounded((y + half) / scale) - half);
  if (how.coordinates == "pytorch_half_pixel") {
    return Select(Real(step, axis.out) <= one, Like(y, 0), half_pixel);
  }
  if (how.coordinates == "half_pixel_symmetric") {
    const Expr adjustment = rounded(Real(step, axis.out) / rounded(out));
    const Expr offset = rounded(in * half * rounded(one - adjustment));
    return rounded(offset + (y + half) / scale - half);
  }
  return half_pixel;
}

Expr IsOutside(StepBuilder& step, const ResizedAxis& axis, Expr x) {
  return x < Like(x, 0) || x > Real(step, axis.in - 1);
}

Expr ClampToInput(StepBuilder& step, const ResizedAxis& axis, Expr position) {
  return Maximum(step.Extent(0), Minimum(position, step.Extent(axis.in - 1)));
}

// A table over positions along `axis`, laid over a domain of `rank` axes.
Operand Along(Operand table, int axis, int rank) {
  while (table.rank() < rank - axis) table = program::InsertAxis(table, table.rank());
  return table;
}

std::vector<Expr> CoordinatesBut(StepBuilder& step, int rank, int axis, Expr position) {
  std::vector<Expr> at;
  for (int k = 0; k < rank; ++k) at.push_back(k == axis ? position : step.Coordinate(k));
  return at;
}

// The element nearest to `x`. What lies within 1e-6 of the middle between two is meant to lie in
// the middle: position 19 at a scale of 1.3 is 14.5, and 14.5000010 in float32. So does ONNX
// Runtime.
Expr NearestPosition(StepBuilder& step, const ResizedAxis& axis, const Resampling& how, Expr x) {
  const Expr half = Like(x, 0.5);
  if (how.nearest == "round_prefer_floor" || how.nearest == "round_prefer_ceil") {
    const Expr below = Floor(x);
    const Expr is_middle = Abs(x - below - half) <= Like(x, 1e-6);
    const Expr middle = how.nearest == "round_prefer_ceil" ? below + Like(x, 1) : below;
    return Select(is_middle, middle, Floor(x + half));
  }
  if (how.nearest == "ceil") return Ceil(x);
  if (how.nearest == "floor") return Floor(x);
  return Select(ScaleOf(step, axis) < Like(x, 1), Ceil(x), Floor(x));
}

// One Map over all axes: each position is looked up in its axis' table.
Operand ResampleNearest(Lowering& lowering, const Operand& x, const std::vector<ResizedAxis>& axes,
                        const Resampling& how) {
  Shape shape = x.shape;
  for (const ResizedAxis& axis : axes) shape[axis.axis] = axis.out;
  std::vector<Operand> positions;
  std::vector<Operand> outside;
  for (const ResizedAxis& axis : axes) {
    StepBuilder table(lowering, {axis.out});
    const Expr source = SourcePosition(table, axis, how, Cast(table.Coordinate(0), kReal));
    const Expr nearest = Cast(NearestPosition(table, axis, how, source), ElementType::kInt64);
    positions.push_back(lowering.Temporary(ElementType::kInt64, {axis.out}));
    outside.push_back(lowering.Temporary(ElementType::kBool, {axis.out}));
    table.WriteMapTo({positions.back(), outside.back()},
                     {ClampToInput(table, axis, nearest), IsOutside(table, axis, source)});
  }
  StepBuilder map(lowering, shape);
  std::vector<Expr> at;
  std::vector<int> checked;
  for (int k = 0; k < x.rank(); ++k) at.push_back(map.Coordinate(k));
  for (size_t k = 0; k < axes.size(); ++k) {
    at[axes[k].axis] = map.Read(Along(positions[k], axes[k].axis, x.rank()));
    checked.push_back(axes[k].axis);
  }
  Expr value = ReadGuarded(map, x, at, checked);
  for (size_t k = 0; k < axes.size() && how.crops(); ++k) {
    const Expr is_outside = map.Read(Along(outside[k], axes[k].axis, x.rank()));
    value = Select(is_outside, Like(value, how.extrapolation), value);
  }
  return map.WriteMap(value, x.type());
}

// Kernels of reach 1 (linear) and 2 (cubic), at distance `d` in output pixels.
Expr Weight(const Resampling& how, Expr d) {
  const Expr a = Abs(d);
  const Expr zero = Like(a, 0);
  if (how.kernel == Resampling::Kernel::kLinear) return Maximum(zero, Like(a, 1) - a);
  const double c = how.cubic_a;
  const Expr near = ((Like(a, c + 2) * a - Like(a, c + 3)) * a) * a + Like(a, 1);
  const Expr far = ((Like(a, c) * a - Like(a, 5 * c)) * a + Like(a, 8 * c)) * a - Like(a, 4 * c);
  return Select(a <= Like(a, 1), near, Select(a < Like(a, 2), far, zero));
}

// How many elements contribute to one: twice the kernel's reach, stretched by 1 / scale where
// antialiasing shrinks.
Dim TapCount(Lowering& lowering, const ResizedAxis& axis, const Resampling& how) {
  const Dim reach = how.kernel == Resampling::Kernel::kLinear ? 1 : 2;
  if (!how.antialias) return Dim(2) * reach;
  if (!axis.scale) {
    return Dim(2) * CeilDiv(reach * Max(axis.numerator, axis.denominator), axis.numerator);
  }
  StepBuilder map(lowering, {Dim(1)});
  const Expr scale = ScaleOf(map, axis);
  const Expr taps = Like(scale, 2) * Ceil(Real(map, reach) / Minimum(scale, Like(scale, 1)));
  // A scale that no extent bears would ask for more taps than there are elements; the extent is
  // refused elsewhere.
  const Expr bounded = Minimum(taps, Like(taps, 0x1p40));
  const Operand number = map.WriteMap(Cast(bounded, ElementType::kInt64), ElementType::kInt64);
  return lowering.ReadAtRunTime(number, 1, /*lower=*/0).front();
}

struct Taps {
  Dim count;
  Operand positions;  // int64 [out, count]
  Operand weights;    // [out, count], of the type that sums are made in; each row sums to 1
  Operand outside;    // bool [out, count], the same along a row
};

Taps MakeTaps(Lowering& lowering, const ResizedAxis& axis, const Resampling& how,
              ElementType accumulator) {
  Taps taps;
  taps.count = TapCount(lowering, axis, how);
  const Shape domain = {axis.out, taps.count};
  StepBuilder row(lowering, domain);
  const Expr source = SourcePosition(row, axis, how, Cast(row.Coordinate(0), kReal));
  const Expr position = Cast(Floor(source), ElementType::kInt64) + row.Coordinate(1) -
                        row.Extent(FloorDiv(taps.count, 2) - 1);
  Expr distance = Cast(position, kReal) - source;
  if (how.antialias) distance = distance * Minimum(ScaleOf(row, axis), Like(distance, 1));
  Expr weight = Weight(how, distance);
  if (how.exclude_outside) {
    const Expr is_inside = row.Extent(0) <= position && position < row.Extent(axis.in);
    weight = Select(is_inside, weight, Like(weight, 0));
  }
  program::Row body;
  body.axes = 1;
  const Expr sum = State(row.exprs(), kReal, 0);
  program::Row::Pass pass;
  pass.reduction.states = {{kReal, Like(weight, 0).id(), (sum + weight).id(),
                            (sum + Other(row.exprs(), kReal, 0)).id()}};
  pass.results = {sum.id()};
  body.passes.push_back(std::move(pass));
  const Expr total = RowResult(row.exprs(), kReal, 0, 0);
  const Expr share = weight / Select(total == Like(total, 0), Like(total, 1), total);
  body.roots = {ClampToInput(row, axis, position).id(), Cast(share, accumulator).id(),
                IsOutside(row, axis, source).id()};
  taps.positions = lowering.Temporary(ElementType::kInt64, domain);
  taps.weights = lowering.Temporary(accumulator, domain);
  taps.outside = lowering.Temporary(ElementType::kBool, domain);
  row.Finish(std::move(body), {taps.positions.view, taps.weights.view, taps.outside.view});
  return taps;
}

// Column `tap` of a table of taps.
Operand Column(const Operand& table, int64_t tap) {
  return program::RemoveAxis(program::Slice(table, 1, tap, 1, 1), 1);
}

// One axis by weights. Few taps are unrolled in a Map; the many of antialiasing are a Reduce.
Operand ResampleAxis(Lowering& lowering, const Operand& x, const ResizedAxis& axis,
                     const Resampling& how, ElementType accumulator) {
  constexpr int64_t kMaxUnrolled = 4;
  const Taps taps = MakeTaps(lowering, axis, how, accumulator);
  const int rank = x.rank();
  Shape shape = x.shape;
  shape[axis.axis] = axis.out;
  auto extrapolated = [&](StepBuilder& step, const Operand& outside, Expr value) {
    if (!how.crops()) return value;
    return Select(step.Read(outside), Like(value, how.extrapolation), value);
  };
  if (taps.count.is_constant() && taps.count.constant() <= kMaxUnrolled) {
    StepBuilder map(lowering, shape);
    const GuardedSource source(map, x, {axis.axis});
    Expr sum = Constant(map.exprs(), accumulator, 0);
    for (int64_t tap = 0; tap < taps.count.constant(); ++tap) {
      const Expr at = map.Read(Along(Column(taps.positions, tap), axis.axis, rank));
      const Expr weight = map.Read(Along(Column(taps.weights, tap), axis.axis, rank));
      const Expr element = source.At(CoordinatesBut(map, rank, axis.axis, at));
      sum = sum + weight * Cast(element, accumulator);
    }
    const Operand outside = Along(Column(taps.outside, 0), axis.axis, rank);
    return map.WriteMap(extrapolated(map, outside, sum), accumulator);
  }

  Shape domain = shape;
  domain.push_back(taps.count);
  // The table's axes [out, tap] stand at `axis` and last.
  auto over_domain = [&](Operand table) {
    for (int k = axis.axis + 1; k < rank; ++k) {
      table = program::InsertAxis(table, table.rank() - 1);
    }
    return table;
  };
  StepBuilder step(lowering, domain);
  const Expr at = step.Read(over_domain(taps.positions));
  const Expr element = ReadGuarded(step, x, CoordinatesBut(step, rank, axis.axis, at), {axis.axis});
  const Expr sum = State(step.exprs(), accumulator, 0);
  const Expr share = step.Read(over_domain(taps.weights)) * Cast(element, accumulator);
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.reduction.states = {{accumulator, Like(share, 0).id(), (sum + share).id(),
                              (sum + Other(step.exprs(), accumulator, 0)).id()}};
  reduce.roots = {sum.id()};
  Operand out = lowering.Temporary(accumulator, shape);
  step.Finish(std::move(reduce), {out.view});
  if (!how.crops()) return out;
  StepBuilder map(lowering, shape);
  const Operand outside = Along(Column(taps.outside, 0), axis.axis, rank);
  return map.WriteMap(extrapolated(map, outside, map.ReadView(out.view)), accumulator);
}

// What shrinks first, so that later passes have less to do, then from the innermost axis on, so
// that the pass whose elements lie apart has least to do.
std::vector<ResizedAxis> InOrderOfPasses(const std::vector<ResizedAxis>& axes) {
  auto shrinks = [](const ResizedAxis& axis) {
    const Dim is_less = Less(axis.numerator, axis.denominator);
    return is_less.is_constant() && is_less.constant() != 0;
  };
  std::vector<ResizedAxis> ordered;
  for (const ResizedAxis& axis : axes) {
    if (shrinks(axis)) ordered.push_back(axis);
  }
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (!shrinks(*axis)) ordered.push_back(*axis);
  }
  return ordered;
}

}  // namespace

Expr ScaleOf(StepBuilder& step, const ResizedAxis& axis) {
  if (axis.scale) return Cast(step.Read(*axis.scale), kReal);
  return Real(step, axis.numerator) / Real(step, axis.denominator);
}

Operand Resample(Lowering& lowering, const Operand& x, const std::vector<ResizedAxis>& axes,
                 const Resampling& how) {
  if (axes.empty()) return x;
  if (how.kernel == Resampling::Kernel::kNearest) return ResampleNearest(lowering, x, axes, how);

  const ElementType type = x.type();
  const ElementType accumulator = tensor::ArithmeticType(type) == ElementType::kFloat64
                                      ? ElementType::kFloat64
                                      : ElementType::kFloat32;
  Operand result = x;
  for (const ResizedAxis& axis : InOrderOfPasses(axes)) {
    result = ResampleAxis(lowering, result, axis, how, accumulator);
  }
  if (!tensor::IsInteger(type)) return lowering.CastTo(result, type);
  StepBuilder map(lowering, result.shape);
  const Expr rounded = Unary(ExprOp::kRoundEven, map.ReadView(result.view));
  const Expr clamped = Minimum(Maximum(rounded, Like(rounded, tensor::Lowest(type))),
                               Like(rounded, tensor::LargestFinite(type)));
  return map.WriteMap(clamped, type);
}

}  // namespace onnxifi::ops
