// SPDX-License-Identifier: Apache-2.0
//
// What glslang makes of a thousand kernels: SPIR-V that the validator of its environment takes,
// before and behind the pass for floats. No device is needed.

#include <gtest/gtest.h>

#include <cstdint>
#include <spirv-tools/libspirv.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/plain_product.h"
#include "backends/core/codegen/testing/lane_source.h"
#include "backends/core/codegen/testing/source_collector.h"
#include "backends/vulkan/compiler.h"
#include "backends/vulkan/float_mode.h"

namespace onnxifi::vulkan {
namespace {

// The validator's words, or empty.
std::string Validate(const std::vector<uint32_t>& words) {
  std::string text;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  tools.SetMessageConsumer([&](spv_message_level_t /*level*/, const char* /*source*/,
                               const spv_position_t& /*position*/,
                               const char* message) { text += std::string(message) + '\n'; });
  spvtools::ValidatorOptions options;
  options.SetScalarBlockLayout(true);
  if (!tools.Validate(words.data(), words.size(), options) && text.empty()) text = "refused";
  return text;
}

TEST(SourcesTest, AThousandKernelsAreValid) {
  constexpr size_t kCount = 1000;
  const codegen::GlslDialect dialect;
  const std::vector<std::string> sources =
      codegen::CollectSources(dialect, codegen::PlainProduct(), {.most_group_items = 1024}, kCount);
  using Width = FloatControls::Width;
  const FloatControls all{
      {Width{16, true, true, true}, Width{32, true, true, true}, Width{64, true, true, true}}};
  for (const std::string& source : sources) {
    const auto words = CompileGlsl(source);
    ASSERT_TRUE(words.ok()) << words.status().Text() << '\n' << source;
    ASSERT_EQ(Validate(*words), "") << source;
    ASSERT_EQ(Validate(WithFloatMode(*words, all)), "") << source;
  }
}

// Instructions of `opcode` whose memory access, from operand `at` on, is aligned to 16 bytes.
int CountWords(const std::vector<uint32_t>& module, uint32_t opcode, size_t at) {
  constexpr uint32_t kAligned = 2;
  int count = 0;
  for (size_t place = 5; place < module.size(); place += module[place] >> 16) {
    if ((module[place] & 0xffff) != opcode || module[place] >> 16 <= at + 1) continue;
    if ((module[place + at] & kAligned) != 0 && module[place + at + 1] == 16) ++count;
  }
  return count;
}

TEST(SourcesTest, ItemsLoadAndStore16BytesAtOnce) {
  using enum tensor::ElementType;
  for (const auto& [from, to] : {std::pair{kFloat32, kFloat32},
                                 {kFloat16, kFloat32},
                                 {kFloat32, kBfloat16},
                                 {kInt8, kFloat32},
                                 {kBool, kUint8}}) {
    SCOPED_TRACE(testing::Message() << tensor::Name(from) << " to " << tensor::Name(to));
    const codegen::LaneSource source = codegen::MakeLaneSource(codegen::GlslDialect(), from, to);
    const auto words = CompileGlsl(source.text);
    ASSERT_TRUE(words.ok()) << words.status().Text() << '\n' << source.text;
    EXPECT_EQ(Validate(*words), "") << source.text;
    EXPECT_GE(source.loads, 1);
    constexpr uint32_t kOpLoad = 61, kOpStore = 62;
    EXPECT_EQ(CountWords(*words, kOpLoad, 4), source.loads) << source.text;
    EXPECT_EQ(CountWords(*words, kOpStore, 3), source.stores) << source.text;
  }
}

TEST(SourcesTest, AMistakeIsFound) {
  EXPECT_FALSE(CompileGlsl("#version 460\nvoid main() { nothing = 0; }\n").ok());
  auto words = CompileGlsl("#version 460\nlayout(local_size_x = 1) in;\nvoid main() {}\n");
  ASSERT_TRUE(words.ok()) << words.status().Text();
  EXPECT_EQ(Validate(*words), "");
  words->pop_back();
  EXPECT_NE(Validate(*words), "");
}

}  // namespace
}  // namespace onnxifi::vulkan
