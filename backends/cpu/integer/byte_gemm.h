// SPDX-License-Identifier: Apache-2.0
//
// ByteGemm: products of small matrices of bytes with 32-bit sums, in vector code for the processor
// at hand. One thread; the caller divides the work. Rows are unsigned and columns signed bytes, as
// the instructions of processors want them: a byte of the other kind has its top bit flipped, which
// moves it by 128, and its zero point with it (ByteOperand of byte_factors.h).

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_GEMM_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_GEMM_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/cpu/integer/panel_layout.h"
#include "backends/cpu/integer/requantize.h"

namespace onnxifi::integer {

// Columns that are computed together: B is packed in panels of so many. Depends on the processor
// only, as do the rows that are computed together.
int64_t PanelColumns();
int64_t BlockRows();
// Products per second of one core, roughly.
double MultiplyAddsPerSecond();
// What multiplies, for reports: "AVX3 with VNNI".
std::string MultiplierName();

// What a panel of such a depth has, for the processor at hand.
PanelLayout LayoutOf(int64_t depth, int64_t pieces);
// The depth consists of `pieces` of the same length, each filled up to whole quads. Bytes of one
// packed panel, and of those for a whole B, a multiple of a cache line.
int64_t PanelBytes(int64_t depth, int64_t pieces = 1);
int64_t PackedBytes(int64_t depth, int64_t columns, int64_t pieces = 1);
// Columns of a whole number of panels: how long tables of columns are.
int64_t PaddedColumns(int64_t columns);

// C[r, c] = sum of A[r, k] * B[k, c] + row_terms[r] * column_sums[c]
//           + row_sums[r] * column_terms[c], modulo 2^32
struct ByteProduct {
  const uint8_t* a;  // rows, whose pieces are whole quads
  int64_t a_stride;  // in bytes
  const int8_t* b;   // the first of the panels, PanelBytes(depth) each
  int32_t* c;
  int64_t c_stride;
  int64_t rows;
  int64_t depth;
  int64_t columns;
  const int32_t* row_terms;
  const int32_t* column_sums;  // PaddedColumns(columns)
  // Both null where there is no second product.
  const int32_t* row_sums;
  const int32_t* column_terms;
  // Where the pieces of a row begin, from the row on; null: one piece, at 0.
  const int64_t* piece_offsets = nullptr;
  int64_t pieces = 1;
  // So many rows at most lie a_stride apart, the first at `place` of them; the next begin
  // run_stride after these. 0: all of them do.
  int64_t run = 0;
  int64_t place = 0;
  int64_t run_stride = 0;
};
void Multiply(const ByteProduct& product);
// Sums become bytes block by block instead, while they are in the L1 cache; `c` is not looked at.
// Of `bytes`, sums, rows and columns are those of the product.
void MultiplyAndRequantize(const ByteProduct& product, const Requantization& how,
                           const SumBlock& bytes);

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_BYTE_GEMM_H_
