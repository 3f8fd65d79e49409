// SPDX-License-Identifier: Apache-2.0
//
// Epilogue: what is done to a sum before it is stored.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_H_

#include <cstdint>

namespace onnxifi::gemm {

enum class Activation : uint8_t {
  kNone,
  kClip,       // min(max(x, low), high)
  kLeaky,      // x < 0 ? low * x : x
  kHardSwish,  // x * max(0, min(1, low * x + high))
  // Within the bounds of vector_math-inl.h, as are the next.
  kLogistic,  // 1 / (1 + exp(-x))
  kSwish,     // x * logistic(low * x)
  kGelu,      // x / 2 * (1 + erf(x / sqrt(2)))
  kTanh,
};

// activation(sum + bias[column] + addend[row, column])
struct Epilogue {
  const float* bias = nullptr;
  const float* addend = nullptr;
  int64_t addend_stride = 0;  // from row to row
  Activation activation = Activation::kNone;
  float low = 0;
  float high = 0;

  // Whether the activation takes more than it costs to store the sums and load them again: it is
  // done then when a block of sums is stored, where it does not take registers from products.
  bool IsFunction() const { return activation >= Activation::kHardSwish; }
  bool IsNothing() const {
    return bias == nullptr && addend == nullptr && activation == Activation::kNone;
  }
  // Null for none.
  const float* AddendOf(int64_t row) const {
    return addend == nullptr ? nullptr : addend + row * addend_stride;
  }
};

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_H_
