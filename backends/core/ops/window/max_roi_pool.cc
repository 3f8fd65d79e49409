// SPDX-License-Identifier: Apache-2.0
//
// MaxRoiPool: a Reduce over the pixels of each bin. How many pixels a bin has depends on the
// regions; the most that any has is read when the program runs, and smaller bins have their last
// pixel once more instead.

#include <limits>
#include <utility>
#include <vector>

#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// The pixels of one bin along an axis: from `first` on, up to `last` (not included). int64.
struct Pixels {
  Expr first;
  Expr last;
};

// Corners are scaled and rounded to whole pixels, half away from zero.
Expr Corner(StepBuilder& step, const Operand& rois, int column, int trailing, float scale) {
  const Expr value = step.ReadArithmetic(IndexColumn(rois, column, trailing));
  const Expr scaled = value * Like(value, scale);
  const Expr half = Like(value, 0.5);
  const Expr rounded = Select(scaled < Like(value, 0), -Unary(ExprOp::kFloor, half - scaled),
                              Unary(ExprOp::kFloor, scaled + half));
  // NaN compares false; what is far outside is clipped to the image later.
  const Expr limit = Like(value, 0x1p30);
  return Cast(Select(rounded > -limit, Minimum(rounded, limit), -limit), ElementType::kInt64);
}

// Bin `bin` of `bins` along an axis of `extent` pixels. A region has at least one pixel, ends
// belong to it, and parts of pixels count as whole ones.
Pixels MakePixels(StepBuilder& step, const Operand& rois, bool is_width, Expr bin, int64_t bins,
                  float scale, Dim extent, int trailing) {
  const Expr one = step.Extent(1);
  const Expr start = Corner(step, rois, is_width ? 1 : 2, trailing, scale);
  const Expr end = Corner(step, rois, is_width ? 3 : 4, trailing, scale);
  const Expr length = Maximum(end - start + one, one);
  const Expr count = step.Extent(bins);
  const Expr first = bin * length / count;
  const Expr last = ((bin + one) * length + count - one) / count;
  const auto clipped = [&](Expr position) {
    return Minimum(Maximum(position + start, step.Extent(0)), step.Extent(extent));
  };
  return {clipped(first), clipped(last)};
}

// The pixels of all bins along an axis: int64 [region, bin].
struct Bins {
  Operand first;
  Operand last;
};

Bins MakeBins(Lowering& lowering, const Operand& rois, bool is_width, int64_t bins, float scale,
              Dim extent) {
  StepBuilder step(lowering, {rois.shape[0], bins});
  const Pixels pixels =
      MakePixels(step, rois, is_width, step.Coordinate(1), bins, scale, extent, /*trailing=*/1);
  Bins made = {lowering.Temporary(ElementType::kInt64, step.domain()),
               lowering.Temporary(ElementType::kInt64, step.domain())};
  step.WriteMapTo({made.first, made.last}, {pixels.first, pixels.last});
  return made;
}

// The most pixels that any bin of any region has.
Dim MaxPixels(Lowering& lowering, const Bins& bins) {
  StepBuilder step(lowering, bins.first.shape);
  const Expr count = step.Read(bins.last) - step.Read(bins.first);
  const Expr most = State(step.exprs(), ElementType::kInt64, 0);
  program::Reduce reduce;
  reduce.axes = 2;
  reduce.reduction.states = {{ElementType::kInt64, step.Extent(0).id(), Maximum(most, count).id(),
                              Maximum(most, Other(step.exprs(), ElementType::kInt64, 0)).id()}};
  reduce.roots = {most.id()};
  const Operand number = lowering.Temporary(ElementType::kInt64, {});
  step.Finish(std::move(reduce), {number.view});
  return lowering.ReadAtRunTime(lowering.Reshaped(number, {Dim(1)}), 1, /*lower=*/0).front();
}

// The image of each region: int64 [region].
Operand MakeImages(Lowering& lowering, const Operand& rois) {
  StepBuilder step(lowering, {rois.shape[0]});
  return step.WriteMap(step.ReadArithmetic(IndexColumn(rois, 0, /*trailing=*/0)),
                       ElementType::kInt64);
}

// X[N, C, H, W], rois[R, 5] (image, x1, y1, x2, y2) -> [R, C, pooled_shape...]
Status LowerMaxRoiPool(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  const Operand& rois = lowering.In(1);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  if (rois.type() != x.type()) return lowering.UnsupportedType(1);
  if (x.rank() != 4 || rois.rank() != 2) {
    return lowering.InvalidModel("X and rois have " + std::to_string(x.rank()) + " and " +
                                 std::to_string(rois.rank()) + " axes instead of 4 and 2.");
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(rois.shape[1], 5, "The columns of rois and 5"));
  const std::vector<int64_t>* pooled = lowering.Ints("pooled_shape");
  constexpr int64_t kMaxBins = 1 << 20;
  const auto is_allowed = [](int64_t bins) { return bins >= 1 && bins <= kMaxBins; };
  if (pooled == nullptr || pooled->size() != 2 || !is_allowed((*pooled)[0]) ||
      !is_allowed((*pooled)[1])) {
    return lowering.InvalidModel("Attribute pooled_shape is not two numbers from 1 to " +
                                 std::to_string(kMaxBins) + ".");
  }
  const float scale = lowering.Float("spatial_scale", 1.0f);

  // Channels innermost: what is told per pixel holds for all of them.
  const Operand image = lowering.Dense(program::Permute(x, {0, 2, 3, 1}));
  const Shape shape = {rois.shape[0], (*pooled)[0], (*pooled)[1], x.shape[1]};
  Shape domain = shape;
  std::vector<Bins> bins;
  for (int k = 0; k < 2; ++k) {
    bins.push_back(
        MakeBins(lowering, rois, /*is_width=*/k == 1, (*pooled)[k], scale, x.shape[2 + k]));
    domain.push_back(MaxPixels(lowering, bins.back()));
  }
  StepBuilder step(lowering, domain);
  // Laid over the domain: [region, bins, channel, pixels].
  const auto over_domain = [](Operand table, bool is_width) {
    table = program::InsertAxis(table, is_width ? 1 : 2);
    for (const int axis : {3, 4, 5}) table = program::InsertAxis(table, axis);
    return table;
  };
  Operand images = MakeImages(lowering, rois);
  while (images.rank() < 6) images = program::InsertAxis(images, images.rank());
  std::vector<Expr> at = {step.Read(images)};
  for (int k = 0; k < 2; ++k) {
    const bool is_width = k == 1;
    const Bins& of_axis = bins[static_cast<size_t>(k)];
    const Expr first = step.Read(over_domain(of_axis.first, is_width));
    const Expr last = step.Read(over_domain(of_axis.last, is_width));
    // Pixels that a bin lacks are its last one once more; of a bin without any all are outside,
    // which are 0.
    const Expr pixel = Minimum(first + step.Coordinate(4 + k), last - step.Extent(1));
    at.push_back(Select(first < last, pixel, step.Extent(-1)));
  }
  at.push_back(step.Coordinate(3));
  const ElementType type = tensor::ArithmeticType(x.type());
  const Expr element = Cast(ReadGuarded(step, image, at, {0, 1, 2}), type);
  const Expr state = State(step.exprs(), type, 0);
  const Expr none = Like(state, -std::numeric_limits<double>::infinity());
  program::Reduce reduce;
  reduce.axes = 2;
  reduce.reduction.states = {{type, none.id(), Maximum(state, element).id(),
                              Maximum(state, Other(step.exprs(), type, 0)).id()}};
  // Where no bin has a pixel, there is no element either.
  reduce.roots = {Cast(Select(state == none, Like(state, 0), state), x.type()).id()};
  const Operand out = lowering.Temporary(x.type(), shape);
  step.Finish(std::move(reduce), {out.view});
  lowering.Set(0, program::Permute(out, {0, 3, 1, 2}));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"MaxRoiPool", 22, LowerMaxRoiPool},
};

}  // namespace

std::span<const Operator> MaxRoiPoolOperators() { return kOperators; }

}  // namespace onnxifi::ops
