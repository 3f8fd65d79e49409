// SPDX-License-Identifier: Apache-2.0
//
// Coefficients of the polynomials in float_functions.cc, and the digits of 2/pi.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_FLOAT_POLYNOMIALS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_FLOAT_POLYNOMIALS_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace onnxifi::codegen {

// The coefficients of `name`, of power 0 first, each a value of float32 or float64.
std::span<const double> FindPolynomial(std::string_view name, bool is_float64);

// The binary digits of 2/pi behind the point, 32 a word: as many as the remainders of quarter turns
// of the largest numbers need.
std::span<const uint32_t> TwoOverPi(bool has_float64);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_FLOAT_POLYNOMIALS_H_
