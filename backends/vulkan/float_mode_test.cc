// SPDX-License-Identifier: Apache-2.0
//
// What the pass makes of modules, read by a reader of its own, and by the validator of SPIR-V.

#include "backends/vulkan/float_mode.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>
#include <spirv-tools/libspirv.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backends/vulkan/compiler.h"

namespace onnxifi::vulkan {
namespace {

using Words = std::vector<uint32_t>;
using Width = FloatControls::Width;

// Every operation on floats that GLSL has an operator for, and integers between.
constexpr const char* kSource = R"(#version 460
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer B { float a; float b; vec4 v; mat4 m; double d; int i; };
void main() {
  float x = a * b + a;
  x = -x - b;
  x = x / a;
  x = mod(x, b);
  v = v * x + v;
  x += dot(v, v);
  v = m * v;
  v = v * m;
  m = m * m;
  m = m * x;
  m = outerProduct(v, v);
  float y = x * x + b;
  i = i * 3 + i / 7 - (-i);
  d = d * d + double(y);
  a = fma(x, y, b);
}
)";

Words Compile(const std::string& source) {
  auto words = CompileGlsl(source);
  EXPECT_TRUE(words.ok()) << words.status().Text();
  return words.ok() ? *words : Words{};
}

std::string Validate(const Words& words) {
  std::string text;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t&,
                               const char* message) { text += std::string(message) + '\n'; });
  if (!tools.Validate(words) && text.empty()) text = "refused";
  return text;
}

// Each instruction's opcode and operands.
void ForEach(const Words& words, const std::function<void(uint32_t, const Words&)>& visit) {
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const auto first = words.begin() + static_cast<ptrdiff_t>(at);
    visit(words[at] & 0xFFFF, Words(first + 1, first + static_cast<ptrdiff_t>(words[at] >> 16)));
  }
}

struct Modes {
  std::set<std::pair<uint32_t, uint32_t>> asked;  // mode and width
  std::set<uint32_t> capabilities;
  std::vector<std::string> extensions;
};
Modes ModesOf(const Words& words) {
  Modes modes;
  ForEach(words, [&](uint32_t opcode, const Words& operands) {
    if (opcode == 16 && operands[1] >= 4459 && operands[1] <= 4463) {
      EXPECT_TRUE(modes.asked.emplace(operands[1], operands[2]).second) << "asked for twice";
    }
    if (opcode == 17) modes.capabilities.insert(operands[0]);
    if (opcode == 10) {
      modes.extensions.emplace_back(reinterpret_cast<const char*>(operands.data()));
    }
  });
  return modes;
}

constexpr FloatControls kAll{
    {Width{16, true, true, true}, Width{32, true, true, true}, Width{64, true, true, true}}};

TEST(FloatModeTest, EveryFloatOperationIsMarkedOnceAndNothingElse) {
  const Words before = Compile(kSource);
  const Words words = WithFloatMode(before, kAll);
  EXPECT_EQ(Validate(before), "");
  EXPECT_EQ(Validate(words), "");
  std::multiset<uint32_t> marked;
  std::set<uint32_t> kinds;
  size_t float_operations = 0;
  ForEach(words, [&](uint32_t opcode, const Words& operands) {
    if (opcode == 71 && operands[1] == 42) marked.insert(operands[0]);
  });
  ForEach(words, [&](uint32_t opcode, const Words& operands) {
    // FNegate, FAdd, FSub, FMul, FDiv, FRem, FMod, and products with vectors and matrices.
    const std::set<uint32_t> of_floats = {127, 129, 131, 133, 136, 140, 141,
                                          142, 143, 144, 145, 146, 147, 148};
    if (!of_floats.contains(opcode)) return;
    ++float_operations;
    kinds.insert(opcode);
    EXPECT_EQ(marked.count(operands[1]), 1U) << "opcode " << opcode;
  });
  EXPECT_EQ(marked.size(), float_operations);
  EXPECT_GE(kinds.size(), 12U);
}

TEST(FloatModeTest, WhatIsMarkedAlreadyIsNotMarkedTwice) {
  const Words before = Compile(R"(#version 460
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer B { float a; float b; };
void main() {
  precise float y = a * b + b;
  a = y;
}
)");
  const auto marks = [](const Words& words) {
    int count = 0;
    ForEach(words, [&](uint32_t opcode, const Words& operands) {
      count += opcode == 71 && operands[1] == 42 ? 1 : 0;
    });
    return count;
  };
  EXPECT_EQ(marks(before), 2);
  EXPECT_EQ(marks(WithFloatMode(before, kAll)), 2);
}

TEST(FloatModeTest, ModesAreAskedForThatAreOfferedToWidthsThatAreUsed) {
  const Words source = Compile(kSource);
  const Modes all = ModesOf(WithFloatMode(source, kAll));
  EXPECT_EQ(all.asked,
            (std::set<std::pair<uint32_t, uint32_t>>{
                {4459, 32}, {4459, 64}, {4461, 32}, {4461, 64}, {4462, 32}, {4462, 64}}));
  for (const uint32_t capability : {4464U, 4466U, 4467U}) {
    EXPECT_TRUE(all.capabilities.contains(capability)) << capability;
  }
  EXPECT_TRUE(all.extensions.empty());

  const FloatControls some{
      {Width{16, true, true, true}, Width{32, true, false, false}, Width{64, false, false, true}}};
  const Words words = WithFloatMode(source, some);
  EXPECT_EQ(Validate(words), "");
  const Modes few = ModesOf(words);
  EXPECT_EQ(few.asked, (std::set<std::pair<uint32_t, uint32_t>>{{4461, 32}, {4459, 64}}));
  EXPECT_FALSE(few.capabilities.contains(4467));

  EXPECT_TRUE(ModesOf(WithFloatMode(source, FloatControls{})).asked.empty());
}

// Modes of 16 bits are float16's: no device offers them for bfloat16.
TEST(FloatModeTest, NoModeIsAskedForBfloat16) {
  if (!KnowsBfloat16()) GTEST_SKIP() << CompilerName() << " knows no bfloat16.";
  const Words words =
      WithFloatMode(Compile("#version 460\n#extension GL_EXT_bfloat16 : require\n"
                            "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
                            "layout(local_size_x = 1) in;\n"
                            "layout(std430, binding = 0) buffer B { float a; uint16_t b; };\n"
                            "void main() { a = float(uintBitsToBFloat16EXT(b)) + 1.0; }\n"),
                    kAll);
  EXPECT_EQ(Validate(words), "");
  const std::set<std::pair<uint32_t, uint32_t>> expected = {{4459, 32}, {4461, 32}, {4462, 32}};
  EXPECT_EQ(ModesOf(words).asked, expected);
}

TEST(FloatModeTest, AModuleWithoutFloatsStaysAsItIs) {
  const Words words = Compile(R"(#version 460
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer B { int i; };
void main() { i = i * 3 + i; }
)");
  EXPECT_EQ(WithFloatMode(words, kAll), words);
}

TEST(FloatModeTest, OldModulesNameTheExtension) {
  Words words = Compile(kSource);
  words[1] = 0x00010300;
  const Modes modes = ModesOf(WithFloatMode(words, kAll));
  EXPECT_EQ(modes.extensions, std::vector<std::string>{"SPV_KHR_float_controls"});
  EXPECT_TRUE(ModesOf(WithFloatMode(words, FloatControls{})).extensions.empty());
}

TEST(FloatModeTest, WhatIsNoModuleStaysAsItIs) {
  EXPECT_EQ(WithFloatMode(Words{}, kAll), Words{});
  const Words text = {0x6F6E6E78, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(WithFloatMode(text, kAll), text);
  const Words whole = Compile(kSource);
  for (size_t length = 0; length < whole.size(); ++length) {
    const Words cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
    // Cut between two instructions it may still have all that counts.
    const Words result = WithFloatMode(cut, kAll);
    EXPECT_GE(result.size(), cut.size());
  }
  Words without_length = whole;
  without_length[5] &= 0xFFFF;
  EXPECT_EQ(WithFloatMode(without_length, kAll), without_length);
}

TEST(FloatModeTest, ModesAreLimitedToWhatCanBeSetAlike) {
  const FloatControls single{
      {Width{16, false, false, false}, Width{32, true, true, true}, Width{64, true, true, true}}};
  FloatControls controls = single;
  LimitByIndependence(VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL, &Width::rounds_to_nearest,
                      controls);
  EXPECT_TRUE(controls.by_width[1].rounds_to_nearest);
  EXPECT_TRUE(controls.by_width[2].rounds_to_nearest);
  LimitByIndependence(VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY, &Width::rounds_to_nearest,
                      controls);
  EXPECT_TRUE(controls.by_width[1].rounds_to_nearest);
  EXPECT_FALSE(controls.by_width[2].rounds_to_nearest);
  EXPECT_TRUE(controls.by_width[2].keeps_subnormals);
  LimitByIndependence(VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE, &Width::keeps_subnormals,
                      controls);
  for (const Width& width : controls.by_width) EXPECT_FALSE(width.keeps_subnormals);
  EXPECT_TRUE(controls.by_width[1].rounds_to_nearest);
}

}  // namespace
}  // namespace onnxifi::vulkan
