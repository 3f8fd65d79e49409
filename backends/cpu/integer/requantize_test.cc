// SPDX-License-Identifier: Apache-2.0
//
// Requantize: quotients beside the middle between two integers round as divided ones do, and
// nothing is written or read behind the last column, on every instruction set.

#include "backends/cpu/integer/requantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "backends/cpu/integer/requantization.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::integer {
namespace {

using tensor::ElementType;

// As FindRequantization makes it.
Quantizer MakeQuantizer(float divisor, int32_t zero_point, bool is_signed) {
  Quantizer quantizer;
  quantizer.divisor = divisor;
  const double inverse = 1 / static_cast<double>(divisor);
  quantizer.below = static_cast<float>(inverse);
  if (static_cast<double>(quantizer.below) * divisor > 1) {
    quantizer.below = std::nextafter(quantizer.below, 0.0F);
  }
  quantizer.above = static_cast<double>(quantizer.below) * divisor == 1
                        ? quantizer.below
                        : std::nextafter(quantizer.below, 1e30F);
  quantizer.zero_point = zero_point;
  quantizer.low = is_signed ? -128 : 0;
  quantizer.high = is_signed ? 127 : 255;
  return quantizer;
}

// Numbers whose quotients are the middle between two integers, and their neighbours.
std::vector<float> NumbersBesideMiddles(float divisor) {
  std::vector<float> numbers;
  for (int integer = -140; integer <= 140; ++integer) {
    float x = static_cast<float>((integer + 0.5) * static_cast<double>(divisor));
    for (int step = 0; step < 2; ++step) x = std::nextafter(x, -1e30F);
    for (int step = 0; step < 5; ++step, x = std::nextafter(x, 1e30F)) numbers.push_back(x);
  }
  return numbers;
}

TEST(RequantizeTest, RoundsAsQuotientsBesideMiddles) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    std::mt19937 random(7);
    for (int round = 0; round < 40; ++round) {
      const float divisor = std::uniform_real_distribution<float>(0.01F, 3)(random);
      const std::vector<float> numbers = NumbersBesideMiddles(divisor);
      const auto columns = static_cast<int64_t>(numbers.size());
      const bool is_signed = round % 2 == 0;
      constexpr int kZeroPoint = 5;
      Requantization how;
      how.result = is_signed ? ElementType::kInt8 : ElementType::kUint8;
      how.last = MakeQuantizer(divisor, kZeroPoint, is_signed);
      Link scale{};
      scale.kind = LinkKind::kMul;
      scale.table = numbers;
      scale.table.resize(numbers.size() + kTableSlack);
      how.links.push_back(scale);
      constexpr int64_t kRows = 15;
      constexpr int64_t kBehind = 3;
      const std::vector<int32_t> sums(static_cast<size_t>(columns * kRows + kSumSlack), 1);
      std::vector<uint8_t> result(static_cast<size_t>((columns + kBehind) * kRows), 99);
      SumBlock block{};
      block.sums = sums.data();
      block.sum_stride = block.columns = columns;
      block.rows = kRows;
      block.result = reinterpret_cast<std::byte*>(result.data());
      block.result_stride = columns + kBehind;
      Requantize(how, block);
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t c = 0; c < columns + kBehind; ++c) {
          const uint8_t byte = result[static_cast<size_t>(row * (columns + kBehind) + c)];
          if (c >= columns) {
            ASSERT_EQ(byte, 99) << "behind row " << row;
            continue;
          }
          const float x = numbers[static_cast<size_t>(c)];
          const float expected =
              std::clamp(std::nearbyint(x / divisor) + static_cast<float>(kZeroPoint),
                         static_cast<float>(how.last.low), static_cast<float>(how.last.high));
          const int computed = is_signed ? static_cast<int8_t>(byte) : byte;
          ASSERT_EQ(static_cast<float>(computed), expected) << x << " / " << divisor;
        }
      }
    }
  });
}

}  // namespace
}  // namespace onnxifi::integer
