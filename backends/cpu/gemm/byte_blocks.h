// SPDX-License-Identifier: Apache-2.0
//
// ByteBlocks: rows of float32 that are rounded to bytes, with a scale per block, times the numbers
// of a QuantizedMatrix: sums of a block are integers (VNNI, or AVX2). For products whose model
// permits that; the error of an element of a row is at most 1/254 of the largest one in its block.
// One thread; the caller divides the work.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_BYTE_BLOCKS_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_BYTE_BLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/epilogue.h"
#include "backends/cpu/gemm/quantized_matrix.h"

namespace onnxifi::gemm {

// Whether the processor has the instructions, and kernels may use them.
bool HasByteBlocks();

// A rounded row: its bytes in the order in which they meet the numbers, then what its blocks have.
struct ByteRowLayout {
  explicit ByteRowLayout(const QuantizedLayout& of) : layout(of) {}

  int64_t blocks() const { return layout.blocks(); }
  // Each of `blocks` numbers: float32 scales; sums of the bytes, as int32.
  int64_t scales_at() const { return layout.padded_depth(); }
  int64_t sums_at() const { return scales_at() + blocks() * 4; }
  int64_t size_bytes() const { return (sums_at() + blocks() * 4 + 63) / 64 * 64; }

  QuantizedLayout layout;
};
// Not-a-number and the infinite stay what they are in the sums that they are part of: these are
// NaN.
void RoundRow(const QuantizedLayout& layout, const float* x, std::byte* row);

// The numbers of a group of columns without a sign: [quad][kQuantizedColumns][4].
inline int64_t BytePanelBytes(const QuantizedLayout& layout) {
  return layout.padded_depth() * kQuantizedColumns;
}
// Those of the columns from `column` on, which begins a group. Memory of 64 bytes' alignment.
void FillBytePanel(const QuantizedMatrix& matrix, int64_t column, std::byte* panel);

// Whether so many rows take less time with a panel; without one the numbers are read from the
// matrix.
bool NeedsBytePanel(int64_t rows);

// Y[m, n] = epilogue(sum over k of the rounded X[m, k] * weight[k, n]) for the columns of a group
// from `column` on; pointers of columns point to that of column 0.
struct ByteBlockProduct {
  QuantizedMatrix matrix;
  const std::byte* rows;  // ByteRowLayout::size_bytes() apart
  int64_t row_count;
  const std::byte* panel;  // of FillBytePanel; null where none is needed
  int64_t column;
  float* y;  // at any address
  int64_t y_stride;
};
void MultiplyByteBlocks(const ByteBlockProduct& product, const Epilogue& epilogue);

// Fewer rows are as fast without rounding: measured with 1 to 8 rows, depths of 1024 and 2048 and
// blocks of 32 and 128. AVX2 takes longer to convert the numbers to float32 than to round one row.
int64_t MinByteBlockRows();

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_BYTE_BLOCKS_H_
