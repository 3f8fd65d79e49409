// SPDX-License-Identifier: Apache-2.0
//
// Functions of <cmath> in the neutral language of dialect.h, for languages whose own ones are
// inexact or missing. They use the arithmetic of the type itself, correctly rounded and not
// contracted, its M_abs, M_rint, M_floor and M_sqrt, and integers of 32 and 64 bits.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_FLOAT_FUNCTIONS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_FLOAT_FUNCTIONS_H_

#include <string>
#include <string_view>

namespace onnxifi::codegen {

// The definitions of the functions below that `text` calls, each once and behind what it calls
// itself; overloaded for f32 and, with `has_float64`, f64. Special values and signs of zeros are
// those of C. Errors are at most 4 units in the last place, of M_pow and M_erf 16; M_fmod and
// M_copysign are exact.
//   M_exp M_expm1 M_log M_log1p M_pow M_sin M_cos M_tan M_asin M_acos M_atan M_sinh M_cosh M_tanh
//   M_asinh M_acosh M_atanh M_erf M_fmod M_copysign
// Where a device flushes subnormal numbers, these arguments count as zeros.
std::string DefineFloatFunctions(std::string_view text, bool has_float64);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_FLOAT_FUNCTIONS_H_
