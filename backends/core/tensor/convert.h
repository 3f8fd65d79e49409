// SPDX-License-Identifier: Apache-2.0
//
// Conversions between element types, one element at a time: the bit formats of every float and
// packed type, and ONNX's Cast rules. The scalar functions are the definition that every kernel is
// checked against.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_CONVERT_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_CONVERT_H_

#include <cstddef>
#include <cstdint>

#include "backends/core/tensor/element_type.h"

namespace onnxifi::tensor {

// Decodes the low BitWidth(type) bits of `bits` of a float type narrower than 32 bits. Exact.
float DecodeFloat(ElementType type, uint32_t bits);

enum class Rounding : uint8_t {
  kNearestEven,
  kUp,
  kDown,
  kNearest /* ties away from zero; float8e8m0's default "nearest" rule of ONNX's Cast */
};

// Encodes to a float type narrower than 32 bits, rounding to nearest even (float8e8m0: by
// `rounding`). `saturate` follows the table of ONNX's Cast (opset 19 and later) for the 8-bit
// floats: out-of-range values and infinities become the largest finite value when true, else NaN or
// infinity as the format has it. float16 and bfloat16 overflow to infinity whatever `saturate`;
// the floats of 6 and 4 bits always saturate.
uint32_t EncodeFloat(ElementType type, float value, bool saturate = true,
                     Rounding rounding = Rounding::kNearestEven);
// As above from float64 with a single rounding (through round-to-odd float32).
uint32_t EncodeDouble(ElementType type, double value, bool saturate = true,
                      Rounding rounding = Rounding::kNearestEven);

// A scalar of any numeric or bool type, widened: floats as float64, signed as int64, unsigned and
// bool as uint64.
union Scalar {
  double f;
  int64_t i;
  uint64_t u;
};

// Reads element `index` of densely packed `data` of a non-complex, non-string type.
Scalar LoadScalar(ElementType type, const std::byte* data, int64_t index);
// Writes it; a value of the type's own class that already fits (as made by CastScalar). Packed
// types: only the bits of that element change.
void StoreScalar(ElementType type, std::byte* data, int64_t index, Scalar value);

// ONNX's Cast between any two non-complex, non-string types. Result is exactly representable in
// `to`: float -> integer truncates and wraps modulo 2^n as ONNX's reference does for in-range
// values; out-of-range and NaN (undefined in ONNX) give what x86 hardware gives through int64;
// integer -> narrower integer wraps; to bool is value != 0; 2- and 4-bit integers wrap to their low
// bits.
Scalar CastScalar(ElementType from, ElementType to, Scalar value, bool saturate = true,
                  Rounding rounding = Rounding::kNearestEven);

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_CONVERT_H_
