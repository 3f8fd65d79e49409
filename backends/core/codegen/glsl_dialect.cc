// SPDX-License-Identifier: Apache-2.0
//
// GlslDialect: the neutral names as GLSL has them, for Vulkan. Buffers are 64-bit addresses in push
// constants; no descriptor exists.

#include <algorithm>
#include <set>

#include "backends/core/codegen/dialect.h"
#include "backends/core/codegen/float_functions.h"

namespace onnxifi::codegen {
namespace {

constexpr std::string_view kVersion = "#version 460\n";
// Only where a product library has them: not every compiler knows them.
constexpr std::string_view kCooperativeMatrices =
    R"text(#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
)text";
constexpr std::string_view kBfloat16 = "#extension GL_EXT_bfloat16 : require\n";
constexpr std::string_view kPrelude =
    R"text(#extension GL_EXT_shader_explicit_arithmetic_types : require
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
#define f16 float16_t
#define f32 float
#define f64 double
#define f32x4 vec4
#define i32x4 ivec4
#define u32x4 uvec4
#define FN
#define AS(type, value) AS_TYPE(type, value)
#define AS_TYPE(type, value) AS_##type(value)
#define AS_int8_t(value) int8_t(value)
#define AS_uint8_t(value) uint8_t(value)
#define AS_int16_t(value) int16_t(value)
#define AS_uint16_t(value) uint16_t(value)
#define AS_int(value) int(value)
#define AS_uint(value) uint(value)
#define AS_int64_t(value) widen(value)
#define AS_uint64_t(value) uint64_t(value)
#define AS_float(value) float(value)
#define AS_double(value) double(value)
#define U64(high, low) packUint2x32(uvec2(low, high))
#define BITS_f32(value) floatBitsToUint(value)
#define FROM_BITS_f32(bits) uintBitsToFloat(bits)
#define BITS_f64(value) packUint2x32(unpackDouble2x32(value))
#define FROM_BITS_f64(bits) packDouble2x32(unpackUint2x32(bits))
#define LOAD(buffer_name, index) buffer_name(index)
#define STORE(buffer_name, index, value) buffer_name(index) = (value)
#define LOAD4(buffer_name, index) buffer_name##_4(index)
#define LOAD_WORD(buffer_name, index) buffer_name##_word(index)
#define STORE_WORD(buffer_name, index, a, b, c, d) buffer_name##_word(index) = uvec4(a, b, c, d)
#define LOAD4_SHARED(array, index) \
  vec4(array[index], array[(index) + 1], array[(index) + 2], array[(index) + 3])
#define MAKE4(type, a, b, c, d) type##x4(a, b, c, d)
#define STORE_BITS(buffer_name, word, keep, bits) \
  atomicAnd(buffer_name(word), keep); atomicOr(buffer_name(word), bits)
#define MAX_BITS(buffer_name, word, value) atomicMax(buffer_name(word), value)
#define MAKE_u128(low, high) u64vec2(low, high)
#define LOW_u128(value) (value).x
#define HIGH_u128(value) (value).y
#define NUMBER(place) Elements_i64(push.numbers).e[place]
#define MUL_HIGH(a, b) u32(u64(a) * u64(b) >> 32)
#define BARRIER memoryBarrierShared(); barrier()
#define INDEPENDENT
#define UNROLL [[unroll]]
#define LANE int(gl_LocalInvocationIndex)
#define M_abs abs
#define M_floor floor
#define M_ceil ceil
#define M_rint round_even
#define M_trunc trunc
#define M_sqrt sqrt
#define M_fma(a, b, sum) fma(a, b, sum)
float round_even(float x) { return roundEven(x); }
// Mesa 22's roundEven gives 1 for 1.5 of double. Above 2^52 all doubles are whole numbers.
double round_even(double x) {
  double size = abs(x);
  if (!(size < 4503599627370496.0lf)) return x;
  uvec2 bits = unpackDouble2x32((size + 4503599627370496.0lf) - 4503599627370496.0lf);
  return packDouble2x32(uvec2(bits.x, bits.y | (unpackDouble2x32(x).y & 0x80000000u)));
}
// Not by int64_t(x): Mesa 22's optimizer is wrong about int64_t(x) < 0 and its like.
i64 widen(int x) { return packInt2x32(ivec2(x, x >> 31)); }
i64 widen(uint x) { return packInt2x32(ivec2(x, 0)); }
i64 widen(bool x) { return widen(int(x)); }
i64 widen(i8 x) { return widen(int(x)); }
i64 widen(u8 x) { return widen(uint(x)); }
i64 widen(i16 x) { return widen(int(x)); }
i64 widen(u16 x) { return widen(uint(x)); }
i64 widen(i64 x) { return x; }
i64 widen(u64 x) { return int64_t(x); }
i64 widen(float x) { return int64_t(x); }
i64 widen(double x) { return int64_t(x); }
)text";

// A device may flush subnormal numbers of 16 bits, and round in packHalf2x16 as it likes: bits are
// put together for those.
constexpr std::string_view kHalves = R"text(
f32 decode_half(u32 code) {
  u32 magnitude = code & 0x7fffu;
  f32 subnormal = AS(f32, magnitude) * FROM_BITS_f32(0x33800000u);
  return magnitude < 0x400u ? FROM_BITS_f32((code & 0x8000u) << 16 | BITS_f32(subnormal))
                            : unpackHalf2x16(code).x;
}
#define DECODE_f16 decode_half
)text";

int SizeOf(std::string_view type) {
  if (type == "u128") return 16;
  if (type.ends_with("64")) return 8;
  if (type.ends_with("32")) return 4;
  return type.ends_with("16") ? 2 : 1;
}

std::string Block(std::string_view type) { return "Elements_" + std::string(type); }

std::string AddressOf(size_t parameter, size_t count) {
  const std::string number = std::to_string(parameter);
  return count <= GlslDialect::kMaxPushedOperands
             ? "push.at[" + number + "]"
             : "AS(u64, Elements_i64(push.at[0]).e[" + number + "])";
}

// Four elements from any one on.
void DefineLoadsOfFour(const KernelParts& parts, std::string& text) {
  for (const std::string_view type : {"f32", "i32"}) {
    const std::string four = Block(type) + "x4";
    text += "layout(buffer_reference, scalar, buffer_reference_align = 4) buffer " + four + " { " +
            std::string(type) + "x4 e; };\n";
    for (size_t k = 0; k < parts.parameters.size(); ++k) {
      if (parts.parameters[k].type != type) continue;
      text += "#define " + parts.parameters[k].name + "_4(index) " + four + "(" +
              AddressOf(k, parts.parameters.size()) + " + AS(u64, index) * 4ul).e\n";
    }
  }
}

// Words of 16 bytes, at multiples of that.
void DefineWords(const KernelParts& parts, std::string& text) {
  text +=
      "layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Word { uvec4 e; };\n";
  for (size_t k = 0; k < parts.parameters.size(); ++k) {
    const Parameter& parameter = parts.parameters[k];
    text += "#define " + parameter.name + "_word(index) Word(" +
            AddressOf(k, parts.parameters.size()) + " + AS(u64, index) * " +
            std::to_string(SizeOf(parameter.type)) + "ul).e\n";
  }
}

}  // namespace

std::string GlslDialect::Assemble(const KernelParts& parts) const {
  std::string text(kVersion);
  if (parts.library.find("coopmat") != std::string::npos) text += kCooperativeMatrices;
  if (parts.library.find("bfloat16_t") != std::string::npos) text += kBfloat16;
  text += kPrelude;
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
    const std::string address = AddressOf(k, count);
    // An array takes indices of 32 bits only.
    text += "#define " + parameter.name + "(index) " + Block(parameter.type) + "(" + address;
    text += parts.is_narrow
                ? ").e[AS(idx, index)]\n"
                : " + AS(u64, index) * " + std::to_string(SizeOf(parameter.type)) + "ul).e[0]\n";
  }
  if (parts.body.find("LOAD4(") != std::string::npos) DefineLoadsOfFour(parts, text);
  if (parts.body.find("_WORD(") != std::string::npos) DefineWords(parts, text);
  const std::string definitions = parts.library + parts.helpers;
  const std::string calls = definitions + parts.body;
  text += DefineFloatFunctions(calls, parts.uses_float64);
  if (definitions.find("decode_f16") != std::string::npos) text += kHalves;
  text += definitions;
  // Behind the product library, which may have their types.
  for (const std::string& array : parts.shared) text += "shared " + array + ";\n";
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
