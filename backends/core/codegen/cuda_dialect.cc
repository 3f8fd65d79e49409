// SPDX-License-Identifier: Apache-2.0
//
// CudaDialect: the neutral names as CUDA C++ has them, for NVRTC. Products are not fused into sums
// by the compiler's option --fmad=false, and quotients and roots are IEEE's by its defaults.

#include <onnxifi/sdk.h>

#include <algorithm>

#include "backends/core/codegen/dialect.h"

namespace onnxifi::codegen {
namespace {

// Functions without a suffix are overloaded for float and double.
constexpr std::string_view kPrelude = R"text(typedef signed char i8; typedef unsigned char u8;
typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned int u32;
typedef long long i64; typedef unsigned long long u64;
typedef float f32; typedef double f64; typedef ulonglong2 u128;
typedef float4 f32x4; typedef int4 i32x4; typedef uint4 u32x4;
#define FN static __device__ inline
#define AS(type, value) ((type)(value))
#define U64(high, low) ((u64)(high) << 32 | (low))
#define BITS_f32(value) __float_as_uint(value)
#define FROM_BITS_f32(bits) __uint_as_float(bits)
#define BITS_f64(value) ((u64)__double_as_longlong(value))
#define FROM_BITS_f64(bits) __longlong_as_double((i64)(bits))
#define LOAD(buffer, index) buffer[index]
#define STORE(buffer, index, value) buffer[index] = (value)
#define LOAD4(buffer, index) load4((buffer) + (index))
#define LOAD_WORD(buffer, index) (*(const u32x4*)((buffer) + (index)))
#define STORE_WORD(buffer, index, a, b, c, d) *(u32x4*)((buffer) + (index)) = u32x4{a, b, c, d}
#define LOAD4_SHARED(array, index) (*(const f32x4*)((array) + (index)))
#define MAKE4(type, a, b, c, d) (type##x4{a, b, c, d})
FN f32x4 load4(const f32* at) { return f32x4{at[0], at[1], at[2], at[3]}; }
FN i32x4 load4(const i32* at) { return i32x4{at[0], at[1], at[2], at[3]}; }
#define STORE_BITS(buffer, word, keep, bits) \
  atomicAnd(buffer + (word), keep); atomicOr(buffer + (word), bits)
#define MAX_BITS(buffer, word, value) atomicMax(buffer + (word), value)
#define MAKE_u128(low, high) make_ulonglong2(low, high)
#define LOW_u128(value) (value).x
#define HIGH_u128(value) (value).y
#define NUMBER(place) numbers.at[place]
#define MUL_HIGH(a, b) ((u32)((u64)(a) * (b) >> 32))
#define BARRIER __syncthreads()
#define INDEPENDENT
#define UNROLL _Pragma("unroll")
#define LANE AS(int, threadIdx.x)
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
#define M_fma fma
)text";

constexpr std::string_view kHalves = R"text(
FN f32 decode_half(u32 code) {
  f32 value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((u16)code));
  return value;
}
FN u32 encode_half(f32 value) {
  u16 code;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(value));
  return code;
}
#define DECODE_f16 decode_half
#define ENCODE_f16 encode_half
)text";

}  // namespace

std::string CudaDialect::Assemble(const KernelParts& parts) const {
  // The first line says what the kernel is for.
  std::string text = parts.family.empty() ? "" : "// " + std::string(parts.family) + "\n";
  text += kPrelude;
  text += parts.is_narrow ? "typedef int idx;\n" : "typedef i64 idx;\n";
  text += "struct Numbers { i64 at[" + std::to_string(std::max(1, parts.number_count)) + "]; };\n";
  text += parts.library;
  if (parts.helpers.find("code_f16") != std::string::npos) text += kHalves;
  text += parts.helpers;
  const std::string group_size = std::to_string(parts.group_size);
  // For more blocks at a time ptxas takes fewer registers than a kernel needs, and spills, unless
  // it is told that one block is enough. The inner loops of these two do not bear that.
  const bool may_not_spill =
      parts.family == ONNXIFI_SDK_FAMILY_CONTRACT || parts.family == ONNXIFI_SDK_FAMILY_ATTENTION;
  const std::string bounds = group_size + (may_not_spill ? ", 1" : "");
  text += "extern \"C\" __global__ void __launch_bounds__(" + bounds + ") run(";
  for (const Parameter& parameter : parts.parameters) {
    text += std::string(parameter.is_written ? "" : "const ") + parameter.type + "*" +
            (parameter.is_alone ? " __restrict__ " : " ") + parameter.name + ", ";
  }
  text += "const Numbers numbers, const u64 count) {\n";
  for (const std::string& array : parts.shared) {
    const bool has_fours = array.starts_with("f32 ") || array.starts_with("u32 ");
    text += std::string("  __shared__ ") + (has_fours ? "__align__(16) " : "") + array + ";\n";
  }
  const std::string wide = parts.is_narrow ? "u32" : "u64";
  text += "  const " + wide + " GROUP = blockIdx.x;\n  const " + wide + " ITEM = GROUP * " +
          group_size + " + threadIdx.x;\n";
  text += parts.body;
  text += "}\n";
  return text;
}

}  // namespace onnxifi::codegen
