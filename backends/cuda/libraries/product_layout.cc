// SPDX-License-Identifier: Apache-2.0
//
// ProductLayout: axes are sorted by the operands that step along them, and joined where all agree.

#include "backends/cuda/libraries/product_layout.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "backends/core/program/step.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;
using device::BoundView;
using program::Contract;

enum Place : size_t { kLeft, kRight, kOut, kBias, kAddend, kPlaces };

struct Axis {
  int64_t extent = 1;
  std::array<int64_t, kPlaces> strides = {};
};

// Left is the operand that has the rows.
struct Axes {
  std::vector<Axis> batch, rows, columns, depth;
};

Status Refuse(std::string sentence) {
  return Status(Code::kUnsupportedOperator, std::move(sentence));
}

// Without axes of one element; neighbours joined where every place steps evenly through both.
std::vector<Axis> Join(std::span<const Axis> axes) {
  std::vector<Axis> joined;
  for (const Axis& axis : axes) {
    if (axis.extent == 1) continue;
    bool is_even = !joined.empty();
    for (size_t place = 0; is_even && place < kPlaces; ++place) {
      is_even = joined.back().strides[place] == axis.strides[place] * axis.extent;
    }
    if (is_even) {
      const int64_t outer = joined.back().extent;
      joined.back() = axis;
      joined.back().extent *= outer;
    } else {
      joined.push_back(axis);
    }
  }
  return joined;
}

Axes AxesOf(const device::BoundStep& step, const LibraryResults& results) {
  const auto& contract = *step.step->As<Contract>();
  const BoundView& a = step.reads[0];
  const BoundView& b = step.reads[1];
  Axes axes;
  const auto axis_of = [&](size_t place) {
    Axis axis{.extent = step.domain[place]};
    axis.strides[kOut] = results.out->strides[place];
    if (results.bias != nullptr) axis.strides[kBias] = results.bias->strides[place];
    if (results.addend != nullptr) axis.strides[kAddend] = results.addend->strides[place];
    return axis;
  };
  if (contract.form == Contract::Form::kMatMul) {
    const auto batch_axes = static_cast<size_t>(contract.batch_axes);
    const size_t row_end = batch_axes + static_cast<size_t>(contract.m_axes);
    for (size_t place = 0; place < step.domain.size(); ++place) {
      Axis axis = axis_of(place);
      if (place < row_end) axis.strides[kLeft] = a.strides[place];
      if (place < batch_axes) axis.strides[kRight] = b.strides[place];
      if (place >= row_end) {
        axis.strides[kRight] = b.strides[place - row_end + batch_axes + contract.inner.size()];
      }
      (place < batch_axes ? axes.batch
       : place < row_end  ? axes.rows
                          : axes.columns)
          .push_back(axis);
    }
    for (size_t k = 0; k < contract.inner.size(); ++k) {
      axes.depth.push_back({step.Number(contract.inner[k]),
                            {a.strides[row_end + k], b.strides[batch_axes + k], 0, 0, 0}});
    }
    return axes;
  }
  // Weights have the rows, and their channels are those of a group.
  const int64_t depth = step.Number(contract.inner[0]);
  Axis images = axis_of(0);
  images.strides[kRight] = a.strides[0];
  Axis rows = axis_of(1);
  rows.extent /= contract.group;
  rows.strides[kLeft] = b.strides[0];
  Axis groups = axis_of(1);
  groups.extent = contract.group;
  for (int64_t& stride : groups.strides) stride *= rows.extent;
  groups.strides[kLeft] = b.strides[0] * rows.extent;
  groups.strides[kRight] = a.strides[1] * depth;
  axes.batch = {images, groups};
  axes.rows = {rows};
  for (size_t place = 2; place < step.domain.size(); ++place) {
    axes.columns.push_back(axis_of(place));
    axes.columns.back().strides[kRight] = a.strides[place];
  }
  axes.depth = {{depth, {b.strides[1], a.strides[1], 0, 0, 0}}};
  return axes;
}

// Batches that share an operand are more rows, or columns, where they lie like these.
void JoinBatches(std::vector<Axis>& batch, std::vector<Axis>& lines, Place shared, Place own) {
  while (!batch.empty() && batch.back().strides[shared] == 0 && batch.back().strides[own] != 0) {
    std::vector<Axis> more = {batch.back()};
    more.insert(more.end(), lines.begin(), lines.end());
    more = Join(more);
    if (more.size() > 1) return;
    lines = std::move(more);
    batch.pop_back();
  }
}

// A matrix of these lines and places across, as it is stored.
Result<ProductLayout::Matrix> Store(const Axis& down, const Axis& across, Place place,
                                    const char* what) {
  const int64_t step_down = down.strides[place];
  const int64_t step_across = across.strides[place];
  // Of one element or one line either order will do, but for the one that steps.
  const bool is_plain = step_down == 1 && down.extent > 1;
  const bool is_transposed =
      !is_plain && ((step_across == 1 && across.extent > 1) || across.extent == 1);
  if (!is_plain && !is_transposed && down.extent > 1) {
    return Refuse(std::string("The elements of ") + what + " are " + std::to_string(step_down) +
                  " and " + std::to_string(step_across) +
                  " apart; cuBLASLt wants neighbours along one of both.");
  }
  ProductLayout::Matrix matrix;
  matrix.is_transposed = is_transposed;
  matrix.rows = is_transposed ? across.extent : down.extent;
  matrix.columns = is_transposed ? down.extent : across.extent;
  matrix.leading = matrix.columns == 1 ? matrix.rows : is_transposed ? step_down : step_across;
  if (matrix.leading < matrix.rows) {
    return Refuse(std::string("The lines of ") + what + " are " + std::to_string(matrix.leading) +
                  " elements apart and " + std::to_string(matrix.rows) + " long.");
  }
  return matrix;
}

// The only axis of some, or one of a single element.
Result<Axis> TakeOnly(const std::vector<Axis>& axes, const char* what) {
  if (axes.size() > 1) {
    return Refuse(std::string("The ") + what + " are " + std::to_string(axes.size()) +
                  " axes that do not lie like one.");
  }
  return axes.empty() ? Axis() : axes[0];
}

}  // namespace

Result<ProductLayout> LayOutProduct(const device::BoundStep& step, const LibraryResults& results) {
  Axes axes = AxesOf(step, results);
  for (std::vector<Axis>* const part : {&axes.batch, &axes.rows, &axes.columns, &axes.depth}) {
    if (std::ranges::any_of(*part, [](const Axis& axis) { return axis.extent == 0; })) {
      return Refuse("There is nothing to multiply.");
    }
    *part = Join(*part);
  }
  JoinBatches(axes.batch, axes.rows, kRight, kLeft);
  JoinBatches(axes.batch, axes.columns, kLeft, kRight);
  ONNXIFI_ASSIGN_OR_RETURN(const Axis rows, TakeOnly(axes.rows, "rows"));
  ONNXIFI_ASSIGN_OR_RETURN(const Axis columns, TakeOnly(axes.columns, "columns"));
  ONNXIFI_ASSIGN_OR_RETURN(const Axis depth, TakeOnly(axes.depth, "products of a sum"));

  ProductLayout layout;
  layout.extents = {rows.extent, columns.extent, depth.extent};
  // The longest batch is the library's, of the others each has a call of its own.
  const auto longest = std::ranges::max_element(axes.batch, {}, &Axis::extent);
  Axis batch;
  if (longest != axes.batch.end()) {
    batch = *longest;
    axes.batch.erase(longest);
  }
  layout.batches = batch.extent;

  ONNXIFI_ASSIGN_OR_RETURN(ProductLayout::Matrix left,
                           Store(rows, depth, kLeft, "the operand with the rows"));
  ONNXIFI_ASSIGN_OR_RETURN(ProductLayout::Matrix right,
                           Store(depth, columns, kRight, "the operand with the columns"));
  ONNXIFI_ASSIGN_OR_RETURN(layout.d, Store(rows, columns, kOut, "the output"));
  const bool is_swapped = std::exchange(layout.d.is_transposed, false);
  const bool is_convolution = step.step->As<Contract>()->form != Contract::Form::kMatMul;
  left.batch_stride = batch.strides[kLeft];
  left.offset = step.reads[is_convolution ? 1 : 0].offset;
  right.batch_stride = batch.strides[kRight];
  right.offset = step.reads[is_convolution ? 0 : 1].offset;
  layout.d.batch_stride = batch.strides[kOut];
  layout.d.offset = results.out->offset;
  layout.is_a_read_1 = is_convolution != is_swapped;
  if (is_swapped) {
    std::swap(left, right);
    left.is_transposed = !left.is_transposed;
    right.is_transposed = !right.is_transposed;
  }
  layout.a = left;
  layout.b = right;

  const Axis& down = is_swapped ? columns : rows;
  const Axis& across = is_swapped ? rows : columns;
  if (results.bias != nullptr) {
    if ((down.extent > 1 && down.strides[kBias] != 1) || across.strides[kBias] != 0 ||
        batch.strides[kBias] != 0 || std::ranges::any_of(axes.batch, [](const Axis& axis) {
          return axis.strides[kBias] != 0;
        })) {
      return Refuse("The bias is not one element for each of the output's neighbours in memory.");
    }
    layout.bias_offset = results.bias->offset;
  }
  if (results.addend != nullptr) {
    const int64_t leading = across.extent == 1 ? down.extent : across.strides[kAddend];
    if ((down.extent > 1 && down.strides[kAddend] != 1) || leading < down.extent) {
      return Refuse("The addend does not lie like the output.");
    }
    layout.addend = layout.d;
    layout.addend.leading = leading;
    layout.addend.batch_stride = batch.strides[kAddend];
    layout.addend.offset = results.addend->offset;
  }

  layout.calls = {{}};
  constexpr size_t kMaxCalls = 16;
  for (const Axis& axis : axes.batch) {
    if (static_cast<size_t>(axis.extent) > kMaxCalls / layout.calls.size()) {
      return Refuse("The batches would take more than " + std::to_string(kMaxCalls) + " calls.");
    }
    std::vector<ProductLayout::Call> calls;
    for (const ProductLayout::Call& call : layout.calls) {
      for (int64_t at = 0; at < axis.extent; ++at) {
        const int64_t of_left = at * axis.strides[kLeft];
        const int64_t of_right = at * axis.strides[kRight];
        calls.push_back(
            {call.a + (is_swapped ? of_right : of_left), call.b + (is_swapped ? of_left : of_right),
             call.d + at * axis.strides[kOut], call.addend + at * axis.strides[kAddend]});
      }
    }
    layout.calls = std::move(calls);
  }
  return layout;
}

}  // namespace onnxifi::cuda
