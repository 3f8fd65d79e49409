// SPDX-License-Identifier: Apache-2.0
//
// OpenClDialect: the neutral names as OpenCL C has them.

#include "backends/core/codegen/dialect.h"

namespace onnxifi::codegen {
namespace {

// Expressions mean what they say: no product is fused into a sum behind their back.
constexpr std::string_view kPrelude = R"text(#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef uchar u8; typedef short i16; typedef ushort u16;
typedef int i32; typedef uint u32; typedef long i64; typedef ulong u64;
typedef float f32; typedef ulong2 u128; typedef float4 f32x4; typedef int4 i32x4; typedef uint4 u32x4;
#define FN static inline
#define AS(type, value) ((type)(value))
#define U64(high, low) ((u64)(high) << 32 | (low))
#define BITS_f32(value) as_uint(value)
#define FROM_BITS_f32(bits) as_float(bits)
#define LOAD(buffer, index) buffer[index]
#define STORE(buffer, index, value) buffer[index] = (value)
#define LOAD4(buffer, index) vload4(0, (buffer) + (index))
#define LOAD_WORD(buffer, index) (*(__global const u32x4*)((buffer) + (index)))
#define STORE_WORD(buffer, index, a, b, c, d) *(__global u32x4*)((buffer) + (index)) = (u32x4)(a, b, c, d)
#define LOAD4_SHARED(array, index) vload4(0, (array) + (index))
#define MAKE4(type, a, b, c, d) ((type##x4)(a, b, c, d))
#define STORE_BITS(buffer, word, keep, bits) \
  atomic_and(buffer + (word), keep); atomic_or(buffer + (word), bits)
#define MAX_BITS(buffer, word, value) atomic_max(buffer + (word), value)
#define MAKE_u128(low, high) (ulong2)(low, high)
#define LOW_u128(value) (value).x
#define HIGH_u128(value) (value).y
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT
#endif
#define GROUP get_group_id(0)
#define UNROLL _Pragma("unroll")
#define NUMBER(place) numbers[place]
#define MUL_HIGH(a, b) mul_hi(a, b)
#define LANE AS(int, get_local_id(0))
#define ITEM get_global_id(0)
#define M_abs fabs
#define M_floor floor
#define M_ceil ceil
#define M_rint rint
#define M_trunc trunc
#define M_sqrt sqrt
#define M_exp exp
#define M_expm1 expm1
#define M_log log
#define M_log1p log1p
#define M_sin sin
#define M_cos cos
#define M_tan tan
#define M_asin asin
#define M_acos acos
#define M_atan atan
#define M_sinh sinh
#define M_cosh cosh
#define M_tanh tanh
#define M_asinh asinh
#define M_acosh acosh
#define M_atanh atanh
#define M_erf erf
#define M_fmod fmod
#define M_copysign copysign
#define M_pow pow
#ifdef FP_FAST_FMAF
#define M_fma(a, b, sum) fma(a, b, sum)
#else
#define M_fma(a, b, sum) ((a) * (b) + (sum))
#endif
)text";

constexpr std::string_view kFloat64 = R"(#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#define BITS_f64(value) as_ulong(value)
#define FROM_BITS_f64(bits) as_double(bits)
)";

// By way of bytes, which may be read as any type.
constexpr std::string_view kHalves = R"text(
FN f32 decode_half(u32 code) {
  const uchar2 bytes = as_uchar2((ushort)code);
  return vload_half(0, (const half*)&bytes);
}
FN u32 encode_half(f32 value) {
  uchar2 bytes;
  vstore_half_rte(value, 0, (half*)&bytes);
  return as_ushort(bytes);
}
#define DECODE_f16 decode_half
#define ENCODE_f16 encode_half
)text";

}  // namespace

std::string OpenClDialect::Assemble(const KernelParts& parts) const {
  std::string text(kPrelude);
  if (parts.uses_float64) text += kFloat64;
  text += parts.is_narrow ? "typedef int idx;\n" : "typedef long idx;\n";
  text += parts.library;
  if (parts.helpers.find("code_f16") != std::string::npos) text += kHalves;
  text += parts.helpers;
  text += "__kernel __attribute__((reqd_work_group_size(" + std::to_string(parts.group_size) +
          ", 1, 1))) void run(";
  for (const Parameter& parameter : parts.parameters) {
    text += "__global " + std::string(parameter.is_written ? "" : "const ") + parameter.type + "*" +
            (parameter.is_alone ? " restrict " : " ") + parameter.name + ", ulong " +
            parameter.name + "_at, ";
  }
  text += "__global const long* restrict numbers, ulong count) {\n";
  for (const std::string& array : parts.shared) text += "  __local " + array + ";\n";
  for (const Parameter& parameter : parts.parameters) {
    text += "  " + parameter.name + " += " + parameter.name + "_at;\n";
  }
  text += parts.body;
  text += "}\n";
  return text;
}

}  // namespace onnxifi::codegen
