// SPDX-License-Identifier: Apache-2.0
//
// Products of few rows with a large matrix whose own rows lie whole in memory: as fast as the
// matrix can be read, without a packed copy of it.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_MATRIX_VECTOR_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_MATRIX_VECTOR_H_

#include <cstdint>

#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::gemm {

inline constexpr int64_t kMaxVectors = 8;

// Y[m, n] = sum over k of X[m, k] * W[n, k]. All pointers may lie at any address.
struct MatrixVector {
  const float* x;
  int64_t x_stride;  // from m to m + 1
  const float* w;
  int64_t w_stride;  // from n to n + 1
  float* y;          // neighbours in n lie next to each other
  int64_t y_stride;  // from m to m + 1
  int64_t vectors;   // how many m: 1 to kMaxVectors
  int64_t depth;     // how many k
};

// The epilogue of Y for n in [first, end). Each sum is taken in as many parts as a vector has
// lanes, so it does not depend on the range. The addend does not overlap Y.
void MultiplyVectors(const MatrixVector& product, const Epilogue& epilogue, int64_t first,
                     int64_t end);

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_MATRIX_VECTOR_H_
