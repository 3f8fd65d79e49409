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

#include "backends/cpu/ranking/keys.h"
#include "backends/cpu/ranking/radix_sort.h"

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

inline uint64_t KeyOf(NarrowEntry entry) { return entry >> 32; }
inline uint64_t KeyOf(const WideEntry& entry) { return entry.first; }

// The keys of a row's elements: the lowest come first.
template <typename Bits>
struct RankedRow {
  const Bits* keys;
  int64_t length;
};

// Very few are kept in order while the row is searched for keys below the last of them. `entries`
// has room for `found`, which is at least 1 and at most the row's length.
template <typename Entry, typename Bits>
void InsertInOrder(const RankedRow<Bits>& row, int64_t found, Entry* entries) {
  int64_t count = 0;
  auto insert = [&](int64_t position) {
    const Entry entry = MakeEntry<Entry>(row.keys[position], position);
    int64_t at = count < found ? count++ : found - 1;
    for (; at > 0 && entry < entries[at - 1]; --at) entries[at] = entries[at - 1];
    entries[at] = entry;
  };
  for (int64_t k = 0; k < found; ++k) insert(k);
  for (int64_t k = found; true; ++k) {
    // An equal one that comes later is no better.
    k = FindBelow(row.keys, k, row.length, row.keys[PositionOf(entries[found - 1])]);
    if (k == row.length) return;
    insert(k);
  }
}

// Of few, only those before the last of what was found so far come into question. `entries` has
// room for the row, as below; `found` is at least 1 and at most the row's length. Returns how many
// are left.
template <typename Entry, typename Bits>
int64_t CollectFew(const RankedRow<Bits>& row, int64_t found, Entry* entries) {
  const int64_t room = std::min(row.length, std::max<int64_t>(2 * found, found + 64));
  int64_t count = 0;
  for (; count < room; ++count) entries[count] = MakeEntry<Entry>(row.keys[count], count);
  for (int64_t k = room; true; ++k) {
    if (count == room) {
      std::nth_element(entries, entries + found - 1, entries + count);
      count = found;
    }
    const Bits bound = row.keys[PositionOf(entries[found - 1])];
    // An equal one that comes later is no better.
    k = FindBelow(row.keys, k, row.length, bound);
    if (k == row.length) return count;
    entries[count++] = MakeEntry<Entry>(row.keys[k], k);
  }
}

// Equal elements that come last, such as masked ones, are put behind the others, in their order.
// Returns how many others there are.
template <typename Entry, typename Bits>
int64_t CollectAll(const RankedRow<Bits>& row, Entry* entries) {
  Bits last = 0;
  for (int64_t k = 0; k < row.length; ++k) last = std::max(last, row.keys[k]);
  int64_t others = 0;
  for (int64_t k = 0; k < row.length; ++k) {
    if (row.keys[k] != last) entries[others++] = MakeEntry<Entry>(row.keys[k], k);
  }
  int64_t end = others;
  for (int64_t k = 0; k < row.length; ++k) {
    if (row.keys[k] == last) entries[end++] = MakeEntry<Entry>(last, k);
  }
  return others;
}

// Whether `found` of `length` entries are few enough to leave most of the others alone.
inline bool AreFew(int64_t found, int64_t length) { return found <= length / 8; }

// Leaves the `found` first of the row's entries at the begin of `entries`, in order. `spare` has
// room for the row, too, unless they are few.
template <typename Entry, typename Bits>
void FindFirst(const RankedRow<Bits>& row, int64_t found, Entry* entries, Entry* spare) {
  constexpr int64_t kVeryFew = 24;
  if (found <= kVeryFew) return InsertInOrder(row, found, entries);
  const bool is_few = AreFew(found, row.length);
  const int64_t count = is_few ? CollectFew(row, found, entries) : CollectAll(row, entries);
  if (!is_few && count >= kMinRadixSorted && count <= kMaxRadixSorted) {
    // Entries are in the order of their positions, in which those of equal keys stay.
    return RadixSort<Bits>(entries, count, spare, [](const Entry& entry) { return KeyOf(entry); });
  }
  if (count > found) std::nth_element(entries, entries + found - 1, entries + count);
  std::sort(entries, entries + std::min(found, count));
}

}  // namespace onnxifi::ranking

#endif  // ONNXIFI_BACKENDS_CPU_RANKING_FIRST_ENTRIES_H_
