// SPDX-License-Identifier: Apache-2.0
//
// Quantization in definitions: inputs that are a quantized tensor, its scale and its zero point,
// and elements packed into bytes.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_QUANTIZATION_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_QUANTIZATION_H_

#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {

using base::Result;
using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

// The quantized integers of 8 bits, as declarations name them.
inline constexpr std::string_view kBytes = "uint8 | int8";

// Input `input`, one number, as a scalar. UNSUPPORTED_SHAPE where it is known to be more.
Result<Value> ScalarInput(Definition& d, int input);

// Inputs x, x + 1 (scale) and x + 2 (zero point, which may be omitted) as floats; one scale for the
// tensor. `scale` and `zero_point` as other positions.
Result<Value> Dequantize(Definition& d, int x);
Result<Value> Dequantize(Definition& d, int x, int scale, int zero_point);

// `value` in the quantized type `type`, by the scale and zero point that are inputs `scale` and
// `zero_point` (which may be omitted).
Result<Value> Quantize(Definition& d, Value value, int scale, int zero_point, ElementType type);

// uint8 [..., n] as uint8 [..., n * 8 / bits], the low bits of a byte first. `bits`: 2, 4 or 8.
Value Unpack(Definition& d, Value bytes, int64_t bits);

}  // namespace onnxifi::microsoft

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_QUANTIZATION_H_
