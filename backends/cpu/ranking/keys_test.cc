// SPDX-License-Identifier: Apache-2.0
//
// Keys, against one element after the other.

#include "backends/cpu/ranking/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace onnxifi::ranking {
namespace {

using tensor::ElementType;

template <typename Bits>
void Check(ElementType type, int64_t count, bool is_largest) {
  std::mt19937_64 random(static_cast<uint64_t>(count));
  std::vector<Bits> elements(static_cast<size_t>(count));
  for (Bits& element : elements) {
    element = random() % 8 == 0 ? Bits{0} : static_cast<Bits>(random());
  }
  const auto make = KeyMaker<Bits>::For(type);
  std::vector<Bits> keys(elements.size());
  MakeKeys(make, is_largest, elements.data(), count, keys.data());
  for (size_t k = 0; k < keys.size(); ++k) {
    const Bits key = make(elements[k]);
    ASSERT_EQ(keys[k], is_largest ? static_cast<Bits>(~key) : key) << tensor::Name(type);
  }
  for (const Bits bound : {Bits{0}, Bits{1}, make(Bits{0}), static_cast<Bits>(~Bits{0})}) {
    for (int64_t begin = 0; begin <= count; begin += 1 + count / 9) {
      const auto below =
          std::find_if(keys.begin() + begin, keys.end(), [&](Bits key) { return key < bound; });
      ASSERT_EQ(FindBelow(keys.data(), begin, count, bound), below - keys.begin());
    }
  }
}

TEST(KeysTest, AreThoseOfEachElement) {
  for (const int64_t count : {0, 1, 7, 32, 100, 1000}) {
    for (const bool is_largest : {false, true}) {
      Check<uint8_t>(ElementType::kInt8, count, is_largest);
      Check<uint8_t>(ElementType::kBool, count, is_largest);
      Check<uint16_t>(ElementType::kFloat16, count, is_largest);
      Check<uint16_t>(ElementType::kBfloat16, count, is_largest);
      Check<uint32_t>(ElementType::kFloat32, count, is_largest);
      Check<uint32_t>(ElementType::kUint32, count, is_largest);
      Check<uint64_t>(ElementType::kFloat64, count, is_largest);
      Check<uint64_t>(ElementType::kInt64, count, is_largest);
    }
  }
}

}  // namespace
}  // namespace onnxifi::ranking
