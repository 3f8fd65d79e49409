// SPDX-License-Identifier: Apache-2.0
//
// Slice, CenterCropPad: sub-boxes as views. Starts, ends, axes and steps may be known only when the
// program runs.

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

Result<Dims> Positions(Lowering& lowering, std::string_view attribute, int input) {
  if (lowering.version() >= 10) {
    ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
    return lowering.IntegersOrRuntime(input);
  }
  const std::vector<int64_t>* given = lowering.Ints(attribute);
  return given ? ToDims(*given) : Dims();
}

Status LowerSlice(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  ONNXIFI_ASSIGN_OR_RETURN(Dims starts, Positions(lowering, "starts", 1));
  ONNXIFI_ASSIGN_OR_RETURN(Dims ends, Positions(lowering, "ends", 2));
  const Operand& data = lowering.In(0);
  const int count = static_cast<int>(starts.size());
  ONNXIFI_ASSIGN_OR_RETURN(AxisList axes,
                           lowering.version() < 10
                               ? AxisList::FromAttribute(lowering, "axes", data.rank(), count)
                               : AxisList::FromInput(lowering, 3, data.rank(), count));
  Dims steps(count, Dim(1));
  if (lowering.Has(4)) {
    ONNXIFI_ASSIGN_OR_RETURN(steps, lowering.IntegersOrRuntime(4));
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
  ONNXIFI_ASSIGN_OR_RETURN(Dims targets, lowering.IntegersOrRuntime(1));
  ONNXIFI_ASSIGN_OR_RETURN(AxisList axes,
                           AxisList::FromAttribute(lowering, "axes", input.rank(), input.rank()));
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
    {"CenterCropPad", 18, LowerCenterCropPad},
};

}  // namespace

std::span<const Operator> SliceOperators() { return kOperators; }

}  // namespace onnxifi::ops
