// SPDX-License-Identifier: Apache-2.0
//
// Lanes of every type and bit pattern, against the numbers that they are.

#include "backends/cpu/non_zero/lanes.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "backends/core/tensor/convert.h"

namespace onnxifi::non_zero {
namespace {

using tensor::ElementType;

bool IsNonZero(ElementType type, const std::byte* elements, int64_t k) {
  const tensor::Scalar value = tensor::LoadScalar(type, elements, k);
  return tensor::IsFloat(type) ? value.f != 0 : value.u != 0;
}

void Check(ElementType type, const std::vector<std::byte>& bytes, int64_t count) {
  const Lanes lanes{bytes.data(), count, tensor::BitWidth(type) / 8, *FindDecidingBits(type)};
  std::vector<int64_t> wanted;
  for (int64_t k = 0; k < count; ++k) {
    if (IsNonZero(type, bytes.data(), k)) wanted.push_back(100 + k);
  }
  std::vector<int64_t> positions(static_cast<size_t>(count));
  positions.resize(static_cast<size_t>(FindNonZero(lanes, 100, positions.data())));
  EXPECT_EQ(positions, wanted) << tensor::Name(type) << ", " << count << " elements";
  EXPECT_EQ(CountNonZero(lanes), static_cast<int64_t>(wanted.size()));
}

TEST(LanesTest, EveryTypeIsZeroWhereItsNumberIs) {
  std::mt19937 random(1);
  for (int number = 1; number < tensor::kElementTypeCount; ++number) {
    const auto type = static_cast<ElementType>(number);
    if (!FindDecidingBits(type)) continue;
    const auto lane_bytes = static_cast<size_t>(tensor::BitWidth(type) / 8);
    for (const int64_t count : {0, 1, 3, 64, 100, 257}) {
      // Each of the bytes, alone in an element and among others.
      std::vector<std::byte> bytes(static_cast<size_t>(count) * lane_bytes);
      for (std::byte& byte : bytes) {
        byte = random() % 2 == 0 ? std::byte{0} : static_cast<std::byte>(random());
      }
      Check(type, bytes, count);
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
      for (int64_t k = 0; k < count; ++k) {
        bytes[static_cast<size_t>(k + 1) * lane_bytes - 1] =
            static_cast<std::byte>(k % 2 == 0 ? 0x80 : 0);
      }
      Check(type, bytes, count);
    }
  }
  EXPECT_FALSE(FindDecidingBits(ElementType::kFloat8E8M0));
  EXPECT_FALSE(FindDecidingBits(ElementType::kComplex64));
  EXPECT_FALSE(FindDecidingBits(ElementType::kInt4));
}

}  // namespace
}  // namespace onnxifi::non_zero
