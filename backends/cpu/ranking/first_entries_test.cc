// SPDX-License-Identifier: Apache-2.0
//
// FindFirst, against a stable sort of the elements.

#include "backends/cpu/ranking/first_entries.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace onnxifi::ranking {
namespace {

// Elements from [0, variety): few of them make many equal ones.
template <typename Entry, typename Bits>
void CheckAgainstSort(int64_t length, int64_t found, Bits variety, bool is_largest) {
  std::mt19937 random(static_cast<uint32_t>(length + found));
  std::vector<Bits> elements(static_cast<size_t>(length));
  for (Bits& element : elements) element = static_cast<Bits>(random() % variety);
  std::vector<int64_t> expected(elements.size());
  std::iota(expected.begin(), expected.end(), 0);
  std::stable_sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
    const Bits x = elements[static_cast<size_t>(a)];
    const Bits y = elements[static_cast<size_t>(b)];
    return is_largest ? x > y : x < y;
  });
  std::vector<Bits> keys(elements.size());
  MakeKeys<Bits>({}, is_largest, elements.data(), length, keys.data());
  const RankedRow<Bits> row{keys.data(), length};
  std::vector<Entry> entries(elements.size());
  std::vector<Entry> spare(elements.size());
  FindFirst(row, found, entries.data(), spare.data());
  for (int64_t rank = 0; rank < found; ++rank) {
    ASSERT_EQ(PositionOf(entries[static_cast<size_t>(rank)]), expected[static_cast<size_t>(rank)])
        << rank << " of " << found << " of " << length << ", " << uint64_t{variety} << " different";
  }
}

TEST(FirstEntriesTest, AreThoseOfAStableSort) {
  for (const int64_t length : {1, 2, 7, 64, 100, 1000, 5000}) {
    for (const int64_t found : {1, 2, 5, 20, 30, 100, 600, 1000, 5000}) {
      if (found > length) continue;
      for (const bool is_largest : {false, true}) {
        CheckAgainstSort<NarrowEntry, uint32_t>(length, found, 1'000'000'000, is_largest);
        CheckAgainstSort<NarrowEntry, uint32_t>(length, found, 3, is_largest);
        CheckAgainstSort<NarrowEntry, uint32_t>(length, found, 1, is_largest);
        CheckAgainstSort<NarrowEntry, uint8_t>(length, found, 200, is_largest);
        CheckAgainstSort<WideEntry, uint64_t>(length, found, 1'000'000'000, is_largest);
        CheckAgainstSort<WideEntry, uint32_t>(length, found, 5, is_largest);
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::ranking
