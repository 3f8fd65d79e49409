// SPDX-License-Identifier: Apache-2.0
//
// float16 on the device: every code as float32, and float32 around every code as float16, compared
// bit by bit with core/tensor's conversions.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/core/codegen/testing/step_fixture.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::codegen {
namespace {

constexpr auto kHalf = tensor::ElementType::kFloat16;
constexpr int64_t kCodes = 0x10000;

class HalvesTest : public StepTest {
 protected:
  // What a Map casts `values` of `from` to; empty where it fails.
  template <typename To, typename From>
  std::vector<To> Cast(const std::vector<From>& values, tensor::ElementType from,
                       tensor::ElementType to) {
    StepMaker make(1);
    const auto count = static_cast<int64_t>(values.size());
    const program::Expr value = make.Read(make.Buffer({count}, from));
    std::ranges::copy(std::as_bytes(std::span(values)), make.made.buffers.back().mutable_data());
    program::Map map;
    map.roots.push_back(program::Cast(value, to).id());
    make.step.writes = {make.Buffer({count}, to)};
    make.step.domain = {count};
    make.step.body = std::move(map);
    make.FinishStep(0);
    const auto buffers = RunStep(*device_, make.made);
    EXPECT_TRUE(buffers.ok()) << buffers.status().Text();
    if (!buffers.ok()) return {};
    const auto* const results = reinterpret_cast<const To*>((*buffers)[1].data());
    return std::vector<To>(results, results + count);
  }
};

float ValueOf(int64_t code) {
  const auto bits = static_cast<uint16_t>(code);
  return static_cast<float>(
      tensor::LoadScalar(kHalf, reinterpret_cast<const std::byte*>(&bits), 0).f);
}

TEST_F(HalvesTest, EveryCodeIsWidenedExactly) {
  std::vector<uint16_t> codes(kCodes);
  for (int64_t code = 0; code < kCodes; ++code) {
    codes[static_cast<size_t>(code)] = static_cast<uint16_t>(code);
  }
  const std::vector<uint32_t> actual = Cast<uint32_t>(codes, kHalf, kFloat);
  ASSERT_EQ(actual.size(), codes.size());
  for (int64_t code = 0; code < kCodes; ++code) {
    const float expected = ValueOf(code);
    const uint32_t bits = actual[static_cast<size_t>(code)];
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(std::bit_cast<float>(bits))) << code;
    } else {
      ASSERT_EQ(bits, std::bit_cast<uint32_t>(expected)) << code;
    }
  }
}

TEST_F(HalvesTest, FloatsAreRoundedToTheNearestEvenCode) {
  std::vector<uint32_t> values;
  for (int64_t code = 0; code < kCodes; ++code) {
    const float value = ValueOf(code);
    const float next = ValueOf(code + 1);
    // Itself and the middle to the next one, each with its neighbours.
    for (const float around : {value, value / 2 + next / 2}) {
      const auto bits = std::bit_cast<uint32_t>(around);
      for (uint32_t step = 0; step < 5; ++step) values.push_back(bits + step - 2);
    }
  }
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 16411) {
    values.push_back(static_cast<uint32_t>(bits));
  }
  const std::vector<uint16_t> actual = Cast<uint16_t>(values, kFloat, kHalf);
  ASSERT_EQ(actual.size(), values.size());
  const bool keeps_subnormals = tested_->Meaning().keeps_subnormals;
  for (size_t k = 0; k < values.size(); ++k) {
    const auto value = std::bit_cast<float>(values[k]);
    // A subnormal float32 is zero as float16 anyway.
    if (!keeps_subnormals && std::fpclassify(value) == FP_SUBNORMAL) continue;
    ASSERT_EQ(actual[k], tensor::EncodeFloat(kHalf, value)) << values[k] << " is " << value;
  }
}

}  // namespace
}  // namespace onnxifi::codegen
