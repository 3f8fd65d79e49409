// SPDX-License-Identifier: Apache-2.0
//
// RankColumns: what was found so far is kept in order, in vectors on the stack.

#include "backends/cpu/ranking/column_ranking.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/ranking/column_ranking.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "backends/cpu/ranking/keys-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::ranking {
namespace HWY_NAMESPACE {

template <typename Bits>
void Rank(const KeyMaker<Bits>& make, bool is_largest, const Columns<Bits>& columns) {
  constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(Bits);
  const hn::CappedTag<Bits, kLanes> d;
  const size_t lanes = hn::Lanes(d);
  const auto sign = hn::Set(d, make.sign);
  const auto infinity = hn::Set(d, make.infinity);
  const auto flipped = hn::Set(d, static_cast<Bits>(is_largest ? ~Bits{0} : Bits{0}));
  const auto changed = hn::Xor(sign, flipped);
  constexpr int64_t kAhead = 2;  // vectors
  HWY_ALIGN Bits keys[kMaxRankedOfColumns * kLanes];
  HWY_ALIGN Bits values[kMaxRankedOfColumns * kLanes];
  HWY_ALIGN Bits positions[kMaxRankedOfColumns * kLanes];
  const auto at = [&](int64_t rank) { return static_cast<size_t>(rank) * lanes; };

  // The last vector has columns of the one before it again, if there is one.
  HWY_ALIGN Bits part[kLanes] = {};
  const size_t present = std::min(lanes, static_cast<size_t>(columns.count));
  const int64_t last_column = columns.count - static_cast<int64_t>(present);
  for (int64_t next = 0; next < columns.count; next += static_cast<int64_t>(lanes)) {
    const int64_t column = std::min(next, last_column);
    for (int64_t k = 0; k < columns.length; ++k) {
      const Bits* from = columns.elements + k * columns.element_step + column;
      // Elements of a column lie too far apart for the processor to foresee them.
      hwy::Prefetch(from + kAhead * static_cast<int64_t>(lanes));
      if (present < lanes) {
        std::memcpy(part, from, present * sizeof(Bits));
        from = part;
      }
      auto value = hn::LoadU(d, from);
      auto key = make.is_float ? hn::Xor(MakeKeysOfFloats(d, value, sign, infinity), flipped)
                               : hn::Xor(value, changed);
      auto position = hn::Set(d, static_cast<Bits>(k));
      int64_t rank = std::min(k, columns.found - 1);
      if (k >= columns.found) {
        // The last one goes where a better one is met.
        const auto last = hn::Load(d, keys + at(rank));
        const auto is_better = hn::Lt(key, last);
        if (hn::AllFalse(d, is_better)) continue;
        key = hn::IfThenElse(is_better, key, last);
        value = hn::IfThenElse(is_better, value, hn::Load(d, values + at(rank)));
        position = hn::IfThenElse(is_better, position, hn::Load(d, positions + at(rank)));
      }
      for (; rank > 0; --rank) {
        const auto key_before = hn::Load(d, keys + at(rank - 1));
        const auto is_better = hn::Lt(key, key_before);
        if (hn::AllFalse(d, is_better)) break;
        const auto value_before = hn::Load(d, values + at(rank - 1));
        const auto position_before = hn::Load(d, positions + at(rank - 1));
        hn::Store(hn::IfThenElse(is_better, key_before, key), d, keys + at(rank));
        hn::Store(hn::IfThenElse(is_better, value_before, value), d, values + at(rank));
        hn::Store(hn::IfThenElse(is_better, position_before, position), d, positions + at(rank));
        key = hn::IfThenElse(is_better, key, key_before);
        value = hn::IfThenElse(is_better, value, value_before);
        position = hn::IfThenElse(is_better, position, position_before);
      }
      hn::Store(key, d, keys + at(rank));
      hn::Store(value, d, values + at(rank));
      hn::Store(position, d, positions + at(rank));
    }
    for (int64_t rank = 0; rank < columns.found; ++rank) {
      if (columns.values != nullptr) {
        std::copy_n(values + at(rank), present,
                    columns.values + rank * columns.value_step + column);
      }
      if (columns.positions != nullptr) {
        std::copy_n(positions + at(rank), present,
                    columns.positions + rank * columns.position_step + column);
      }
    }
  }
}

// One name per type: a table of targets has one signature.
void Rank32(const KeyMaker<uint32_t>& make, bool is_largest, const Columns<uint32_t>& columns) {
  Rank(make, is_largest, columns);
}
void Rank64(const KeyMaker<uint64_t>& make, bool is_largest, const Columns<uint64_t>& columns) {
  Rank(make, is_largest, columns);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::ranking
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::ranking {

HWY_EXPORT(Rank32);
HWY_EXPORT(Rank64);

template <>
void RankColumns(const KeyMaker<uint32_t>& make, bool is_largest,
                 const Columns<uint32_t>& columns) {
  HWY_DYNAMIC_DISPATCH(Rank32)(make, is_largest, columns);
}
template <>
void RankColumns(const KeyMaker<uint64_t>& make, bool is_largest,
                 const Columns<uint64_t>& columns) {
  HWY_DYNAMIC_DISPATCH(Rank64)(make, is_largest, columns);
}

}  // namespace onnxifi::ranking
#endif
