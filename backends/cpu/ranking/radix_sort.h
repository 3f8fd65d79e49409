// SPDX-License-Identifier: Apache-2.0
//
// RadixSort: numbers with a key in ascending order of the key, digit by digit from the lowest. Time
// does not depend on the order that they come in, and a digit that all keys share costs nothing.

#ifndef ONNXIFI_BACKENDS_CPU_RANKING_RADIX_SORT_H_
#define ONNXIFI_BACKENDS_CPU_RANKING_RADIX_SORT_H_

#include <algorithm>
#include <cstdint>
#include <utility>

namespace onnxifi::ranking {

// Fewer are compared faster than counted.
inline constexpr int64_t kMinRadixSorted = 256;
inline constexpr int64_t kMaxRadixSorted = UINT32_MAX;

// At most kMaxRadixSorted entries with keys of type Bits, key_of(entry), widened to uint64_t. Those
// of equal keys keep their order. `spare` has room for as many entries.
template <typename Bits, typename Entry, typename KeyOf>
void RadixSort(Entry* entries, int64_t count, Entry* spare, const KeyOf& key_of) {
  constexpr int kDigits = sizeof(Bits);
  constexpr int kDigitBits = 8;
  constexpr int kValues = 1 << kDigitBits;
  // How many entries have each value of a digit, then where the next of them goes.
  uint32_t counts[kDigits][kValues] = {};
  auto digit_of = [&](const Entry& entry, int digit) {
    return (key_of(entry) >> (kDigitBits * digit)) & (kValues - 1);
  };
  for (int64_t k = 0; k < count; ++k) {
    for (int digit = 0; digit < kDigits; ++digit) ++counts[digit][digit_of(entries[k], digit)];
  }
  Entry* from = entries;
  Entry* to = spare;
  for (int digit = 0; digit < kDigits; ++digit) {
    uint32_t* next = counts[digit];
    if (count == 0 || next[digit_of(from[0], digit)] == count) continue;
    uint32_t begin = 0;
    for (int value = 0; value < kValues; ++value) begin += std::exchange(next[value], begin);
    for (int64_t k = 0; k < count; ++k) to[next[digit_of(from[k], digit)]++] = from[k];
    std::swap(from, to);
  }
  if (from != entries) std::copy(from, from + count, entries);
}

}  // namespace onnxifi::ranking

#endif  // ONNXIFI_BACKENDS_CPU_RANKING_RADIX_SORT_H_
