// SPDX-License-Identifier: Apache-2.0
//
// Coordinates: those of the rows of ascending row-major positions of a domain.

#ifndef ONNXIFI_BACKENDS_CPU_NON_ZERO_COORDINATES_H_
#define ONNXIFI_BACKENDS_CPU_NON_ZERO_COORDINATES_H_

#include <cstdint>
#include <span>

#include "backends/cpu/engine/geometry.h"

namespace onnxifi::non_zero {

// From one row to the next by counting: divisions only where many rows are passed.
class Coordinates {
 public:
  // At row 0. `extents` outlives this; 1 to engine::kMaxAxes axes, none of extent 0.
  explicit Coordinates(std::span<const int64_t> extents) : extents_(extents) {}

  // To the row of `position`, which lies in no earlier one.
  void MoveTo(int64_t position) {
    constexpr int64_t kFewRows = 8;
    const int64_t length = extents_.back();
    if (position - row_begin_ >= kFewRows * length) JumpTo(position / length);
    while (position >= row_end()) NextRow();
  }

  // Positions of the row are [row_begin, row_end); their coordinates along the last axis count from
  // 0.
  int64_t row_begin() const { return row_begin_; }
  int64_t row_end() const { return row_begin_ + extents_.back(); }
  // The row's coordinate along another axis.
  int64_t operator[](size_t axis) const { return at_[axis]; }

 private:
  void NextRow() {
    row_begin_ = row_end();
    for (size_t axis = extents_.size() - 1; axis-- > 0;) {
      if (++at_[axis] < extents_[axis]) return;
      at_[axis] = 0;
    }
  }
  void JumpTo(int64_t row) {
    row_begin_ = row * extents_.back();
    for (size_t axis = extents_.size() - 1; axis-- > 0;) {
      at_[axis] = row % extents_[axis];
      row /= extents_[axis];
    }
  }

  const std::span<const int64_t> extents_;
  int64_t row_begin_ = 0;
  int64_t at_[engine::kMaxAxes] = {};
};

}  // namespace onnxifi::non_zero

#endif  // ONNXIFI_BACKENDS_CPU_NON_ZERO_COORDINATES_H_
