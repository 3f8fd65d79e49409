// SPDX-License-Identifier: Apache-2.0
//
// QuantizedMatrix: weights of 4 or 8 bits with a scale, and perhaps a zero point, per block of each
// column. They stay as they are in memory: few rows are multiplied with numbers that are converted
// in registers; for more rows, columns are dequantized into panels of Gemm.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_QUANTIZED_MATRIX_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_QUANTIZED_MATRIX_H_

#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::gemm {

// Numbers of a column that are multiplied at a time; columns are filled up to a multiple of it.
inline constexpr int64_t kQuantizedChunk = 128;
// Rows that are multiplied at a time.
inline constexpr int64_t kMaxQuantizedRows = 4;

// What the memory of such a matrix consists of: the numbers of all columns, then their scales, then
// their zeros; columns begin at lines of the cache.
//   weight[k, n] = (number[n, k] - zero[n, k / block]) * scale[n, k / block]
// Numbers are signed. Those of 4 bits are stored plus 8, the first of two in the low bits.
struct QuantizedLayout {
  static constexpr int64_t kLineFloats = 16;

  int64_t depth = 0;
  int64_t columns = 0;
  int64_t block = 0;  // 16, 32, 64 or kQuantizedChunk
  int bits = 0;       // 4 or 8
  bool has_zeros = false;

  int64_t padded_depth() const { return RoundUp(depth, kQuantizedChunk); }
  int64_t column_bytes() const { return RoundUp(padded_depth() * bits / 8, kLine); }
  // Of a column; in floats.
  int64_t column_blocks() const { return RoundUp(padded_depth() / block, kLineFloats); }
  int64_t block_bytes() const { return column_blocks() * static_cast<int64_t>(sizeof(float)); }
  int64_t scales_at() const { return columns * column_bytes(); }
  int64_t zeros_at() const { return scales_at() + columns * block_bytes(); }
  // With a line behind them, as a vector of scales may be read from the last one on.
  int64_t size_bytes() const {
    return zeros_at() + kLine + (has_zeros ? columns * block_bytes() : 0);
  }

 private:
  static constexpr int64_t kLine = 64;
  static int64_t RoundUp(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
  }
};

// A view of such memory.
struct QuantizedMatrix {
  QuantizedLayout layout;
  const std::byte* data;

  const uint8_t* Numbers(int64_t column) const {
    return reinterpret_cast<const uint8_t*>(data) + column * layout.column_bytes();
  }
  const float* Scales(int64_t column) const {
    return reinterpret_cast<const float*>(data + layout.scales_at()) +
           column * layout.column_blocks();
  }
  const float* Zeros(int64_t column) const {
    return reinterpret_cast<const float*>(data + layout.zeros_at()) +
           column * layout.column_blocks();
  }
};

// Floats that ArrangeRow writes.
int64_t ArrangedSize(const QuantizedLayout& layout);
// A row of X, of any address, in the order in which its elements meet the numbers.
void ArrangeRow(const QuantizedLayout& layout, const float* x, float* arranged);

// Y[m, n] = epilogue(sum over k of X[m, k] * weight[k, n]) for n in [first, end).
struct QuantizedProduct {
  QuantizedMatrix matrix;
  const float* x;  // rows that ArrangeRow wrote, ArrangedSize() floats each
  float* y;        // at any address; neighbours in n lie next to each other
  int64_t y_stride;
  int64_t rows;  // 1 to kMaxQuantizedRows
};
void MultiplyQuantized(const QuantizedProduct& product, const Epilogue& epilogue, int64_t first,
                       int64_t end);

// Columns [first, first + count) as a panel of Gemm, [depth][PanelColumns()], of which they are the
// first; the others are 0.
void DequantizePanel(const QuantizedMatrix& matrix, int64_t first, int64_t count, float* panel);

// With more rows, panels take less time than MultiplyQuantized; 0 where they always do.
int64_t MostQuantizedRows(const QuantizedLayout& layout);

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_QUANTIZED_MATRIX_H_
