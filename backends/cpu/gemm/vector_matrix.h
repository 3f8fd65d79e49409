// SPDX-License-Identifier: Apache-2.0
//
// Products of few rows with a large matrix whose columns lie next to each other: as fast as the
// matrix can be read, without a packed copy of it. What matrix_vector.h is for the other order.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_VECTOR_MATRIX_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_VECTOR_MATRIX_H_

#include <cstdint>

#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::gemm {

// Y[m, n] = sum over k of X[m, k] * W[k, n]. All pointers may lie at any address.
struct VectorMatrix {
  const float* x;
  int64_t x_stride;  // from m to m + 1
  const float* w;
  int64_t w_stride;  // from k to k + 1
  int64_t vectors;   // how many m: 1 to kMaxVectors of matrix_vector.h
};

// The sums over k in [first_k, end_k) of columns [first, end): Y[m, n] is sums[m * stride + n].
// Several rows of W are read side by side, so that what a thread reads is one stretch of memory
// where the columns are all there are. Each sum is taken in the order of k.
void SumRows(const VectorMatrix& product, int64_t first_k, int64_t end_k, int64_t first,
             int64_t end, float* sums, int64_t stride);

// Sums of a product that were taken in `parts` parts, each of `part_stride` floats behind the last.
struct PartialSums {
  const float* sums;
  int64_t stride;  // from m to m + 1
  int64_t part_stride;
  int64_t parts;
};

// Columns [first, end) of the epilogue of what the parts add up to, in their order, for m in
// [0, vectors).
void FinishSums(const PartialSums& partial, const Epilogue& epilogue, int64_t vectors,
                int64_t first, int64_t end, float* y, int64_t y_stride);

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_VECTOR_MATRIX_H_
