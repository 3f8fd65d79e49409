// SPDX-License-Identifier: Apache-2.0

#include "backends/core/base/hash_index.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace onnxifi::base {
namespace {

// Many contents share a hash; each must be found by its content alone, however many there are.
TEST(HashIndexTest, FindsEachOfAnyNumberOfThingsAmongOnesOfTheSameHash) {
  for (int count : {1, 2, 15, 16, 17, 18, 33, 1000, 5000}) {
    std::mt19937_64 random(static_cast<uint64_t>(count));
    std::vector<int> contents;
    std::vector<size_t> hashes;
    HashIndex index;
    for (int number = 0; number < count; ++number) {
      contents.push_back(number * 7);
      hashes.push_back(random() % static_cast<uint64_t>(count / 3 + 1) * 0x10001);
      index.Add(hashes.back(), number);
    }
    for (int number = 0; number < count; ++number) {
      const auto at = static_cast<size_t>(number);
      EXPECT_EQ(index.Find(hashes[at],
                           [&](int k) { return contents[static_cast<size_t>(k)] == number * 7; }),
                number);
      EXPECT_EQ(
          index.Find(hashes[at], [&](int k) { return contents[static_cast<size_t>(k)] == -1; }),
          HashIndex::kNone);
    }
    EXPECT_EQ(index.Find(size_t{1} << 31, [](int) { return true; }), HashIndex::kNone);
  }
}

TEST(HashIndexTest, FindsTheFirstOfEqualOnes) {
  HashIndex index;
  for (int number = 0; number < 100; ++number) index.Add(5, number);
  EXPECT_EQ(index.Find(5, [](int) { return true; }), 0);
  EXPECT_EQ(index.Find(5, [](int number) { return number >= 40; }), 40);
}

TEST(HashIndexTest, FindsNothingInAnEmptyOne) {
  EXPECT_EQ(HashIndex().Find(0, [](int) { return true; }), HashIndex::kNone);
}

}  // namespace
}  // namespace onnxifi::base
