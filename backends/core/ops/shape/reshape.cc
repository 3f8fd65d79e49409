// SPDX-License-Identifier: Apache-2.0
//
// Reshape, Flatten, Squeeze, Unsqueeze: the same elements in the same order under other extents.
// Views wherever strides can say it. Extents, and the axes of Squeeze and Unsqueeze, may be known
// only when the program runs.

#include <algorithm>

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"
#include "backends/core/ops/squeezed_axes.h"

namespace onnxifi::ops {
namespace {

// shape[k] = numbers[k], but data.shape[k] where that is 0 (unless allowzero), and what is left
// where it is -1.
Result<Shape> ReshapedExtents(Lowering& lowering, const Shape& in, const Dims& numbers,
                              bool allows_zero) {
  const Dim total = Product(in);
  Shape shape(numbers.size());
  Dim inferred_count = 0;
  Dim given_product = 1;
  for (size_t k = 0; k < numbers.size(); ++k) {
    Dim extent = numbers[k];
    if (!allows_zero && k < in.size()) {
      extent = Select(Equal(extent, 0), in[k], extent);
    } else if (!allows_zero) {
      ONNXIFI_RETURN_IF_ERROR(lowering.Require(1 - Equal(extent, 0), Code::kInvalidModel,
                                               "Extent 0 at axis " + std::to_string(k) +
                                                   " copies an axis of the input, which has " +
                                                   std::to_string(in.size()) + "."));
    }
    ONNXIFI_RETURN_IF_ERROR(lowering.Require(
        Less(-2, extent), Code::kInvalidModel,
        "Extent " + extent.ToString() + " at axis " + std::to_string(k) + " is below -1.",
        {extent}));
    const Dim is_inferred = Less(extent, 0);
    inferred_count = inferred_count + is_inferred;
    given_product = given_product * Select(is_inferred, 1, extent);
    shape[k] = extent;
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(Less(inferred_count, 2), Code::kInvalidModel,
                                           "More than one extent is -1.", {inferred_count}));
  for (Dim& extent : shape) {
    extent = Select(Less(extent, 0), FloorDiv(total, given_product), extent);
  }
  ONNXIFI_RETURN_IF_ERROR(
      lowering.RequireEqual(Product(shape), total, "The element counts after and before"));
  return shape;
}

Status LowerReshape(Lowering& lowering) {
  const bool has_attribute = lowering.version() < 5;
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(has_attribute ? 1 : 2));
  Dims numbers;
  if (has_attribute) {
    if (const std::vector<int64_t>* shape = lowering.Ints("shape")) numbers = ToDims(*shape);
  } else {
    ONNXIFI_ASSIGN_OR_RETURN(numbers, lowering.IntegersOrRuntime(1, lowering.DeclaredRank(0)));
  }

  const Operand& data = lowering.In(0);
  const bool allows_zero = lowering.Int("allowzero", 0) != 0;
  ONNXIFI_ASSIGN_OR_RETURN(Shape shape,
                           ReshapedExtents(lowering, data.shape, numbers, allows_zero));
  lowering.Set(0, lowering.Reshaped(data, shape));
  return base::Ok();
}

Status LowerFlatten(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& input = lowering.In(0);
  const int64_t given = lowering.Int("axis", 1);
  const int64_t lowest = lowering.version() < 11 ? 0 : -input.rank();
  if (given < lowest || given > input.rank()) {
    return lowering.InvalidModel("Axis " + std::to_string(given) + " is outside [" +
                                 std::to_string(lowest) + ", " + std::to_string(input.rank()) +
                                 "].");
  }
  const int64_t axis = given < 0 ? given + input.rank() : given;

  const std::span<const Dim> extents(input.shape);
  lowering.Set(
      0, lowering.Reshaped(input, {Product(extents.first(axis)), Product(extents.subspan(axis))}));
  return base::Ok();
}

// What Squeeze removes: how many axes, and of each axis whether it is one of them, 0 or 1.
struct RemovedAxes {
  int64_t count = 0;
  Dims flags;

  bool is_known() const {
    return std::ranges::all_of(flags, [](const Dim& flag) { return flag.is_constant(); });
  }
};

Result<RemovedAxes> NamedAxes(Lowering& lowering) {
  const int rank = lowering.In(0).rank();
  AxisList axes;
  if (lowering.version() < 13) {
    ONNXIFI_ASSIGN_OR_RETURN(axes, AxisList::FromAttribute(lowering, "axes", rank, 0));
  } else {
    std::optional<int64_t> count = lowering.DeclaredRank(0);
    if (count) *count = rank - *count;
    ONNXIFI_ASSIGN_OR_RETURN(axes, AxisList::FromInput(lowering, 1, rank, 0, count));
  }
  if (axes.size() > rank) {
    return lowering.InvalidModel(std::to_string(axes.size()) + " axes are removed of " +
                                 std::to_string(rank) + ".");
  }
  RemovedAxes removed{.count = axes.size()};
  for (int axis = 0; axis < rank; ++axis) removed.flags.push_back(axes.Contains(axis));
  return removed;
}

// Without axes every 1 goes. Of extents that only a run tells, as many are 1 as make the rank that
// the model declares of the output: a run of others is refused. Without a declared rank such an
// extent stays and must not be 1. (In the graph itself, where a run's extents are at hand, those
// decide instead: open_squeeze.cc.)
Result<RemovedAxes> AxesOfOnes(Lowering& lowering) {
  const Shape& in = lowering.In(0).shape;
  const std::optional<int> declared = lowering.DeclaredRank(0);
  const ExtentsOfOne ones(in, declared ? std::optional<size_t>(*declared) : std::nullopt);
  RemovedAxes removed{.count = ones.need_open() ? *ones.wanted : ones.known};
  Dim count = 0;
  Dims shown;
  for (const Dim& extent : in) {
    const Dim is_one = Equal(extent, 1);
    removed.flags.push_back(is_one.is_constant() || ones.need_open() ? is_one : Dim(0));
    count = count + is_one;
    if (!is_one.is_constant()) shown.push_back(extent);
  }
  if (ones.need_open()) {
    ONNXIFI_RETURN_IF_ERROR(lowering.Require(
        Equal(count, *ones.wanted), Code::kUnsupportedShape,
        "The output is declared with " + std::to_string(*declared) + " axes, for which " +
            std::to_string(*ones.wanted) + " extents of " + tensor::ToString(in) + " must be 1.",
        shown));
  } else if (!ones.are_enough()) {
    for (size_t axis = 0; axis < in.size(); ++axis) {
      const Dim is_one = Equal(in[axis], 1);
      if (is_one.is_constant()) continue;
      ONNXIFI_RETURN_IF_ERROR(lowering.Require(
          1 - is_one, Code::kUnsupportedShape,
          "Extent " + in[axis].ToString() + " of axis " + std::to_string(axis) +
              " is 1, which was not known before the graph ran, and no rank of the output is "
              "declared.",
          {in[axis]}));
    }
  }
  return removed;
}

// The rank of the result is known, which axes are 1 is not: kept axis a of the input is axis (kept
// axes before a).
Shape SqueezedAtRunTime(const Shape& in, const RemovedAxes& removed) {
  Shape shape(in.size() - static_cast<size_t>(removed.count), Dim(1));
  Dim kept_before = 0;
  for (size_t axis = 0; axis < in.size(); ++axis) {
    const Dim is_kept = 1 - removed.flags[axis];
    for (size_t k = 0; k < shape.size(); ++k) {
      shape[k] = Select(is_kept * Equal(kept_before, static_cast<int64_t>(k)), in[axis], shape[k]);
    }
    kept_before = kept_before + is_kept;
  }
  return shape;
}

Status LowerSqueeze(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& data = lowering.In(0);
  const bool has_axes = lowering.version() < 13 ? lowering.HasAttribute("axes") : lowering.Has(1);
  ONNXIFI_ASSIGN_OR_RETURN(const RemovedAxes removed,
                           has_axes ? NamedAxes(lowering) : AxesOfOnes(lowering));
  for (int axis = 0; has_axes && axis < data.rank(); ++axis) {
    ONNXIFI_RETURN_IF_ERROR(lowering.Require(
        Max(1 - removed.flags[axis], Equal(data.shape[axis], 1)), Code::kMismatchingShape,
        "Axis " + std::to_string(axis) + " of extent " + data.shape[axis].ToString() +
            " is removed and must be 1.",
        {data.shape[axis]}));
  }

  if (!removed.is_known()) {
    lowering.Set(0, lowering.Reshaped(data, SqueezedAtRunTime(data.shape, removed)));
    return base::Ok();
  }
  Operand squeezed = data;
  for (int axis = data.rank() - 1; axis >= 0; --axis) {
    if (removed.flags[axis] == Dim(1)) squeezed = program::RemoveAxis(squeezed, axis);
  }
  lowering.Set(0, squeezed);
  return base::Ok();
}

Status LowerUnsqueeze(Lowering& lowering) {
  const bool has_attribute = lowering.version() < 13;
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(has_attribute ? 1 : 2));
  Dims given;
  if (!has_attribute) {
    std::optional<int64_t> count = lowering.DeclaredRank(0);
    if (count) *count -= lowering.In(0).rank();
    ONNXIFI_ASSIGN_OR_RETURN(given, lowering.IntegersOrRuntime(1, count));
  } else if (const std::vector<int64_t>* attribute = lowering.Ints("axes")) {
    given = ToDims(*attribute);
  }
  const Operand& data = lowering.In(0);
  const int rank = data.rank() + static_cast<int>(given.size());
  ONNXIFI_ASSIGN_OR_RETURN(AxisList axes, AxisList::Make(lowering, std::move(given), rank));

  if (axes.is_known()) {
    Operand unsqueezed = data;
    for (int axis = 0; axis < rank; ++axis) {
      if (axes.Contains(axis) == Dim(1)) unsqueezed = program::InsertAxis(unsqueezed, axis);
    }
    lowering.Set(0, unsqueezed);
    return base::Ok();
  }
  // Axis k of the result is 1, or the axis of the input that as many kept axes stand before.
  Shape shape(rank, Dim(1));
  Dim kept_before = 0;
  for (int axis = 0; axis < rank; ++axis) {
    const Dim is_kept = 1 - axes.Contains(axis);
    for (int from = 0; from < data.rank(); ++from) {
      shape[axis] = Select(is_kept * Equal(kept_before, from), data.shape[from], shape[axis]);
    }
    kept_before = kept_before + is_kept;
  }
  lowering.Set(0, lowering.Reshaped(data, shape));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Reshape", 25, LowerReshape, "", InputKinds::kStrings},
    {"Flatten", 25, LowerFlatten, "", InputKinds::kStrings},
    {"Squeeze", 25, LowerSqueeze, "", InputKinds::kStrings},
    {"Unsqueeze", 25, LowerUnsqueeze, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> ReshapeOperators() { return kOperators; }

}  // namespace onnxifi::ops
