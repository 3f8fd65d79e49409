// SPDX-License-Identifier: Apache-2.0
//
// Bfloat16Gemm: products of small matrices of bfloat16 with float32 sums, by the instruction that
// multiplies pairs (AVX512-BF16). One thread; the caller divides the work. Of operands that were
// widened to float32 before, panels and rows become narrow again without a rounding.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_BFLOAT16_GEMM_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_BFLOAT16_GEMM_H_

#include <cstdint>

namespace onnxifi::gemm {

// Whether the processor has the instruction, and kernels may use it; else none of the functions
// below is called.
bool HasBfloat16Gemm();
// Before the first kernel is made; tests also between kernels.
void AllowBfloat16Gemm(bool is_allowed);

// Makes float32 panels that PackPanels wrote into panels of pairs of rows, where they lie: the
// first half of each. Numbers that are none of bfloat16 lose their lower digits.
void PairPanelRows(float* panels, int64_t depth, int64_t columns);

// Makes each row of floats a row of bfloat16, rounded to nearest, where it lies, and fills it up to
// a pair with 0. `stride` floats from one row to the next, at least `count` rounded up to a pair of
// halves.
void RoundRows(float* rows, int64_t stride, int64_t count, int64_t row_count);

struct Bfloat16Product {
  const float* a;    // [rows, depth], rows of bfloat16 as RoundRows makes them
  int64_t a_stride;  // in floats
  const float* b;    // panels of pairs
  float* c;          // [rows, columns]
  int64_t c_stride;
  int64_t rows;
  int64_t depth;
  int64_t columns;
  bool adds;  // to what C has, else C is written
};

// C = A * B or C += A * B. Sums are in the order of the instruction, which takes subnormal factors
// as zeros.
void MultiplyBfloat16(const Bfloat16Product& product);

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_BFLOAT16_GEMM_H_
