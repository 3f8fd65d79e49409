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

// The largest block; scales of larger ones are repeated.
inline constexpr int64_t kMaxQuantizedBlock = 128;
// Columns that lie side by side: a multiple of every processor's PanelColumns().
inline constexpr int64_t kQuantizedColumns = 32;

// What the memory of such matrices consists of: of each matrix groups of kQuantizedColumns columns,
// the last filled up with zeros. Of a group the numbers, as words of eight of 4 bits or four of 8:
// [word][column]; then the scales, [block][column]; then the zeros, likewise.
//   weight[k, n] = (number[n, k] - zero[n, k / block]) * scale[n, k / block]
// Numbers are signed, the first in the low bits of its word. Those of 4 bits are stored plus 8.
struct QuantizedLayout {
  int64_t depth = 0;
  int64_t columns = 0;  // of one matrix
  int64_t block = 0;    // 16, 32, 64 or kMaxQuantizedBlock
  int bits = 0;         // 4 or 8
  bool has_zeros = false;
  int64_t matrices = 1;

  int64_t blocks() const { return (depth + block - 1) / block; }
  int64_t padded_depth() const { return blocks() * block; }
  int64_t words() const { return padded_depth() * bits / 32; }  // of a column
  int64_t groups() const { return (columns + kQuantizedColumns - 1) / kQuantizedColumns; }
  // In a group.
  int64_t scales_at() const { return words() * kLine; }
  int64_t zeros_at() const { return scales_at() + blocks() * kLine; }
  int64_t group_bytes() const { return zeros_at() + (has_zeros ? blocks() * kLine : 0); }
  int64_t matrix_bytes() const { return groups() * group_bytes(); }
  int64_t size_bytes() const { return matrices * matrix_bytes(); }

 private:
  static constexpr int64_t kLine = kQuantizedColumns * 4;
};

// A view of one such matrix, at a line of the cache.
struct QuantizedMatrix {
  QuantizedLayout layout;
  const std::byte* data;

  // Those of the columns from `column` on; the next word or block is kQuantizedColumns behind.
  const int32_t* Words(int64_t column) const {
    return reinterpret_cast<const int32_t*>(GroupOf(column)) + column % kQuantizedColumns;
  }
  const float* Scales(int64_t column) const {
    return reinterpret_cast<const float*>(GroupOf(column) + layout.scales_at()) +
           column % kQuantizedColumns;
  }
  const float* Zeros(int64_t column) const {
    return reinterpret_cast<const float*>(GroupOf(column) + layout.zeros_at()) +
           column % kQuantizedColumns;
  }

 private:
  const std::byte* GroupOf(int64_t column) const {
    return data + column / kQuantizedColumns * layout.group_bytes();
  }
};

// Y[m, n] = epilogue(sum over k of X[m, k] * weight[k, n]) for n in [first, end), where `first` is
// a multiple of PanelColumns(). For at most eight rows; more take less time with panels.
struct QuantizedProduct {
  QuantizedMatrix matrix;
  const float* x;  // at any address
  int64_t x_stride;
  float* y;  // at any address; neighbours in n lie next to each other
  int64_t y_stride;
  int64_t rows;
};
void MultiplyQuantized(const QuantizedProduct& product, const Epilogue& epilogue, int64_t first,
                       int64_t end);

// Columns [first, first + PanelColumns()), of which `first` is a multiple, as a panel of Gemm:
// [depth][PanelColumns()]. Those beyond the matrix are 0.
void DequantizePanel(const QuantizedMatrix& matrix, int64_t first, float* panel);

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_QUANTIZED_MATRIX_H_
