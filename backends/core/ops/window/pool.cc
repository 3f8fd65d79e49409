// SPDX-License-Identifier: Apache-2.0
//
// MaxPool, AveragePool, LpPool and their global forms: one Window step each; of large overlapping
// maxima one per axis, of small ones whose positions are wanted a Map over the taps; of sums of
// powers the root of an average, for which devices have kernels.

#include <limits>
#include <optional>

#include "backends/core/ops/registry.h"
#include "backends/core/ops/window/sliding.h"

namespace onnxifi::ops {
namespace {

using program::Window;

// A global pooling is a window that covers the input and stands still.
Sliding GlobalSliding(const Shape& in) {
  Sliding sliding;
  sliding.in = in;
  sliding.kernel = in;
  sliding.strides.assign(in.size(), 1);
  sliding.dilations.assign(in.size(), 1);
  sliding.pads_begin.assign(in.size(), 0);
  sliding.pads_end.assign(in.size(), 0);
  sliding.out.assign(in.size(), 1);
  return sliding;
}

// p is an integer, but opset 1 declares a float.
Result<int64_t> Power(Lowering& lowering) {
  if (lowering.version() >= 2) return lowering.Int("p", 2);
  const float p = lowering.Float("p", 2.0f);
  if (!(p >= 1.0f && p <= 1024.0f) || p != static_cast<float>(static_cast<int64_t>(p))) {
    return lowering.UnsupportedAttribute("p (" + std::to_string(p) +
                                         ") is not an integer in [1, 1024].");
  }
  return static_cast<int64_t>(p);
}

// Average and Lp pooling are defined on floats; max pooling on 8-bit integers as well.
Status CheckType(Lowering& lowering, Window::Kind kind) {
  const ElementType type = lowering.In(0).type();
  const bool is_byte = type == ElementType::kInt8 || type == ElementType::kUint8;
  if (tensor::IsFloat(type) || (kind == Window::Kind::kMax && is_byte)) return base::Ok();
  return lowering.UnsupportedType(0);
}

// Whether maxima along one axis after the other take at most half of the comparisons. The last axis
// is first: it is reduced for every row that a window behind it sees.
bool IsWorthSplitting(const Sliding& sliding) {
  double together = 1, rows = 1, apart = 0;
  for (size_t axis = 0; axis < sliding.kernel.size(); ++axis) {
    if (!sliding.kernel[axis].is_constant()) return false;
    const auto kernel = static_cast<double>(sliding.kernel[axis].constant());
    together *= kernel;
    apart += rows * kernel;
    rows *= static_cast<double>(sliding.strides[axis]);
  }
  constexpr double kStep = 2;  // what one more result is worth, written and read
  return together >= 2 * (apart + kStep);
}

// The windows of one axis; along the other axes they stand on each element.
Window AlongAxis(const Window& all, const Shape& in, size_t axis) {
  Window window = all;
  window.in_spatial = in;
  for (size_t other = 0; other < in.size(); ++other) {
    if (other == axis) continue;
    window.kernel[other] = Dim(1);
    window.strides[other] = window.dilations[other] = 1;
    window.pads_begin[other] = window.pads_end[other] = Dim(0);
  }
  return window;
}

// Maxima of maxima. Which of equal elements, and which NaN, is the first in row-major order stays
// so.
Operand MaximaByAxis(Lowering& lowering, const Operand& x, const Window& all, const Shape& out) {
  Operand maxima = x;
  for (size_t axis = out.size(); axis-- > 0;) {
    const bool stands_on_each = all.kernel[axis] == Dim(1) && all.strides[axis] == 1 &&
                                all.pads_begin[axis] == Dim(0) &&
                                out[axis] == maxima.shape[axis + 2];
    if (stands_on_each) continue;
    Shape in;
    for (size_t other = 2; other < maxima.shape.size(); ++other) in.push_back(maxima.shape[other]);
    Window window = AlongAxis(all, in, axis);
    Shape shape = maxima.shape;
    shape[axis + 2] = out[axis];
    StepBuilder step(lowering, shape);
    step.AddRead(maxima.view);
    window.roots = {Cast(Accumulator(step.exprs(), window.accumulator), x.type()).id()};
    maxima = lowering.Temporary(x.type(), shape);
    step.Finish(std::move(window), {maxima.view});
  }
  return maxima;
}

// Few taps, each window with an element at least.
bool HasFewTaps(const Sliding& sliding) {
  constexpr int64_t kMaxTaps = 16;
  int64_t taps = 1;
  for (size_t axis = 0; axis < sliding.kernel.size(); ++axis) {
    const Dim kernel = sliding.kernel[axis];
    if (!kernel.is_constant() || kernel.constant() < 1 || kernel.constant() > kMaxTaps / taps) {
      return false;
    }
    taps *= kernel.constant();
    for (const Dim& pad : {sliding.pads_begin[axis], sliding.pads_end[axis]}) {
      if (pad.LowerBound() < 0 || pad.UpperBound() >= kernel.constant()) return false;
    }
    if (sliding.dilations[axis] != 1) return false;
  }
  return true;
}

// `x` with what windows see beyond it, which no element is below; nothing if it is seen through
// guards of another kind already.
std::optional<Operand> Surrounded(const Operand& x, const Sliding& sliding) {
  Dims before = {0, 0}, after = {0, 0};
  bool is_padded = false;
  for (size_t axis = 0; axis < sliding.in.size(); ++axis) {
    before.push_back(sliding.pads_begin[axis]);
    const Dim end = (sliding.out[axis] - 1) * sliding.strides[axis] + sliding.kernel[axis];
    after.push_back(tensor::Max(0, end - sliding.pads_begin[axis] - sliding.in[axis]));
    is_padded = is_padded || before.back() != Dim(0) || after.back() != Dim(0);
  }
  if (!is_padded) return x;
  tensor::Scalar least{.f = -std::numeric_limits<double>::infinity()};
  if (x.type() == ElementType::kInt8) least = {.i = INT8_MIN};
  if (x.type() == ElementType::kUint8) least = {.u = 0};
  return program::Pad(x, before, after, least);
}

// Maxima and their positions as a Map that compares tap after tap.
struct Positions {
  const Sliding& sliding;
  bool is_column_major;

  size_t rank() const { return sliding.in.size(); }
  // What a step along an axis adds to a position.
  Dims Weights() const {
    Dims weights(rank(), Dim(1));
    for (size_t k = 1; k < rank(); ++k) {
      const size_t axis = is_column_major ? k : rank() - 1 - k;
      const size_t before = is_column_major ? k - 1 : rank() - k;
      weights[axis] = weights[before] * sliding.in[before];
    }
    return weights;
  }

  void Lower(Lowering& lowering, const Operand& x, const Operand& seen, ElementType accumulator,
             const Shape& shape) const {
    StepBuilder map(lowering, shape);
    const Dims weights = Weights();
    const Expr channels = map.Extent(x.shape[1]);
    Expr first = (map.Coordinate(0) * channels + map.Coordinate(1)) *
                 map.Extent(tensor::Product(sliding.in));
    Expr position = first;  // of the first tap that is an element
    for (size_t axis = 0; axis < rank(); ++axis) {
      const Expr weight = map.Extent(weights[axis]);
      const Expr at =
          map.Coordinate(static_cast<int>(axis) + 2) * map.Extent(sliding.strides[axis]) -
          map.Extent(sliding.pads_begin[axis]);
      first = first + at * weight;
      position = position + Maximum(at, map.Extent(0)) * weight;
    }
    const auto tap_at = [&](const std::vector<int64_t>& tap) {
      Operand taken = seen;
      for (size_t axis = 0; axis < rank(); ++axis) {
        taken = program::Slice(taken, static_cast<int>(axis) + 2, tap[axis], sliding.strides[axis],
                               sliding.out[axis]);
      }
      return Cast(map.ReadView(taken.view), accumulator);
    };
    std::vector<int64_t> tap(rank(), 0);
    Expr maximum = tap_at(tap);
    while (Advance(tap)) {
      Dim offset = 0;
      for (size_t axis = 0; axis < rank(); ++axis) offset = offset + weights[axis] * tap[axis];
      const Expr value = tap_at(tap);
      Expr is_more = maximum < value;
      // The first NaN stays.
      if (tensor::IsFloat(accumulator)) is_more = !(value <= maximum) && maximum == maximum;
      position = Select(is_more, first + map.Extent(offset), position);
      maximum = Select(is_more, value, maximum);
    }
    const Operand maxima = lowering.Temporary(x.type(), shape);
    const Operand positions = lowering.Temporary(ElementType::kInt64, shape);
    map.WriteMapTo({maxima, positions}, {Cast(maximum, x.type()), position});
    lowering.Set(0, maxima);
    lowering.Set(1, positions);
  }

 private:
  // To the next one in row-major order; false behind the last.
  bool Advance(std::vector<int64_t>& tap) const {
    for (size_t axis = rank(); axis-- > 0;) {
      if (++tap[axis] < sliding.kernel[axis].constant()) return true;
      tap[axis] = 0;
    }
    return false;
  }
};

// How many taps every window has inside the padded input; nothing where that is not the same
// number, or not known.
std::optional<int64_t> TapsOfEachWindow(const Sliding& sliding) {
  int64_t taps = 1;
  for (int axis = 0; axis < sliding.rank(); ++axis) {
    const Dim end = (sliding.out[axis] - 1) * sliding.strides[axis] + sliding.Reach(axis);
    const Dim padded = sliding.in[axis] + sliding.pads_begin[axis] + sliding.pads_end[axis];
    const Dim& kernel = sliding.kernel[axis];
    if (!kernel.is_constant() || !end.is_constant() || !padded.is_constant()) return std::nullopt;
    if (kernel.constant() < 1 || end.constant() > padded.constant() ||
        __builtin_mul_overflow(taps, kernel.constant(), &taps)) {
      return std::nullopt;
    }
  }
  return taps;
}

// (taps * average(|x|^p))^(1/p). `average`: its windows, which count padding.
void LowerLp(Lowering& lowering, const Operand& x, Window average, int64_t taps,
             const Shape& shape) {
  const int64_t p = average.p;
  const ElementType type = average.accumulator;
  StepBuilder power(lowering, x.shape);
  const Expr size = Unary(ExprOp::kAbs, Cast(power.Read(x), type));
  Expr raised = size;
  if (p == 2) raised = size * size;
  if (p > 2) raised = Binary(ExprOp::kPow, size, Like(size, static_cast<double>(p)));
  const Operand powers = power.WriteMap(raised, type);
  average.kind = Window::Kind::kAverage;
  average.count_include_pad = true;
  StepBuilder step(lowering, shape);
  step.AddRead(powers.view);
  average.roots = {Accumulator(step.exprs(), type).id()};
  const Operand averages = lowering.Temporary(type, shape);
  step.Finish(std::move(average), {averages.view});
  StepBuilder root(lowering, shape);
  const Expr mean = root.Read(averages);
  const Expr sum = mean * Like(mean, static_cast<double>(taps));
  Expr result = sum;
  if (p == 2) result = Unary(ExprOp::kSqrt, sum);
  if (p > 2) result = Binary(ExprOp::kPow, sum, Like(sum, 1.0 / static_cast<double>(p)));
  lowering.Set(0, root.WriteMap(result, x.type()));
}

template <Window::Kind kind, bool is_global>
Status LowerPool(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  ONNXIFI_RETURN_IF_ERROR(CheckType(lowering, kind));
  const Operand& x = lowering.In(0);
  ONNXIFI_ASSIGN_OR_RETURN(Shape in, SpatialExtents(lowering, /*lead=*/2));
  Sliding sliding = GlobalSliding(in);
  if (!is_global) {
    ONNXIFI_ASSIGN_OR_RETURN(Shape kernel, KernelShape(lowering, static_cast<int>(in.size())));
    ONNXIFI_ASSIGN_OR_RETURN(sliding, MakeSliding(lowering, in, std::move(kernel)));
  }
  Window window;
  window.kind = kind;
  if (kind == Window::Kind::kLp) {
    ONNXIFI_ASSIGN_OR_RETURN(window.p, Power(lowering));
    if (window.p < 1) {
      return lowering.InvalidModel("p (" + std::to_string(window.p) + ") is less than 1.");
    }
  }

  window.in_spatial = sliding.in;
  window.kernel = sliding.kernel;
  window.strides = sliding.strides;
  window.dilations = sliding.dilations;
  window.pads_begin = sliding.pads_begin;
  window.pads_end = sliding.pads_end;
  window.count_include_pad = lowering.Int("count_include_pad", 0) != 0;
  window.column_major = lowering.Int("storage_order", 0) != 0;
  window.accumulator = tensor::ArithmeticType(x.type());
  if (kind == Window::Kind::kMax && !lowering.Wants(1) && IsWorthSplitting(sliding)) {
    lowering.Set(0, MaximaByAxis(lowering, x, window, sliding.out));
    return base::Ok();
  }
  Shape shape = {x.shape[0], x.shape[1]};
  shape.insert(shape.end(), sliding.out.begin(), sliding.out.end());
  if (kind == Window::Kind::kLp) {
    if (const std::optional<int64_t> taps = TapsOfEachWindow(sliding)) {
      LowerLp(lowering, x, std::move(window), *taps, shape);
      return base::Ok();
    }
  }
  if (kind == Window::Kind::kMax && lowering.Wants(1) && HasFewTaps(sliding)) {
    if (const std::optional<Operand> seen = Surrounded(x, sliding)) {
      Positions{sliding, window.column_major}.Lower(lowering, x, *seen, window.accumulator, shape);
      return base::Ok();
    }
  }
  StepBuilder step(lowering, shape);
  step.AddRead(x.view);
  window.roots = {Cast(Accumulator(step.exprs(), window.accumulator), x.type()).id()};
  const Operand out = lowering.Temporary(x.type(), shape);
  std::vector<View> writes = {out.view};
  lowering.Set(0, out);
  if (kind == Window::Kind::kMax && lowering.Wants(1)) {
    const Operand positions = lowering.Temporary(ElementType::kInt64, shape);
    writes.push_back(positions.view);
    lowering.Set(1, positions);
  }
  step.Finish(std::move(window), std::move(writes));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"MaxPool", 22, LowerPool<Window::Kind::kMax, false>},
    {"AveragePool", 22, LowerPool<Window::Kind::kAverage, false>},
    {"LpPool", 22, LowerPool<Window::Kind::kLp, false>},
    {"GlobalMaxPool", 22, LowerPool<Window::Kind::kMax, true>},
    {"GlobalAveragePool", 22, LowerPool<Window::Kind::kAverage, true>},
    {"GlobalLpPool", 22, LowerPool<Window::Kind::kLp, true>},
};

}  // namespace

std::span<const Operator> PoolOperators() { return kOperators; }

}  // namespace onnxifi::ops
