// SPDX-License-Identifier: Apache-2.0
//
// MatrixProduct: the product library of CUDA: that of every language, and the functions that
// codegen's matrix_unit_text.cc calls, as PTX's mma.sync has them since compute capability 8.0.

#include "backends/cuda/kernels/matrix_product.h"

#include <string>

#include "backends/core/codegen/plain_product.h"

namespace onnxifi::cuda {
namespace {

// As codegen's matrix_unit_text.cc has them.
constexpr std::string_view kFragments = R"text(
#define COPY_WORD(word, buffer, index) copy_word(&(word), (buffer) + (index))
#define COPIES_END end_copies()
#define COPIES_WAIT(count) wait_for_copies<count>()
#define LOAD_FRAGMENTS(words, index, a, b, c, d) load_fragments(&words[index], a, b, c, d)
#define TF32_WORD(word) tf32_of(__uint_as_float(word))
FN void copy_word(u32x4* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
    :: "r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
FN void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kCount>
FN void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" :: "n"(kCount) : "memory");
}
FN void load_fragments(const u32x4* from, u32& a, u32& b, u32& c, u32& d) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
    : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"((u32)__cvta_generic_to_shared(from)) : "memory");
}
FN u32 tf32_of(f32 value) {
  u32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}
)text";

// As codegen's split_product_text.cc has them.
constexpr std::string_view kSplits = R"text(
#define UNSCALED(sum) ((sum) * (1.0F / 281474976710656.0F))
FN void SPLIT(u32& word, u32& small) {
  const f32 value = __uint_as_float(word) * 16777216.0F;
  word = tf32_of(value);
  small = tf32_of(value - __uint_as_float(word));
}
)text";

// The function of one instruction: `sum`, "f32" or "u32", and its constraint in asm. Its sums are
// added to, or begin with zeros.
std::string Function(std::string_view name, std::string_view sum, std::string_view constraint,
                     std::string_view instruction, bool is_from_zero = false) {
  std::string text = "FN void MATRIX_" + std::string(name) + "(";
  for (int k = 0; k < 4; ++k) text += std::string(sum) + "& c" + std::to_string(k) + ", ";
  for (int k = 0; k < 4; ++k) text += "u32 a" + std::to_string(k) + ", ";
  text += "u32 b0, u32 b1) {\n  asm volatile(\"mma.sync.aligned." + std::string(instruction) +
          " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " +
          (is_from_zero ? "{%10, %10, %10, %10}" : "{%0, %1, %2, %3}") + ";\"\n    : ";
  for (int k = 0; k < 4; ++k) {
    text += std::string(k == 0 ? "" : ", ") + (is_from_zero ? "\"=" : "\"+") +
            std::string(constraint) + "\"(c" + std::to_string(k) + ")";
  }
  text += "\n    : ";
  for (int k = 0; k < 4; ++k) text += "\"r\"(a" + std::to_string(k) + "), ";
  text += "\"r\"(b0), \"r\"(b1)";
  if (is_from_zero) text += ", \"" + std::string(constraint) + "\"((" + std::string(sum) + ")0)";
  return text + ");\n}\n";
}

std::string MakeLibrary() {
  std::string text(codegen::PlainProduct());
  text += kFragments;
  text += kSplits;
  text += Function("f16", "f32", "f", "m16n8k16.row.col.f32.f16.f16.f32");
  text += Function("bf16", "f32", "f", "m16n8k16.row.col.f32.bf16.bf16.f32");
  constexpr std::string_view kTf32 = "m16n8k8.row.col.f32.tf32.tf32.f32";
  text += Function("tf32", "f32", "f", kTf32);
  text += Function("tf32_FROM_ZERO", "f32", "f", kTf32, /*is_from_zero=*/true);
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
