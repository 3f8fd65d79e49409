// SPDX-License-Identifier: Apache-2.0
//
// DFT (opset 17 and later) and STFT: transforms of the lines along an axis. The frames of STFT are
// a view of the signal.

#include <utility>

#include "backends/core/ops/registry.h"
#include "backends/core/ops/shape/axis_list.h"
#include "backends/core/ops/signal/fast_transform.h"
#include "backends/core/ops/signal/transform.h"

namespace onnxifi::ops {
namespace {

// `x`: [..., M, in_parts], `window`: [M] or null. Gives [..., K, out_parts].
Result<Operand> TransformLines(Lowering& lowering, const Transform& transform, const Operand& x,
                               const Operand* window) {
  return IsFasterInStages(transform, x.shape) ? TransformInStages(lowering, transform, x, window)
                                              : TransformByMatrix(lowering, transform, x, window);
}

// The last axis of the input says real (1) or complex (2), maybe only when the program runs.
Result<Dim> PartsOf(Lowering& lowering, const Operand& x) {
  const Dim parts = x.shape.back();
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(Max(Equal(parts, 1), Equal(parts, 2)),
                                           Code::kInvalidModel,
                                           "The last axis of the input has " + parts.ToString() +
                                               " elements instead of 1 (real) or 2 (complex).",
                                           {parts}));
  return parts;
}

// The one number of an input.
Result<Dim> NumberOf(Lowering& lowering, int input, std::string_view name) {
  ONNXIFI_ASSIGN_OR_RETURN(Dims numbers, lowering.IntegersOrRuntime(input, 1));
  if (numbers.size() != 1) {
    return lowering.InvalidModel(std::string(name) + " has " + std::to_string(numbers.size()) +
                                 " elements instead of one.");
  }
  return numbers[0];
}

Status RequirePositive(Lowering& lowering, Dim number, std::string_view name) {
  return lowering.Require(Less(0, number), Code::kInvalidModel,
                          std::string(name) + " is not positive.", {number});
}

// Per axis 1 if it is transformed, else 0; which may be known only when the program runs.
Result<Dims> TransformedAxis(Lowering& lowering, int rank) {
  Dim axis = lowering.version() < 20 ? lowering.Int("axis", 1) : -2;
  if (lowering.version() >= 20 && lowering.Has(2)) {
    ONNXIFI_ASSIGN_OR_RETURN(axis, NumberOf(lowering, 2, "axis"));
  }
  ONNXIFI_ASSIGN_OR_RETURN(const AxisList axes, AxisList::Make(lowering, {axis}, rank));
  Dims is_axis;
  for (int k = 0; k < rank; ++k) is_axis.push_back(axes.Contains(k));
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(Equal(is_axis.back(), 0), Code::kInvalidModel,
                                           "The axis is that of real and imaginary parts.",
                                           {axis}));
  is_axis.pop_back();
  return is_axis;
}

// The number of axis `at` when the axis that is `is_axis` goes behind the others.
Dim MovedBack(const Dims& is_axis, const Dims& numbers, size_t at) {
  if (at + 1 == is_axis.size()) {
    Dim found = numbers[0];
    for (size_t k = 1; k < is_axis.size(); ++k) found = Select(is_axis[k], numbers[k], found);
    return found;
  }
  Dim is_behind = 0;
  for (size_t k = at + 1; k < is_axis.size(); ++k) is_behind = is_behind + is_axis[k];
  return Select(is_behind, numbers[at], numbers[at + 1]);
}

// The reverse: of axis `at` when the last one takes its place among the others.
Dim MovedToPlace(const Dims& is_axis, const Dims& numbers, size_t at) {
  Dim is_before = 0;
  for (size_t k = 0; k < at; ++k) is_before = is_before + is_axis[k];
  const Dim other = at == 0 ? numbers[0] : Select(is_before, numbers[at - 1], numbers[at]);
  return Select(is_axis[at], numbers[is_axis.size() - 1], other);
}

// An operand with its axes but the last in another order.
Operand Moved(const Operand& operand, const Dims& is_axis,
              Dim (*move)(const Dims&, const Dims&, size_t)) {
  Operand moved = operand;
  for (size_t k = 0; k < is_axis.size(); ++k) {
    moved.shape[k] = move(is_axis, operand.shape, k);
    moved.view.strides[k] = move(is_axis, operand.view.strides, k);
  }
  return moved;
}

Status LowerDft(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  Operand x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  if (x.rank() < 2) {
    return lowering.InvalidModel("The input has " + std::to_string(x.rank()) +
                                 " axes and needs at least 2.");
  }
  Transform transform;
  ONNXIFI_ASSIGN_OR_RETURN(transform.in_parts, PartsOf(lowering, x));
  ONNXIFI_ASSIGN_OR_RETURN(const Dims is_axis, TransformedAxis(lowering, x.rank()));
  x = Moved(lowering.Dense(x), is_axis, MovedBack);
  const int axis = x.rank() - 2;
  transform.is_inverse = lowering.Int("inverse", 0) != 0;
  transform.is_onesided = lowering.Int("onesided", 0) != 0;
  const Dim extent = x.shape[axis];
  transform.length = transform.mirrors() ? (extent - 1) * 2 : extent;
  if (lowering.Has(1)) {
    ONNXIFI_ASSIGN_OR_RETURN(transform.length, NumberOf(lowering, 1, "dft_length"));
  }
  ONNXIFI_RETURN_IF_ERROR(RequirePositive(lowering, transform.length, "The length of the DFT"));
  const Dim half = FloorDiv(transform.length, 2) + 1;
  transform.bins = transform.is_onesided && !transform.is_inverse ? half : transform.length;
  transform.used = Min(extent, transform.mirrors() ? half : transform.length);
  transform.out_parts = transform.mirrors() ? 1 : 2;

  x = program::Slice(x, axis, 0, 1, transform.used);
  ONNXIFI_ASSIGN_OR_RETURN(const Operand y,
                           TransformLines(lowering, transform, x, /*window=*/nullptr));
  lowering.Set(0, Moved(y, is_axis, MovedToPlace));
  return base::Ok();
}

Status LowerStft(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  Operand signal = lowering.In(0);
  if (!tensor::IsFloat(signal.type())) return lowering.UnsupportedType(0);
  if (signal.rank() == 2) signal = program::InsertAxis(signal, 2);
  if (signal.rank() != 3) {
    return lowering.InvalidModel("The signal has " + std::to_string(signal.rank()) +
                                 " axes instead of 3.");
  }
  if (lowering.Has(2) && (lowering.In(2).rank() != 1 || lowering.In(2).type() != signal.type())) {
    return lowering.InvalidModel("The window is not a vector of the signal's type.");
  }
  Transform transform;
  ONNXIFI_ASSIGN_OR_RETURN(transform.in_parts, PartsOf(lowering, signal));
  transform.is_onesided = lowering.Int("onesided", 1) != 0;
  ONNXIFI_ASSIGN_OR_RETURN(const Dim step, NumberOf(lowering, 1, "frame_step"));
  transform.length = lowering.Has(2) ? lowering.In(2).shape[0] : signal.shape[1];
  if (lowering.Has(3)) {
    ONNXIFI_ASSIGN_OR_RETURN(transform.length, NumberOf(lowering, 3, "frame_length"));
  }
  ONNXIFI_RETURN_IF_ERROR(RequirePositive(lowering, step, "frame_step"));
  ONNXIFI_RETURN_IF_ERROR(RequirePositive(lowering, transform.length, "frame_length"));
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(
      Less(transform.length, signal.shape[1] + 1), Code::kMismatchingShape,
      "frame_length exceeds the length of the signal.", {transform.length, signal.shape[1]}));
  std::optional<Operand> window;
  if (lowering.Has(2)) {
    window = lowering.In(2);
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(window->shape[0], transform.length,
                                                  "The length of the window and frame_length"));
    window->shape[0] = transform.length;
  }
  transform.bins = transform.is_onesided ? FloorDiv(transform.length, 2) + 1 : transform.length;
  transform.used = transform.length;

  const Dim frames = FloorDiv(signal.shape[1] - transform.length, step) + 1;
  // Frames overlap: one step of them is `step` elements of the signal.
  Operand framed = program::InsertAxis(lowering.Dense(signal), 1);
  framed.view.strides[1] = framed.view.strides[2] * step;
  framed.shape[1] = frames;
  framed.shape[2] = transform.length;
  ONNXIFI_ASSIGN_OR_RETURN(
      Operand y, TransformLines(lowering, transform, framed, window ? &*window : nullptr));
  lowering.Set(0, std::move(y));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"DFT", 20, LowerDft},
    {"STFT", 17, LowerStft},
};

}  // namespace

std::span<const Operator> DftOperators() { return kOperators; }

}  // namespace onnxifi::ops
