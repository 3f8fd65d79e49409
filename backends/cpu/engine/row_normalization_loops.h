// SPDX-License-Identifier: Apache-2.0
//
// Loops that normalise rows of float32 which lie together in memory: softmax, and subtraction of
// the mean with division by the deviation. A short row stays in vector registers, a long one in the
// caches.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_ROW_NORMALIZATION_LOOPS_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_ROW_NORMALIZATION_LOOPS_H_

#include <cstdint>

#include "backends/core/tensor/element_type.h"
#include "backends/cpu/engine/loop.h"

namespace onnxifi::engine {

// `count` elements each, at least 1; rows of x and of the result begin `x_step` and `result_step`
// elements apart. A row of the result is that of x, or overlaps none.
struct RowOperands {
  const float* x;
  int64_t x_step;
  float* result;
  int64_t result_step;
  int64_t rows;
  int64_t count;
};

// Rows of so many elements together are taken at once.
inline constexpr int64_t kRowGroupElements = 2048;

// exp(x - max) / sum(exp(x - max)), or x - max - log(sum(exp(x - max))). `exponentials` has room
// for a row and for kRowGroupElements; only the logarithm needs it. Differences, exponentials,
// their sum and its logarithm are rounded to `rounding`, which is float16, bfloat16 or float32;
// null where the instruction set has no loop for it.
using SoftmaxLoop = void (*)(const RowOperands& rows, float* exponentials);
SoftmaxLoop FindSoftmaxLoop(bool is_logarithm, tensor::ElementType rounding, LoopSet loops);

// Rounds the rows of a result to float16 or bfloat16, as float32; null where the instruction set
// has no loop for it.
using RoundingLoop = void (*)(const RowOperands& rows);
RoundingLoop FindRoundingLoop(tensor::ElementType type);

// A factor or summand of every element of the result.
struct RowParameter {
  const float* values = nullptr;  // null: there is none
  int64_t step = 0;               // from a row to the next
  bool is_number = false;         // one for all elements of a row
};

// (x - mean) * (1 / sqrt(variance + epsilon)) * scale + bias, where mean and variance are sums of
// the row divided by `divisor`; without the mean, x * (1 / sqrt(mean square + epsilon)) and so on.
struct MomentOperands {
  RowOperands rows;
  bool subtracts_mean;
  float divisor;
  float epsilon;
  RowParameter scale;
  RowParameter bias;
};
void NormalizeRows(const MomentOperands& operands);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_ROW_NORMALIZATION_LOOPS_H_
