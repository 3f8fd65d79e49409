// SPDX-License-Identifier: Apache-2.0
//
// Truncation: floats to integers of 64 bits, as casts do it wherever C++ leaves it undefined.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_TRUNCATION_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_TRUNCATION_H_

#include <cstdint>

namespace onnxifi::tensor {

// What cvttsd2si gives: the "indefinite" value for NaN and out of range.
constexpr int64_t TruncateToInt64(double value) {
  return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : INT64_MIN;
}

constexpr uint64_t TruncateToUint64(double value) {
  if (value >= 0x1p63 && value < 0x1p64) return static_cast<uint64_t>(value);
  return static_cast<uint64_t>(TruncateToInt64(value));
}

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_TRUNCATION_H_
