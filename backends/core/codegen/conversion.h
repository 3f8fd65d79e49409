// SPDX-License-Identifier: Apache-2.0
//
// Conversion: values of every element type in the types that kernels compute in: constants, and
// casts from any type to any other. Narrow floats and packed integers are bits to a kernel, which
// are decoded and encoded where they are cast.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_CONVERSION_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_CONVERSION_H_

#include <cstdint>
#include <string>

#include "backends/core/codegen/writer.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::codegen {

// Types that kernels do arithmetic in: float32 and float64; integers of 8 bits and more.
bool IsNativeFloat(tensor::ElementType type);
bool IsNativeInteger(tensor::ElementType type);

// The widest type of an element's class.
tensor::ElementType WideType(tensor::ElementType type);

// `value`, an element of type `from`, as `to`, as kCast does it.
std::string WriteCast(Writer& writer, tensor::ElementType from, tensor::ElementType to,
                      const std::string& value, bool saturate = true,
                      tensor::Rounding rounding = tensor::Rounding::kNearestEven);
// A constant of a type.
std::string Literal(Writer& writer, tensor::ElementType type, tensor::Scalar value);
// A 64-bit literal from its halves, which no language needs a suffix for: "U64(0x1u, 0x2u)".
std::string Bits64(uint64_t value);
// "0x1f".
std::string Hex(uint64_t value);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_CONVERSION_H_
