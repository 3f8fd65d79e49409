// SPDX-License-Identifier: Apache-2.0
//
// HashIndex: finds numbered things by the hash of their content. What hash-consing tables of
// expressions look nodes up in: most hold a dozen nodes and live for microseconds, so few entries
// are a list in one allocation, and only many become a table.

#ifndef ONNXIFI_BACKENDS_CORE_BASE_HASH_INDEX_H_
#define ONNXIFI_BACKENDS_CORE_BASE_HASH_INDEX_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onnxifi::base {

class HashIndex {
 public:
  static constexpr int32_t kNone = -1;

  // The first number added under this hash of which `is_same(number)` is true, or kNone.
  template <typename IsSame>
  int32_t Find(size_t hash, IsSame&& is_same) const {
    const auto tag = static_cast<uint32_t>(hash);
    if (slots_.empty()) {
      for (const Entry& entry : entries_) {
        if (entry.tag == tag && is_same(entry.number)) return entry.number;
      }
      return kNone;
    }
    for (size_t slot = tag & Mask(); slots_[slot] != kNone; slot = (slot + 1) & Mask()) {
      const Entry& entry = entries_[static_cast<size_t>(slots_[slot])];
      if (entry.tag == tag && is_same(entry.number)) return entry.number;
    }
    return kNone;
  }

  void Add(size_t hash, int32_t number) {
    if (entries_.empty()) entries_.reserve(kMaxListed);
    entries_.push_back({static_cast<uint32_t>(hash), number});
    if (entries_.size() <= kMaxListed) return;
    if (entries_.size() * 2 > slots_.size()) {
      slots_.assign(std::bit_ceil(entries_.size() * 4), kNone);
      for (size_t k = 0; k + 1 < entries_.size(); ++k) Insert(k);
    }
    Insert(entries_.size() - 1);
  }

 private:
  struct Entry {
    uint32_t tag;
    int32_t number;
  };
  static constexpr size_t kMaxListed = 16;

  size_t Mask() const { return slots_.size() - 1; }
  void Insert(size_t entry) {
    size_t slot = entries_[entry].tag & Mask();
    while (slots_[slot] != kNone) slot = (slot + 1) & Mask();
    slots_[slot] = static_cast<int32_t>(entry);
  }

  std::vector<Entry> entries_;  // in the order in which they came
  std::vector<int32_t> slots_;  // of entries, by tag; a power of two, or none while few are listed
};

}  // namespace onnxifi::base

#endif  // ONNXIFI_BACKENDS_CORE_BASE_HASH_INDEX_H_
