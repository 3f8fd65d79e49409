// SPDX-License-Identifier: Apache-2.0
//
// Gemm: products of small float32 matrices in vector code for the processor at hand: the inner part
// of the convolutions and matrix products of this backend's own. One thread; the caller divides the
// work.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_GEMM_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_GEMM_H_

#include <cstdint>
#include <span>

#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::gemm {

// Columns that are computed together: B is packed in panels of so many, and work is best divided
// at multiples of it. Depends on the processor only.
int64_t PanelColumns();
// Rows that are computed together.
int64_t BlockRows();

// How many floats PackPanels writes for a whole B[depth, columns].
int64_t PackedSize(int64_t depth, int64_t columns);

// B[depth, columns] with any strides as panels [panel][depth][PanelColumns()], the last filled up
// with 0. Writes panels [first_panel, end_panel) of `packed`, which points to the first of all.
struct Matrix {
  const float* data;
  int64_t row_stride;
  int64_t column_stride;
};
void PackPanels(const Matrix& b, int64_t depth, int64_t columns, int64_t first_panel,
                int64_t end_panel, float* packed);
// The same for B as rows [first_row, first_row + depth) of a matrix of `whole_depth` rows.
void PackRows(const Matrix& b, int64_t depth, int64_t columns, int64_t first_row,
              int64_t whole_depth, int64_t first_panel, int64_t end_panel, float* packed);

struct Product {
  const float* a;  // [rows, depth]
  int64_t a_stride;
  const float* b;  // packed
  float* c;        // [rows, columns]
  int64_t c_stride;
  int64_t rows;
  int64_t depth;
  int64_t columns;
  // Where a row of A is in pieces: `depth` elements at a + each of these offsets, one piece after
  // the other; B has as many times `depth` rows. Empty: one piece.
  std::span<const int64_t> pieces;
  // Whether C is so large that it comes from memory before it is stored.
  bool is_c_far = false;
  // A panel of as many rows that is read by another product after this one, and comes to the L2
  // cache meanwhile. Null: none but those behind B.
  const float* next_b = nullptr;
};

// C = epilogue(A * B) for the columns of panels [first_panel, end_panel). Each element is the sum
// over the depth in ascending order, by fused multiply-adds where the processor has them, so it
// does not depend on how the work is divided.
void Multiply(const Product& product, const Epilogue& epilogue, int64_t first_panel,
              int64_t end_panel);

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_GEMM_H_
