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
// the last filled up with zeros. A group consists of its blocks, and a block of lines of a number
// for each column: its words, of eight numbers of 4 bits or four of 8; its scales; its zeros, if
// there are any. So kernels read memory in order, and fetch it in order ahead of time.
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
  int64_t block_words() const { return block * bits / 32; }
  int64_t groups() const { return (columns + kQuantizedColumns - 1) / kQuantizedColumns; }
  int64_t block_lines() const { return block_words() + (has_zeros ? 2 : 1); }
  // Lines of a group: that of element k, those of a block.
  int64_t WordLine(int64_t k) const { return k / block * block_lines() + k % block * bits / 32; }
  int64_t ScaleLine(int64_t number) const { return number * block_lines() + block_words(); }
  int64_t ZeroLine(int64_t number) const { return ScaleLine(number) + 1; }
  int64_t group_bytes() const { return blocks() * block_lines() * kLine; }
  int64_t matrix_bytes() const { return groups() * group_bytes(); }
  int64_t size_bytes() const { return matrices * matrix_bytes(); }

 private:
  static constexpr int64_t kLine = kQuantizedColumns * 4;
};

// A view of one such matrix, at a line of the cache.
struct QuantizedMatrix {
  QuantizedLayout layout;
  const std::byte* data;

  // A line of a group, from `column` on; the next line is kQuantizedColumns behind.
  const int32_t* Line(int64_t column, int64_t line) const {
    return reinterpret_cast<const int32_t*>(data +
                                            column / kQuantizedColumns * layout.group_bytes()) +
           line * kQuantizedColumns + column % kQuantizedColumns;
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
