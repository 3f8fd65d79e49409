// SPDX-License-Identifier: Apache-2.0
//
// Slice, CenterCropPad: sub-boxes as views. Starts, ends, axes and steps may be known only when the
// program runs.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"

namespace onnxifi::ops {
namespace {

Dim Clamp(Dim value, Dim lowest, Dim highest) { return Min(Max(value, lowest), highest); }

struct Range {
  Dim start;
  Dim step;
  Dim extent;
};

// Numpy's rule: negative positions count from the end; both ends are clamped to [0, d] for positive
// steps and to [-1, d - 1] for negative ones.
Range ClampedRange(Dim d, Dim start, Dim end, Dim step) {
  const Dim from = start + Select(Less(start, 0), d, Dim(0));
  const Dim to = end + Select(Less(end, 0), d, Dim(0));
  const Dim is_backward = Less(step, 0);
  const Dim first = Select(is_backward, Clamp(from, 0, d - 1), Clamp(from, 0, d));
  const Dim last = Select(is_backward, Clamp(to, -1, d - 1), Clamp(to, 0, d));
  const Dim distance = Select(is_backward, first - last, last - first);
  const Dim stride = Select(is_backward, 0 - step, step);
  return {first, step, Max(0, CeilDiv(distance, stride))};
}

// How many axes are sliced, as the first of starts, ends, axes and steps tells whose extent is
// known.
std::optional<int64_t> KnownCount(const Lowering& lowering) {
  for (const int input : {1, 2, 3, 4}) {
    if (!lowering.Has(input) || lowering.In(input).rank() != 1) continue;
    const Dim& count = lowering.In(input).shape[0];
    if (count.is_constant()) return count.constant();
  }
  return std::nullopt;
}

// What an axis has that is not sliced.
tensor::Scalar Neutral(int input, ElementType type) {
  constexpr int kEnds = 2, kSteps = 4;
  if (input == kEnds) {
    return {.i = type == ElementType::kInt32 ? int64_t{INT32_MAX} : INT64_MAX};
  }
  return {.i = input == kSteps ? 1 : 0};
}

// The numbers of an input. Where a run alone tells how many there are, as of a slice of a list,
// there have to be as many as others have; and where none of these is known either, those of the
// first axes are given, and the others are not sliced.
Result<Dims> NumbersOf(Lowering& lowering, int input) {
  const Operand& numbers = lowering.In(input);
  const int rank = lowering.In(0).rank();
  const bool is_known =
      numbers.rank() != 1 || numbers.shape[0].is_constant() || lowering.Integers(input);
  const std::optional<int64_t> known = KnownCount(lowering);
  if (is_known || !tensor::IsInteger(numbers.type()) || (!known && lowering.Has(3)) ||
      known.value_or(rank) > rank) {
    return lowering.IntegersOrRuntime(input);
  }
  const std::string what = "The extent of input " + std::to_string(input) + " and that of ";
  const int64_t count = known.value_or(rank);
  if (known) {
    ONNXIFI_RETURN_IF_ERROR(
        lowering.RequireEqual(numbers.shape[0], count, what + "starts, ends, axes or steps"));
  } else {
    ONNXIFI_RETURN_IF_ERROR(
        lowering.RequireEqual(numbers.shape[0], lowering.In(1).shape[0], what + "starts"));
    ONNXIFI_RETURN_IF_ERROR(lowering.Require(
        Less(numbers.shape[0], rank + 1), Code::kMismatchingShape,
        "More axes are sliced than the " + std::to_string(rank) + " that there are:",
        {numbers.shape[0]}));
  }
  // Nothing is read behind those that there are.
  const Dim missing = Dim(count) - numbers.shape[0];
  const tensor::Scalar fill = Neutral(input, numbers.type());
  std::optional<Operand> guarded = program::Pad(numbers, {Dim(0)}, {missing}, fill);
  if (!guarded) guarded = program::Pad(lowering.Dense(numbers), {Dim(0)}, {missing}, fill);
  guarded->shape = {Dim(count)};
  return lowering.ReadAtRunTime(*guarded, static_cast<int>(count));
}

Result<Dims> Positions(Lowering& lowering, std::string_view attribute, int input) {
  if (lowering.version() >= 10) {
    ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
    return NumbersOf(lowering, input);
  }
  const std::vector<int64_t>* given = lowering.Ints(attribute);
  return given ? ToDims(*given) : Dims();
}

Result<AxisList> SlicedAxes(Lowering& lowering, int count) {
  const int rank = lowering.In(0).rank();
  if (lowering.version() < 10) return AxisList::FromAttribute(lowering, "axes", rank, count);
  if (!lowering.Has(3)) return AxisList::FromInput(lowering, 3, rank, count);
  ONNXIFI_ASSIGN_OR_RETURN(Dims axes, NumbersOf(lowering, 3));
  return AxisList::Make(lowering, std::move(axes), rank);
}

Status LowerSlice(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  ONNXIFI_ASSIGN_OR_RETURN(Dims starts, Positions(lowering, "starts", 1));
  ONNXIFI_ASSIGN_OR_RETURN(Dims ends, Positions(lowering, "ends", 2));
  const Operand& data = lowering.In(0);
  const int count = static_cast<int>(starts.size());
  ONNXIFI_ASSIGN_OR_RETURN(AxisList axes, SlicedAxes(lowering, count));
  Dims steps(count, Dim(1));
  if (lowering.Has(4)) {
    ONNXIFI_ASSIGN_OR_RETURN(steps, NumbersOf(lowering, 4));
  }
  if (starts.size() != ends.size() || axes.size() != count || steps.size() != starts.size()) {
    return lowering.InvalidModel(
        "starts, ends, axes and steps have " + std::to_string(starts.size()) + ", " +
        std::to_string(ends.size()) + ", " + std::to_string(axes.size()) + " and " +
        std::to_string(steps.size()) + " elements; they must agree.");
  }
  for (const Dim& step : steps) {
    ONNXIFI_RETURN_IF_ERROR(
        lowering.Require(1 - Equal(step, 0), Code::kInvalidModel, "A step is 0."));
  }

  Operand sliced = data;
  for (int axis = 0; axis < data.rank(); ++axis) {
    if (axes.Contains(axis) == Dim(0)) continue;
    const Dim d = data.shape[axis];
    const Range range = ClampedRange(d, axes.ValueAt(axis, starts, 0), axes.ValueAt(axis, ends, d),
                                     axes.ValueAt(axis, steps, 1));
    sliced = program::Slice(sliced, axis, range.start, range.step, range.extent);
  }
  lowering.Set(0, sliced);
  return base::Ok();
}

Status LowerCenterCropPad(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& input = lowering.In(0);
  ONNXIFI_ASSIGN_OR_RETURN(AxisList axes,
                           AxisList::FromAttribute(lowering, "axes", input.rank(), input.rank()));
  ONNXIFI_ASSIGN_OR_RETURN(Dims targets, lowering.IntegersOrRuntime(1, axes.size()));
  if (axes.size() != static_cast<int>(targets.size())) {
    return lowering.InvalidModel("shape has " + std::to_string(targets.size()) + " elements for " +
                                 std::to_string(axes.size()) + " axes.");
  }
  Dims before;
  Dims after;
  for (int axis = 0; axis < input.rank(); ++axis) {
    const Dim d = input.shape[axis];
    ONNXIFI_ASSIGN_OR_RETURN(Dim target, AsExtent(lowering, axes.ValueAt(axis, targets, d)));
    // Half of the difference, rounded towards zero in either direction, is before the middle.
    before.push_back(Select(Less(target, d), 0 - FloorDiv(d - target, 2), FloorDiv(target - d, 2)));
    after.push_back(target - d - before.back());
  }

  const tensor::Scalar zero{.u = 0};
  std::optional<Operand> result = program::Pad(input, before, after, zero);
  if (!result) result = program::Pad(lowering.Dense(input), before, after, zero);
  lowering.Set(0, *result);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Slice", 13, LowerSlice, "", InputKinds::kStrings},
    {"CenterCropPad", 18, LowerCenterCropPad, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> SliceOperators() { return kOperators; }

}  // namespace onnxifi::ops
