// SPDX-License-Identifier: Apache-2.0
//
// Decodes the floats that no C++ type holds, from the definition of their formats: sign, exponent,
// fraction, bias, and which bit patterns are not finite.

#ifndef ONNXIFI_CLIENT_COMPARISON_FLOAT_FORMAT_H_
#define ONNXIFI_CLIENT_COMPARISON_FLOAT_FORMAT_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>

#include "client/onnx_file/element_type.h"

namespace onnxifi::comparison {

// The value of the low bits of `bits` in the given float type of at most 16 bits. Exact.
double DecodeSmallFloat(onnx_file::ElementType type, uint32_t bits);

// The bits of element `index`, zero-extended: of the packed types in part of one byte or of two,
// else its own bytes. `bytes` holds the element; its type has at most 64 bits.
uint64_t LoadBits(onnx_file::ElementType type, std::span<const std::byte> bytes, int64_t index);

// Element `index` of a float, integer or bool tensor as float64; exact but for integers beyond
// 2^53.
double LoadNumber(onnx_file::ElementType type, std::span<const std::byte> bytes, int64_t index);

// Element `index` of a complex tensor.
std::complex<double> LoadComplex(onnx_file::ElementType type, std::span<const std::byte> bytes,
                                 int64_t index);

}  // namespace onnxifi::comparison

#endif  // ONNXIFI_CLIENT_COMPARISON_FLOAT_FORMAT_H_
