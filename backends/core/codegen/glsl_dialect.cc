// SPDX-License-Identifier: Apache-2.0
//
// GlslDialect: the neutral names as GLSL has them, for Vulkan. Buffers are 64-bit addresses in push
// constants; no descriptor exists.

#include <algorithm>
#include <set>

#include "backends/core/codegen/dialect.h"

namespace onnxifi::codegen {
namespace {

constexpr std::string_view kPrelude = R"text(#version 460
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : require
#define i8 int8_t
#define u8 uint8_t
#define i16 int16_t
#define u16 uint16_t
#define i32 int
#define u32 uint
#define i64 int64_t
#define u64 uint64_t
#define u128 u64vec2
#define f32 float
#define f64 double
#define FN
#define AS(type, value) (type(value))
#define U64(high, low) packUint2x32(uvec2(low, high))
#define BITS_f32(value) floatBitsToUint(value)
#define FROM_BITS_f32(bits) uintBitsToFloat(bits)
#define BITS_f64(value) packUint2x32(unpackDouble2x32(value))
#define FROM_BITS_f64(bits) packDouble2x32(unpackUint2x32(bits))
#define LOAD(buffer_name, index) buffer_name(index)
#define STORE(buffer_name, index, value) buffer_name(index) = (value)
#define STORE_BITS(buffer_name, word, keep, bits) \
  atomicAnd(buffer_name(word), keep); atomicOr(buffer_name(word), bits)
#define MAKE_u128(low, high) u64vec2(low, high)
#define LOW_u128(value) (value).x
#define HIGH_u128(value) (value).y
#define NUMBER(place) Elements_i64(push.numbers).e[place]
#define BARRIER memoryBarrierShared(); barrier()
#define INDEPENDENT
#define UNROLL [[unroll]]
#define LANE int(gl_LocalInvocationIndex)
#define M_abs abs
#define M_floor floor
#define M_ceil ceil
#define M_rint roundEven
#define M_trunc trunc
#define M_sqrt sqrt
#define M_fma(a, b, sum) fma(a, b, sum)
)text";

// Functions of f32 with the precision that Vulkan promises, and of f64 what is exact. Vulkan has no
// exp of f64 and its like.
constexpr std::string_view kFunctions = R"text(#define M_exp exp
#define M_log log
#define M_sin sin
#define M_cos cos
#define M_tan tan
#define M_asin asin
#define M_acos acos
#define M_atan atan
#define M_sinh sinh
#define M_cosh cosh
#define M_asinh asinh
#define M_acosh acosh
#define M_atanh atanh
FN f32 M_copysign(f32 x, f32 sign_of) {
  return FROM_BITS_f32((BITS_f32(x) & 0x7fffffffu) | (BITS_f32(sign_of) & 0x80000000u));
}
FN f64 M_copysign(f64 x, f64 sign_of) {
  uvec2 bits = unpackDouble2x32(x);
  bits.y = (bits.y & 0x7fffffffu) | (unpackDouble2x32(sign_of).y & 0x80000000u);
  return packDouble2x32(bits);
}
FN f32 M_expm1(f32 x) {
  if (abs(x) < 0.5) {
    f32 term = x;
    f32 sum = x;
    for (int k = 2; k <= 10; ++k) {
      term *= x / f32(k);
      sum += term;
    }
    return sum;
  }
  return exp(x) - 1.0;
}
FN f32 M_log1p(f32 x) {
  f32 u = 1.0 + x;
  return u == 1.0 || isinf(u) ? x : log(u) * (x / (u - 1.0));
}
FN f32 M_tanh(f32 x) {
  f32 m = M_expm1(-2.0 * abs(x));
  return M_copysign(-m / (m + 2.0), x);
}
FN f32 M_erf(f32 x) {
  if (isnan(x)) return x;
  f32 z = abs(x);
  if (z < 0.5) {
    f32 term = x;
    f32 sum = x;
    for (int k = 1; k <= 9; ++k) {
      term *= -x * x / f32(k);
      sum += term / f32(2 * k + 1);
    }
    return sum * 1.1283791671;
  }
  f32 t = 1.0 / (1.0 + 0.3275911 * z);
  f32 p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return M_copysign(1.0 - p * exp(-z * z), x);
}
FN f32 M_pow(f32 x, f32 y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (isnan(x) || isnan(y)) return x + y;
  bool is_whole = isinf(y) || trunc(y) == y;
  bool is_odd = is_whole && !isinf(y) && abs(y) < 16777216.0 && (int(y) & 1) != 0;
  bool is_negative = (BITS_f32(x) & 0x80000000u) != 0u;
  f32 z = abs(x);
  f32 power;
  if (z == 0.0) {
    power = y > 0.0 ? 0.0 : FROM_BITS_f32(0x7f800000u);
  } else if (isinf(z)) {
    power = y > 0.0 ? z : 0.0;
  } else if (z == 1.0) {
    power = 1.0;
  } else {
    if (is_negative && !is_whole) return FROM_BITS_f32(0x7fc00000u);
    power = pow(z, y);
  }
  return is_negative && is_odd ? -power : power;
}
// The quotient's bits one by one, which is exact.
FN f32 M_fmod(f32 x, f32 y) {
  f32 rest = abs(x);
  f32 divisor = abs(y);
  if (isnan(x) || isnan(y) || isinf(x) || y == 0.0) return FROM_BITS_f32(0x7fc00000u);
  if (isinf(y) || rest < divisor) return x;
  u32 a = BITS_f32(rest);
  u32 b = BITS_f32(divisor);
  int a_at = int(a >> 23);
  int b_at = int(b >> 23);
  u32 a_bits = a_at == 0 ? a : (a & 0x7fffffu) | 0x800000u;
  u32 b_bits = b_at == 0 ? b : (b & 0x7fffffu) | 0x800000u;
  a_at = max(a_at, 1);
  b_at = max(b_at, 1);
  for (; a_at > b_at; --a_at) {
    if (a_bits >= b_bits) a_bits -= b_bits;
    a_bits <<= 1;
  }
  if (a_bits >= b_bits) a_bits -= b_bits;
  if (a_bits == 0u) return M_copysign(0.0, x);
  for (; (a_bits & 0x800000u) == 0u && b_at > 1; --b_at) a_bits <<= 1;
  u32 bits = (a_bits & 0x800000u) == 0u ? a_bits : (u32(b_at) << 23) | (a_bits & 0x7fffffu);
  return M_copysign(FROM_BITS_f32(bits), x);
}
)text";

int SizeOf(std::string_view type) {
  if (type == "u128") return 16;
  if (type.ends_with("64")) return 8;
  if (type.ends_with("32")) return 4;
  return type.ends_with("16") ? 2 : 1;
}

std::string Block(std::string_view type) { return "Elements_" + std::string(type); }

}  // namespace

std::string GlslDialect::Assemble(const KernelParts& parts) const {
  std::string text(kPrelude);
  text += kFunctions;
  text += parts.is_narrow ? "#define idx int\n" : "#define idx int64_t\n";
  const std::string group_size = std::to_string(parts.group_size);
  text += "layout(local_size_x = " + group_size + ") in;\n";
  std::set<std::string> types = {"i64"};
  for (const Parameter& parameter : parts.parameters) types.insert(parameter.type);
  for (const std::string& type : types) {
    text += "layout(buffer_reference, scalar, buffer_reference_align = " +
            std::to_string(SizeOf(type)) + ") buffer " + Block(type) + " { " + type + " e[]; };\n";
  }
  const size_t count = parts.parameters.size();
  const bool is_pushed = count <= kMaxPushedOperands;
  text += "layout(push_constant, scalar) uniform Push { u64 numbers; u64 count; u64 at[" +
          std::to_string(is_pushed ? std::max<size_t>(count, 1) : 1) + "]; } push;\n";
  for (size_t k = 0; k < count; ++k) {
    const Parameter& parameter = parts.parameters[k];
    const std::string number = std::to_string(k);
    const std::string address = is_pushed ? "push.at[" + number + "]"
                                          : "AS(u64, Elements_i64(push.at[0]).e[" + number + "])";
    // An array takes indices of 32 bits only.
    text += "#define " + parameter.name + "(index) " + Block(parameter.type) + "(" + address;
    text += parts.is_narrow
                ? ").e[index]\n"
                : " + AS(u64, index) * " + std::to_string(SizeOf(parameter.type)) + "ul).e[0]\n";
  }
  for (const std::string& array : parts.shared) text += "shared " + array + ";\n";
  text += parts.library;
  text += parts.helpers;
  // More groups than one axis takes stand in rows.
  const std::string wide = parts.is_narrow ? "u32" : "u64";
  text += "void main() {\n  const " + wide + " GROUP = AS(" + wide + ", gl_WorkGroupID.y) * " +
          "gl_NumWorkGroups.x + gl_WorkGroupID.x;\n  const " + wide + " ITEM = GROUP * " +
          group_size + "u + gl_LocalInvocationIndex;\n  const u64 count = push.count;\n";
  text += parts.body;
  text += "}\n";
  return text;
}

}  // namespace onnxifi::codegen
