// SPDX-License-Identifier: Apache-2.0
//
// RadixSort, against a stable sort.

#include "backends/cpu/ranking/radix_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace onnxifi::ranking {
namespace {

template <typename Bits>
void Check(int64_t count, uint64_t variety, int shift) {
  using Entry = std::pair<uint64_t, int64_t>;
  std::mt19937_64 random(static_cast<uint64_t>(count));
  std::vector<Entry> entries;
  for (int64_t k = 0; k < count; ++k) {
    entries.emplace_back(static_cast<Bits>(random() % variety << shift), k);
  }
  std::vector<Entry> expected = entries;
  std::stable_sort(expected.begin(), expected.end(),
                   [](const Entry& a, const Entry& b) { return a.first < b.first; });
  std::vector<Entry> spare(entries.size());
  RadixSort<Bits>(entries.data(), count, spare.data(),
                  [](const Entry& entry) { return entry.first; });
  EXPECT_EQ(entries, expected) << count << " entries of " << variety << " keys";
}

TEST(RadixSortTest, IsAStableSort) {
  for (const int64_t count : {0, 1, 2, 300, 5000}) {
    for (const uint64_t variety : {uint64_t{1}, uint64_t{3}, uint64_t{70'000}, UINT64_MAX}) {
      for (const int shift : {0, 5}) {
        Check<uint8_t>(count, variety, shift);
        Check<uint16_t>(count, variety, shift);
        Check<uint32_t>(count, variety, shift);
        Check<uint64_t>(count, variety, shift);
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::ranking
