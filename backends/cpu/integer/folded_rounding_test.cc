// SPDX-License-Identifier: Apache-2.0
//
// FoldBehindRounding: with and without it, sums become the bytes that float32 operations one by one
// make of them, on every instruction set.

#include "backends/cpu/integer/folded_rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "backends/cpu/integer/requantize.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::integer {
namespace {

using tensor::ElementType;

constexpr int64_t kColumns = 83;
constexpr int64_t kRows = 40;

// As FindRequantization makes it.
Quantizer MakeQuantizer(float divisor, int32_t zero_point, bool is_signed) {
  Quantizer quantizer;
  quantizer.divisor = divisor;
  quantizer.below = std::nextafter(static_cast<float>(1 / static_cast<double>(divisor)), 0.0F);
  quantizer.above = std::nextafter(std::nextafter(quantizer.below, 1e30F), 1e30F);
  quantizer.zero_point = zero_point;
  quantizer.low = is_signed ? -128 : 0;
  quantizer.high = is_signed ? 127 : 255;
  return quantizer;
}

Link MakeLink(LinkKind kind, std::vector<float> numbers) {
  Link link{};
  link.kind = kind;
  link.table = std::move(numbers);
  link.table.resize(static_cast<size_t>(kColumns + kTableSlack));
  return link;
}

// Operation by operation, in float32.
int ComputeByte(const Requantization& how, int32_t sum, size_t column) {
  auto x = static_cast<float>(sum);
  for (const Link& link : how.links) {
    if (link.kind == LinkKind::kRound) {
      const float byte = link.quantizer.Apply(x);
      x = (byte - static_cast<float>(link.dequantizer.zero_point)) * link.dequantizer.scale;
    } else if (link.kind == LinkKind::kMul) {
      x *= link.table[column];
    } else if (link.kind == LinkKind::kSub) {
      x -= link.table[column];
    } else {
      x += link.table[column];
    }
  }
  return static_cast<int>(how.last.Apply(x));
}

void ExpectBytes(const Requantization& how, const Requantization& by_operations) {
  std::mt19937 random(3);
  std::vector<int32_t> sums(static_cast<size_t>(kRows * kColumns + kSumSlack));
  for (int32_t& sum : sums) sum = std::uniform_int_distribution(-40000, 40000)(random);
  std::vector<uint8_t> bytes(static_cast<size_t>(kRows * kColumns));
  SumBlock block{};
  block.sums = sums.data();
  block.sum_stride = block.columns = block.result_stride = kColumns;
  block.rows = kRows;
  block.result = reinterpret_cast<std::byte*>(bytes.data());
  Requantize(how, block);
  for (size_t at = 0; at < bytes.size(); ++at) {
    const int byte =
        how.result == ElementType::kInt8 ? static_cast<int8_t>(bytes[at]) : int{bytes[at]};
    ASSERT_EQ(byte, ComputeByte(by_operations, sums[at], at % kColumns))
        << "sum " << sums[at] << ", column " << at % kColumns;
  }
}

// A convolution whose result is quantized, then normalized per channel and quantized again.
Requantization MakeNormalized(std::mt19937& random, bool is_signed, float second_scale) {
  const auto numbers = [&](float low, float high) {
    std::vector<float> drawn(kColumns);
    for (float& number : drawn) number = std::uniform_real_distribution(low, high)(random);
    return drawn;
  };
  constexpr float kScale = 0.071F;
  Requantization how;
  how.result = is_signed ? ElementType::kInt8 : ElementType::kUint8;
  how.links.push_back(MakeLink(LinkKind::kMul, numbers(0.0001F, 0.0004F)));
  Link round{};
  round.kind = LinkKind::kRound;
  round.quantizer = MakeQuantizer(kScale, -7, /*is_signed=*/true);
  round.dequantizer = {kScale, -7};
  how.links.push_back(round);
  how.links.push_back(MakeLink(LinkKind::kSub, numbers(-1, 1)));
  how.links.push_back(MakeLink(LinkKind::kMul, numbers(-0.3F, 1.7F)));
  how.links.push_back(MakeLink(LinkKind::kAdd, numbers(-0.5F, 0.5F)));
  how.last = MakeQuantizer(second_scale, is_signed ? 11 : 90, is_signed);
  return how;
}

TEST(FoldedRoundingTest, ReplacesANormalizationBetweenTwoQuantizations) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    std::mt19937 random(5);
    for (int round = 0; round < 12; ++round) {
      Requantization how = MakeNormalized(random, round % 2 == 0, 0.02F + 0.01F * round);
      // As behind a Relu.
      if (round % 3 == 0) how.last.low = how.last.zero_point;
      const Requantization by_operations = how;
      ExpectBytes(how, by_operations);
      // Whether it folds depends on the numbers drawn; its bytes do not.
      FoldBehindRounding(kColumns, how);
      ExpectBytes(how, by_operations);
    }
  });
}

// Numbers whose results lie far from the middle between two bytes, however products are rounded.
TEST(FoldedRoundingTest, FoldsANormalizationOfFixedNumbers) {
  const std::vector<float> slopes(kColumns, 0.001F), means(kColumns, 0.5F), scales(kColumns, 3.0F),
      biases(kColumns, 0.3125F);
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    Requantization how;
    how.result = ElementType::kInt8;
    Link round{};
    round.kind = LinkKind::kRound;
    round.quantizer = MakeQuantizer(0.25F, -7, /*is_signed=*/true);
    round.dequantizer = {0.25F, -7};
    how.links = {MakeLink(LinkKind::kMul, slopes), round, MakeLink(LinkKind::kSub, means),
                 MakeLink(LinkKind::kMul, scales), MakeLink(LinkKind::kAdd, biases)};
    how.last = MakeQuantizer(0.5F, 11, /*is_signed=*/true);
    const Requantization by_operations = how;
    FoldBehindRounding(kColumns, how);
    ASSERT_EQ(how.links.size(), 2U);
    EXPECT_EQ(how.links.back().kind, LinkKind::kRescale);
    ExpectBytes(how, by_operations);
  });
}

// Half of the integers lie in the middle between two results, and round to even ones.
TEST(FoldedRoundingTest, RoundsMiddlesToEven) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const int32_t zero_point : {0, 3, 4}) {
      Requantization how;
      how.links.push_back(MakeLink(LinkKind::kMul, std::vector<float>(kColumns, 0.001F)));
      Link round{};
      round.kind = LinkKind::kRound;
      round.quantizer = MakeQuantizer(0.25F, 0, /*is_signed=*/true);
      round.dequantizer = {0.25F, 0};
      how.links.push_back(round);
      how.last = MakeQuantizer(0.5F, zero_point, /*is_signed=*/true);
      const Requantization by_operations = how;
      FoldBehindRounding(kColumns, how);
      // An odd zero point moves what is even: no line does that.
      EXPECT_EQ(how.links.back().kind, zero_point % 2 == 0 ? LinkKind::kRescale : LinkKind::kRound);
      ExpectBytes(how, by_operations);
    }
  });
}

TEST(FoldedRoundingTest, LeavesOtherOperationsAndFloats) {
  std::mt19937 random(9);
  const Requantization normalized = MakeNormalized(random, /*is_signed=*/true, 0.05F);
  for (const LinkKind kind : {LinkKind::kLeaky, LinkKind::kMax, LinkKind::kAddBytes}) {
    Requantization how = normalized;
    how.links.push_back(MakeLink(kind, std::vector<float>(kColumns, 0.5F)));
    FoldBehindRounding(kColumns, how);
    EXPECT_EQ(how.links.size(), normalized.links.size() + 1);
  }
  Requantization how = normalized;
  how.result = ElementType::kFloat32;
  FoldBehindRounding(kColumns, how);
  EXPECT_EQ(how.links.size(), normalized.links.size());
  how = normalized;
  // Bounds that leave no byte.
  how.links[1].quantizer.low = 5;
  how.links[1].quantizer.high = 3;
  FoldBehindRounding(kColumns, how);
  EXPECT_EQ(how.links.size(), normalized.links.size());
  how = normalized;
  how.links.erase(how.links.begin() + 1);
  FoldBehindRounding(kColumns, how);
  EXPECT_EQ(how.links.size(), normalized.links.size() - 1);
}

}  // namespace
}  // namespace onnxifi::integer
