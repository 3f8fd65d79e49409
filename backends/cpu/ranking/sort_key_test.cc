// SPDX-License-Identifier: Apache-2.0
//
// Sort keys: the order of float32 and integers, zeros and no numbers included.

#include "backends/cpu/ranking/sort_key.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace onnxifi::ranking {
namespace {

using tensor::ElementType;

TEST(SortKeyTest, OrdersFloats) {
  const auto make = KeyMaker<uint32_t>::For(ElementType::kFloat32);
  auto key = [&](float value) { return make(std::bit_cast<uint32_t>(value)); };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> ascending = {-kInfinity, -3e38f, -1.5f, -1e-45f,   0.0f,
                                        1e-45f,     1.5f,   3e38f, kInfinity, std::nanf("")};
  for (size_t k = 0; k + 1 < ascending.size(); ++k) {
    EXPECT_LT(key(ascending[k]), key(ascending[k + 1])) << ascending[k];
  }
  EXPECT_EQ(key(-0.0f), key(0.0f));
  EXPECT_EQ(key(-std::nanf("")), key(std::nanf("1")));
}

TEST(SortKeyTest, OrdersNarrowFloats) {
  const auto half = KeyMaker<uint16_t>::For(ElementType::kFloat16);
  const auto brain = KeyMaker<uint16_t>::For(ElementType::kBfloat16);
  EXPECT_LT(half(0xFC00), half(0x8001));  // -inf, the largest below zero
  EXPECT_LT(half(0x3C00), half(0x7C00));  // 1, inf
  EXPECT_LT(half(0x7C00), half(0xFC01));  // inf, NaN
  EXPECT_LT(brain(0x7C01), brain(0x7F80));
  EXPECT_LT(brain(0x7F80), brain(0x7F81));
}

TEST(SortKeyTest, OrdersIntegers) {
  const auto make_signed = KeyMaker<uint8_t>::For(ElementType::kInt8);
  EXPECT_LT(make_signed(0x80), make_signed(0xFF));
  EXPECT_LT(make_signed(0xFF), make_signed(0x00));
  EXPECT_LT(make_signed(0x00), make_signed(0x7F));
  const auto make_unsigned = KeyMaker<uint64_t>::For(ElementType::kUint64);
  EXPECT_LT(make_unsigned(1), make_unsigned(~uint64_t{0}));
}

TEST(SortKeyTest, HasNoneOfPackedAndTextElements) {
  EXPECT_TRUE(HasSortKey(ElementType::kBool));
  EXPECT_FALSE(HasSortKey(ElementType::kInt4));
  EXPECT_FALSE(HasSortKey(ElementType::kString));
  EXPECT_FALSE(HasSortKey(ElementType::kComplex64));
}

}  // namespace
}  // namespace onnxifi::ranking
