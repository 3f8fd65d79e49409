// SPDX-License-Identifier: Apache-2.0
//
// DoubleGemm: products of float64 matrices in vector code for the processor at hand. One thread;
// the caller divides the work.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_DOUBLE_GEMM_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_DOUBLE_GEMM_H_

#include <cstdint>
#include <cstring>

namespace onnxifi::gemm {

// Columns that are computed together, at the most kMaxDoubleColumns: depends on the processor only.
int64_t DoubleColumns();
inline constexpr int64_t kMaxDoubleColumns = 16;

// A number at any address: a caller's memory, or a constant inside a model.
inline double DoubleAt(const double* address) {
  double number;
  std::memcpy(&number, address, sizeof(number));
  return number;
}

// Elements at any address, `row` and `column` elements apart.
struct DoubleMatrix {
  const double* data;
  int64_t row;
  int64_t column;
};

// Columns [0, columns) of B[depth, columns] as packed[depth][DoubleColumns()], filled up with 0;
// columns <= DoubleColumns().
void PackDoubles(const DoubleMatrix& b, int64_t depth, int64_t columns, double* packed);

// C[rows, columns] = A[rows, depth] * B, or that added to C if `is_added`, for a packed B. C may be
// at any address. Each element is the sum over the depth in ascending order.
struct DoubleProduct {
  DoubleMatrix a;
  const double* b;
  double* c;
  int64_t c_row;
  int64_t c_column;
  int64_t rows;
  int64_t depth;
  int64_t columns;
  bool is_added;
};
void MultiplyDoubles(const DoubleProduct& product);

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_DOUBLE_GEMM_H_
