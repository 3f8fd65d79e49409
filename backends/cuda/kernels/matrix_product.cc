// SPDX-License-Identifier: Apache-2.0
//
// MatrixProduct: the product library of CUDA: that of every language, and the functions that
// codegen's matrix_unit_text.cc calls, as PTX's mma.sync has them since compute capability 8.0.

#include "backends/cuda/kernels/matrix_product.h"

#include <string>

#include "backends/core/codegen/plain_product.h"

namespace onnxifi::cuda {
namespace {

// PUTn sets element `place` of n bytes in an array of words; four bytes are a float32, rounded.
constexpr std::string_view kPuts = R"text(
#define PUT1(words, place, value) ((u8*)(words))[place] = (u8)(value)
#define PUT2(words, place, value) ((u16*)(words))[place] = (u16)(value)
#define PUT4(words, place, value) words[place] = tf32_of(value)
FN u32 tf32_of(f32 value) {
  u32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}
)text";

// As codegen's split_product_text.cc has them.
constexpr std::string_view kSplits = R"text(
#define PUT_SCALED(words, place, value) words[place] = __float_as_uint((value) * 16777216.0F)
#define UNSCALED(sum) ((sum) * (1.0F / 281474976710656.0F))
FN void SPLIT(u32 word, u32& large, u32& small) {
  const f32 value = __uint_as_float(word);
  large = tf32_of(value);
  small = tf32_of(value - __uint_as_float(large));
}
)text";

// The function of one instruction: `sum`, "f32" or "u32", and its constraint in asm.
std::string Function(std::string_view name, std::string_view sum, std::string_view constraint,
                     std::string_view instruction) {
  std::string text = "FN void MATRIX_" + std::string(name) + "(";
  for (int k = 0; k < 4; ++k) text += std::string(sum) + "& c" + std::to_string(k) + ", ";
  for (int k = 0; k < 4; ++k) text += "u32 a" + std::to_string(k) + ", ";
  text += "u32 b0, u32 b1) {\n  asm volatile(\"mma.sync.aligned." + std::string(instruction) +
          " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n    : ";
  for (int k = 0; k < 4; ++k) {
    text += std::string(k == 0 ? "" : ", ") + "\"+" + std::string(constraint) + "\"(c" +
            std::to_string(k) + ")";
  }
  text += "\n    : ";
  for (int k = 0; k < 4; ++k) text += "\"r\"(a" + std::to_string(k) + "), ";
  return text + "\"r\"(b0), \"r\"(b1));\n}\n";
}

std::string MakeLibrary() {
  std::string text(codegen::PlainProduct());
  text += kPuts;
  text += kSplits;
  text += Function("f16", "f32", "f", "m16n8k16.row.col.f32.f16.f16.f32");
  text += Function("bf16", "f32", "f", "m16n8k16.row.col.f32.bf16.bf16.f32");
  text += Function("tf32", "f32", "f", "m16n8k8.row.col.f32.tf32.tf32.f32");
  for (const char a : {'i', 'u'}) {
    for (const char b : {'i', 'u'}) {
      const auto type = [](char sign) { return sign == 'i' ? "s8" : "u8"; };
      const std::string name = std::string(1, a) + "8_" + b + "8";
      text += Function(name, "u32", "r",
                       std::string("m16n8k32.row.col.s32.") + type(a) + "." + type(b) + ".s32");
    }
  }
  return text;
}

}  // namespace

std::string_view MatrixProduct() {
  static const std::string* const text = new std::string(MakeLibrary());
  return *text;
}

}  // namespace onnxifi::cuda
