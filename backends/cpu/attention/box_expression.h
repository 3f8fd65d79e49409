// SPDX-License-Identifier: Apache-2.0
//
// BoxExpression: an expression of a step on the tile engine over boxes of rows and columns, the
// last two axes of what it is over: some rows of scores or of results, or a block of an operand
// that is computed while it is read.

#ifndef ONNXIFI_BACKENDS_CPU_ATTENTION_BOX_EXPRESSION_H_
#define ONNXIFI_BACKENDS_CPU_ATTENTION_BOX_EXPRESSION_H_

#include <cstdint>
#include <span>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/frame.h"

namespace onnxifi::attention {

// Where a box lies: coordinates of the batch axes, first row and column.
struct BoxPlace {
  const int64_t* batch;
  int64_t row;
  int64_t column;
};

// Immutable once made. `code` outlives it.
class BoxExpression {
 public:
  // Boxes have up to `rows` rows and `columns` columns, and begin at a multiple of `columns`.
  // `swaps`: elements of a column are neighbours in what is computed, instead of those of a row. No
  // axis of `extents` has extent 0; roots are stored through `writes`, if there are any.
  BoxExpression(const engine::Code& code, const device::BoundStep& step,
                std::span<const int64_t> extents, int64_t rows, int64_t columns, bool swaps,
                std::span<const device::BoundView> writes = {});

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  bool swaps() const { return swaps_; }
  int64_t lanes() const { return rows_ * columns_; }
  int64_t scratch_bytes() const;
  engine::Frame MakeFrame(device::Addresses addresses, std::byte* scratch) const {
    return {bound_, addresses, scratch, lanes()};
  }
  engine::Box BoxAt(const BoxPlace& place, int64_t rows, int64_t columns) const;
  // Computes a box and stores it. `scratch` is that of the frame.
  void Store(engine::Frame& frame, const engine::Box& box, device::Addresses addresses,
             std::byte* scratch) const {
    writer_.Run(frame, box, addresses, scratch + bound_.scratch_bytes());
  }
  // The step from row to row of what the expression loads first, is less than that from column to
  // column.
  static bool LiesInColumns(const engine::Code& code, const device::BoundStep& step);

 private:
  engine::BoundCode bound_;
  engine::Writer writer_;
  int rank_;
  int64_t rows_;
  int64_t columns_;
  bool swaps_;
};

}  // namespace onnxifi::attention

#endif  // ONNXIFI_BACKENDS_CPU_ATTENTION_BOX_EXPRESSION_H_
