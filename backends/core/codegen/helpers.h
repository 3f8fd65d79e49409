// SPDX-License-Identifier: Apache-2.0
//
// Helpers: functions of generated kernels, in the neutral language of dialect.h: operations that no
// operator of the language means, with the reference's semantics (reference/operation.cc,
// tensor/convert.cc). A kernel contains those that it calls.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_HELPERS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_HELPERS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onnxifi::codegen {

struct Helper {
  std::string text;
  std::vector<std::pair<std::string_view, std::string_view>> needs;  // names and types
};

// The definition of `name`, or of name_type where it is one per type. Names:
//   div, fmod, mod, pow, shl, shr (integers); mod, sign, to_i64, to_u64 (f32, f64)
//   decode, encode (any float of at most 8 bits but float8e8m0); decode_f16, encode_f16,
//   decode_bf16, encode_bf16, decode_e8m0, encode_e8m0; odd_f64 (f64 -> f32 rounded to odd),
//   odd_u64 (u64 -> f32 rounded to odd); random
Helper FindHelper(std::string_view name, std::string_view type);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_HELPERS_H_
