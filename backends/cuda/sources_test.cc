// SPDX-License-Identifier: Apache-2.0
//
// What NVRTC makes of kernels for three architectures. No device is needed.

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/lane_source.h"
#include "backends/core/codegen/testing/source_collector.h"
#include "backends/cuda/compiler.h"
#include "backends/cuda/kernels/matrix_product.h"

namespace onnxifi::cuda {
namespace {

TEST(SourcesTest, KernelsCompileForEachArchitecture) {
  const auto api = LoadCompilerApi();
  if (!api.ok()) GTEST_SKIP() << api.status().Text();
  constexpr size_t kCount = 30;
  const codegen::CudaDialect dialect;
  const std::vector<std::string> sources = codegen::CollectSources(
      dialect, MatrixProduct(),
      {.most_group_items = 1024, .shared_bytes = 48 << 10, .multiprocessors = 132}, kCount,
      {.kind = codegen::MatrixUnits::Kind::kFragments, .split_depth = 8});
  size_t turn = 0;
  for (const std::string& source : sources) {
    const int architecture = std::vector{80, 90, 100}[turn++ % 3];
    const auto compiler = Compiler::Create(*api, architecture);
    ASSERT_TRUE(compiler.ok()) << compiler.status().Text();
    const auto binary = compiler->Compile(source);
    ASSERT_TRUE(binary.ok()) << binary.status().Text() << '\n' << source;
    EXPECT_FALSE(binary->empty());
  }
}

TEST(SourcesTest, MatrixUnitsCompileForEachArchitecture) {
  const auto api = LoadCompilerApi();
  if (!api.ok()) GTEST_SKIP() << api.status().Text();
  codegen::KernelParts parts;
  parts.group_size = 64;
  parts.number_count = 1;
  parts.parameters = {{.name = "out0", .type = "f32", .is_written = true, .is_alone = true}};
  parts.library = MatrixProduct();
  parts.shared = {"u32 words[64]"};
  parts.body =
      "  f32 sums[4] = {0, 0, 0, 0};\n  u32 counts[4] = {0, 0, 0, 0};\n"
      "  words[LANE] = TF32_WORD(LANE);\n  BARRIER;\n";
  for (const char* const name : {"f16", "bf16", "tf32", "i8_i8", "i8_u8", "u8_i8", "u8_u8"}) {
    const std::string to =
        std::string_view(name).find('_') == std::string_view::npos ? "sums" : "counts";
    parts.body += std::string("  MATRIX_") + name;
    for (int k = 0; k < 4; ++k)
      parts.body += (k == 0 ? "(" : ", ") + to + "[" + std::to_string(k) + "]";
    for (int k = 0; k < 6; ++k) parts.body += ", words[(LANE + " + std::to_string(k) + ") % 64]";
    parts.body += ");\n";
  }
  parts.body += "  STORE(out0, ITEM, sums[0] + (f32)counts[0]);\n";
  const std::string source = codegen::CudaDialect().Assemble(parts);
  for (const int architecture : {80, 90, 100}) {
    const auto compiler = Compiler::Create(*api, architecture);
    ASSERT_TRUE(compiler.ok()) << compiler.status().Text();
    const auto binary = compiler->Compile(source);
    EXPECT_TRUE(binary.ok()) << binary.status().Text() << '\n' << source;
  }
}

// tools/compile_kernels.py holds all kernels of cases to it.
TEST(SourcesTest, ProductsAndAttentionAreToldThatOneBlockIsEnough) {
  codegen::KernelParts parts;
  parts.group_size = 64;
  for (const char* const family : {"", "Map", "Contract", "Attention"}) {
    parts.family = family;
    const std::string source = codegen::CudaDialect().Assemble(parts);
    EXPECT_EQ(source.find("__launch_bounds__(64, 1)") != source.npos,
              *family == 'C' || *family == 'A')
        << family;
  }
}

int Count(std::string_view text, std::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// No architecture of that number is known, so that PTX of the newest one comes.
TEST(SourcesTest, ItemsLoadAndStore16BytesAtOnce) {
  const auto api = LoadCompilerApi();
  if (!api.ok()) GTEST_SKIP() << api.status().Text();
  const auto compiler = Compiler::Create(*api, 999);
  ASSERT_TRUE(compiler.ok()) << compiler.status().Text();
  using enum tensor::ElementType;
  for (const auto& [from, to] : {std::pair{kFloat32, kFloat32},
                                 {kFloat16, kFloat32},
                                 {kFloat32, kBfloat16},
                                 {kInt8, kFloat32},
                                 {kBool, kUint8}}) {
    const codegen::LaneSource source = codegen::MakeLaneSource(codegen::CudaDialect(), from, to);
    const auto binary = compiler->Compile(source.text);
    ASSERT_TRUE(binary.ok()) << binary.status().Text() << '\n' << source.text;
    const std::string ptx(reinterpret_cast<const char*>(binary->data()), binary->size());
    EXPECT_GE(source.loads, 1);
    EXPECT_EQ(Count(ptx, "ld.global.v4"), source.loads) << source.text << ptx;
    EXPECT_EQ(Count(ptx, "st.global.v4"), source.stores) << source.text << ptx;
  }
}

TEST(SourcesTest, AMistakeIsRefusedWithWords) {
  const auto api = LoadCompilerApi();
  if (!api.ok()) GTEST_SKIP() << api.status().Text();
  const auto compiler = Compiler::Create(*api, 90);
  ASSERT_TRUE(compiler.ok()) << compiler.status().Text();
  const auto binary = compiler->Compile("extern \"C\" __global__ void run() { nothing = 0; }\n");
  ASSERT_FALSE(binary.ok());
  EXPECT_NE(binary.status().Text().find("nothing"), std::string::npos) << binary.status().Text();
}

}  // namespace
}  // namespace onnxifi::cuda
