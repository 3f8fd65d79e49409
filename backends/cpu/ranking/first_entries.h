// SPDX-License-Identifier: Apache-2.0
//
// First entries: the elements of a row that come first, in order. Key and position of an element
// are one integer, so that sorting compares integers and the lower position of equal elements comes
// first by itself.

#ifndef ONNXIFI_BACKENDS_CPU_RANKING_FIRST_ENTRIES_H_
#define ONNXIFI_BACKENDS_CPU_RANKING_FIRST_ENTRIES_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "backends/cpu/ranking/sort_key.h"

namespace onnxifi::ranking {

// Ascending order is the order of the result. Narrow entries have keys of at most 32 bits and
// positions of 32 bits.
using NarrowEntry = uint64_t;
using WideEntry = std::pair<uint64_t, uint64_t>;

template <typename Entry>
Entry MakeEntry(uint64_t key, int64_t position) {
  if constexpr (std::is_same_v<Entry, WideEntry>) {
    return {key, static_cast<uint64_t>(position)};
  } else {
    return key << 32 | static_cast<uint64_t>(position);
  }
}

inline int64_t PositionOf(NarrowEntry entry) { return static_cast<int64_t>(entry & 0xFFFFFFFF); }
inline int64_t PositionOf(const WideEntry& entry) { return static_cast<int64_t>(entry.second); }

// A row, and which of its elements come first.
template <typename Bits>
struct RankedRow {
  const Bits* elements;
  int64_t length;
  KeyMaker<Bits> make;
  bool is_largest;

  Bits KeyOf(int64_t position) const {
    const Bits key = make(elements[position]);
    return is_largest ? static_cast<Bits>(~key) : key;
  }
};

// Of few, only those before the last of what was found so far come into question. `entries` has
// room for the row, as below; `found` is at least 1 and at most the row's length. Returns how many
// are left.
template <typename Entry, typename Bits>
int64_t CollectFew(const RankedRow<Bits>& row, int64_t found, Entry* entries) {
  const int64_t room = std::min(row.length, std::max<int64_t>(2 * found, found + 64));
  bool has_bound = false;
  Bits bound = 0;
  int64_t count = 0;
  for (int64_t k = 0; k < row.length; ++k) {
    const Bits key = row.KeyOf(k);
    // An equal one that comes later is no better.
    if (has_bound && key >= bound) continue;
    entries[count++] = MakeEntry<Entry>(key, k);
    if (count < room) continue;
    std::nth_element(entries, entries + found - 1, entries + count);
    count = found;
    has_bound = true;
    bound = row.KeyOf(PositionOf(entries[found - 1]));
  }
  return count;
}

// Equal elements that come last, such as masked ones, are put behind the others, in their order.
// Returns how many others there are.
template <typename Entry, typename Bits>
int64_t CollectAll(const RankedRow<Bits>& row, Entry* entries) {
  Bits last = 0;
  for (int64_t k = 0; k < row.length; ++k) last = std::max(last, row.KeyOf(k));
  int64_t others = 0;
  for (int64_t k = 0; k < row.length; ++k) {
    if (row.KeyOf(k) != last) entries[others++] = MakeEntry<Entry>(row.KeyOf(k), k);
  }
  int64_t end = others;
  for (int64_t k = 0; k < row.length; ++k) {
    if (row.KeyOf(k) == last) entries[end++] = MakeEntry<Entry>(last, k);
  }
  return others;
}

// Leaves the `found` first of the row's entries at the begin of `entries`, in order.
template <typename Entry, typename Bits>
void FindFirst(const RankedRow<Bits>& row, int64_t found, Entry* entries) {
  constexpr int64_t kFew = 8;
  const bool is_few = found <= row.length / kFew;
  const int64_t count = is_few ? CollectFew(row, found, entries) : CollectAll(row, entries);
  if (count > found) std::nth_element(entries, entries + found - 1, entries + count);
  std::sort(entries, entries + std::min(found, count));
}

}  // namespace onnxifi::ranking

#endif  // ONNXIFI_BACKENDS_CPU_RANKING_FIRST_ENTRIES_H_
