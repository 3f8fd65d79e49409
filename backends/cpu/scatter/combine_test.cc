// SPDX-License-Identifier: Apache-2.0
//
// Combination: rows and elements of every type against one scalar after the other.

#include "backends/cpu/scatter/combine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "backends/core/tensor/convert.h"

namespace onnxifi::scatter {
namespace {

using Combine = program::Index::Combine;
using tensor::ElementType;
using tensor::Scalar;

constexpr Combine kCombines[] = {Combine::kNone, Combine::kAdd, Combine::kMul, Combine::kMin,
                                 Combine::kMax};

double CombineDoubles(Combine combine, double a, double b) {
  switch (combine) {
    case Combine::kAdd:
      return a + b;
    case Combine::kMul:
      return a * b;
    case Combine::kMin:
      return std::isnan(a) || a < b ? a : b;
    case Combine::kMax:
      return std::isnan(a) || a > b ? a : b;
    case Combine::kNone:
      break;
  }
  return b;
}

std::vector<std::byte> RandomBytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Any bits: infinities, NaN and subnormal numbers among them.
void CheckFloats(Combine combine, ElementType type, int64_t count) {
  const int64_t bytes = tensor::SizeBytes(type, count);
  const std::vector<std::byte> before = RandomBytes(static_cast<size_t>(bytes), 1);
  const std::vector<std::byte> updates = RandomBytes(static_cast<size_t>(bytes), 2);
  std::vector<std::byte> row = before;
  std::vector<std::byte> elements = before;
  std::vector<int64_t> offsets(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) offsets[static_cast<size_t>(k)] = k;
  const Combination combination(combine, type);
  combination.Row(row.data(), updates.data(), count);
  combination.Elements(elements.data(), offsets.data(), updates.data(), count);
  for (int64_t k = 0; k < count; ++k) {
    const double exact = CombineDoubles(combine, tensor::LoadScalar(type, before.data(), k).f,
                                        tensor::LoadScalar(type, updates.data(), k).f);
    const double wanted =
        combine == Combine::kNone
            ? exact
            : tensor::CastScalar(ElementType::kFloat64, type, Scalar{.f = exact}).f;
    for (const std::vector<std::byte>* found : {&row, &elements}) {
      const double value = tensor::LoadScalar(type, found->data(), k).f;
      ASSERT_TRUE(value == wanted || (std::isnan(value) && std::isnan(wanted)))
          << tensor::Name(type) << " " << static_cast<int>(combine) << " element " << k << ": "
          << value << " instead of " << wanted;
    }
  }
}

TEST(CombinationTest, FloatsAreRoundedOnce) {
  for (const Combine combine : kCombines) {
    for (const ElementType type :
         {ElementType::kFloat16, ElementType::kBfloat16, ElementType::kFloat32,
          ElementType::kFloat64, ElementType::kFloat8E4M3Fn, ElementType::kFloat8E5M2}) {
      ASSERT_TRUE(HasCombination(combine, type));
      for (const int64_t count : {1, 7, 300, 4096}) CheckFloats(combine, type, count);
    }
  }
}

TEST(CombinationTest, IntegersWrap) {
  const std::vector<int8_t> updates = {100, -100, 3, 1};
  auto combine = [&](Combine combine) {
    std::vector<int8_t> target = {100, -100, -5, 0};
    Combination(combine, ElementType::kInt8)
        .Row(reinterpret_cast<std::byte*>(target.data()),
             reinterpret_cast<const std::byte*>(updates.data()), 4);
    return target;
  };
  EXPECT_EQ(combine(Combine::kAdd), (std::vector<int8_t>{-56, 56, -2, 1}));
  EXPECT_EQ(combine(Combine::kMul), (std::vector<int8_t>{16, 16, -15, 0}));
  EXPECT_EQ(combine(Combine::kMin), (std::vector<int8_t>{100, -100, -5, 0}));
  EXPECT_EQ(combine(Combine::kMax), (std::vector<int8_t>{100, -100, 3, 1}));
}

TEST(CombinationTest, ElementsComeInOrderAndNegativeOffsetsAreLeftOut) {
  std::vector<float> target = {1, 2};
  const std::vector<float> updates = {5, 6, 7, 8};
  const std::vector<int64_t> offsets = {1, -1, 1, 0};
  Combination(Combine::kNone, ElementType::kFloat32)
      .Elements(reinterpret_cast<std::byte*>(target.data()), offsets.data(),
                reinterpret_cast<const std::byte*>(updates.data()), 4);
  EXPECT_EQ(target, (std::vector<float>{8, 7}));
}

// A true bool in memory is any byte but 0; others read the result as 1.
TEST(CombinationTest, RowsOfBoolsAreWrittenAsZeroAndOne) {
  constexpr int64_t kCount = 67;
  std::vector<std::byte> updates = RandomBytes(kCount, 5);
  for (size_t k = 0; k < updates.size(); k += 3) updates[k] = std::byte{0};
  constexpr std::byte kUntouched{0xA5};
  std::vector<std::byte> row(kCount + 1, kUntouched);
  Combination(Combine::kNone, ElementType::kBool).Row(row.data(), updates.data(), kCount);
  for (size_t k = 0; k < updates.size(); ++k) {
    ASSERT_EQ(row[k], updates[k] == std::byte{0} ? std::byte{0} : std::byte{1}) << k;
  }
  EXPECT_EQ(row.back(), kUntouched);
}

TEST(CombinationTest, PackedAndWideElementsHaveNone) {
  EXPECT_FALSE(HasCombination(Combine::kNone, ElementType::kInt4));
  EXPECT_FALSE(HasCombination(Combine::kNone, ElementType::kComplex128));
  EXPECT_TRUE(HasCombination(Combine::kNone, ElementType::kComplex64));
  EXPECT_FALSE(HasCombination(Combine::kAdd, ElementType::kComplex64));
}

}  // namespace
}  // namespace onnxifi::scatter
