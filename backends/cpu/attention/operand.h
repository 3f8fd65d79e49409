// SPDX-License-Identifier: Apache-2.0
//
// Operands of attention as blocks of floats: where they lie in memory, or computed by the tile
// engine: widened from another type, padded, or the sum of two.

#ifndef ONNXIFI_BACKENDS_CPU_ATTENTION_OPERAND_H_
#define ONNXIFI_BACKENDS_CPU_ATTENTION_OPERAND_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/cpu/attention/box_expression.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/loop.h"

namespace onnxifi::attention {

// What is known of an operand before extents are.
struct OperandCode {
  int read = 0;
  bool is_plain = false;  // float32 as it lies in memory
  // Of 16-bit floats that are only widened, what widens a row of them; else null.
  engine::Loop widen = nullptr;
  bool is_bfloat16 = false;  // that is only widened
  engine::Code code;
  std::vector<int> reads;        // of its expression
  bool has_coordinates = false;  // in its expression

  static OperandCode Compile(const device::Facts& facts, int read, program::ExprId prologue,
                             engine::LoopSet loops);
  // Whether it has the same elements all along an axis.
  bool IsRepeatedAlong(const device::BoundStep& step, size_t axis) const;
};

// Rows and columns of an operand.
struct FloatBlock {
  const float* data;
  int64_t row_stride;
  int64_t column_stride;
};

// An operand with extents. `code` outlives it.
class BoundOperand {
 public:
  // Blocks have up to `rows` rows and `columns` columns, and begin at a multiple of `columns`.
  BoundOperand(const OperandCode& code, const device::BoundStep& step,
               std::span<const int64_t> extents, int64_t rows, int64_t columns);

  const device::BoundView& view() const { return view_; }
  const BoxExpression* expression() const { return expression_ ? &*expression_ : nullptr; }
  // Null but for rows or columns of neighbours that are only widened.
  engine::Loop widen() const { return widen_; }
  // Of a reader: its frame and a block.
  int64_t scratch_bytes() const;

 private:
  device::BoundView view_;
  std::optional<BoxExpression> expression_;  // nothing where it lies in memory, or is only widened
  engine::Loop widen_ = nullptr;
  int64_t block_bytes_ = 0;  // where it is widened
};

// Reads blocks for one thread. All that it is given outlives it.
class OperandReader {
 public:
  // `scratch` holds operand.scratch_bytes() on a cache line boundary.
  OperandReader(const BoundOperand& operand, device::Addresses addresses, std::byte* scratch);

  // A block, there until the next.
  FloatBlock Read(const BoxPlace& place, int64_t rows, int64_t columns);

 private:
  FloatBlock Widened(const std::byte* from, int64_t rows, int64_t columns) const;

  const BoundOperand& operand_;
  const std::byte* data_ = nullptr;  // where it lies in memory
  std::optional<engine::Frame> frame_;
  float* block_ = nullptr;
};

}  // namespace onnxifi::attention

#endif  // ONNXIFI_BACKENDS_CPU_ATTENTION_OPERAND_H_
