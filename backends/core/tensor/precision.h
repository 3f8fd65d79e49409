// SPDX-License-Identifier: Apache-2.0
//
// Precision: to what type float32 operands of products are rounded before they are multiplied. Sums
// are float32 whatever it is.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_PRECISION_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_PRECISION_H_

#include <cstdint>
#include <string_view>

namespace onnxifi::tensor {

// As ONNXIFI_SDK_PRECISION_*.
enum class Precision : uint8_t { kFloat32, kTf32, kBfloat16, kFloat16 };

constexpr std::string_view Name(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return "tf32";
    case Precision::kBfloat16:
      return "bfloat16";
    case Precision::kFloat16:
      return "float16";
    case Precision::kFloat32:
      break;
  }
  return "float32";
}

// Whether operands may be rounded to `used` where rounding to `permitted` is allowed: it has all
// values of that type.
constexpr bool Permits(Precision permitted, Precision used) {
  if (used == permitted || used == Precision::kFloat32) return true;
  return used == Precision::kTf32 && permitted != Precision::kFloat32;
}

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_PRECISION_H_
