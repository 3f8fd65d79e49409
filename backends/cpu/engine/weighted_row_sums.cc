// SPDX-License-Identifier: Apache-2.0
//
// SumWeightedRow: sums of four vectors at a time stay in registers while all taps are added.
// SumShortRows: many rows, one after the other. FindExtremesOfRows: as SumWeightedRow.

#include <algorithm>

#include "backends/cpu/engine/weighted_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/weighted_row_sums.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/arithmetic-inl.h"
#include "backends/cpu/engine/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Loads and stores whole vectors.
struct WholeVectors {
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const float* from) const {
    return hn::LoadU(d, from);
  }
  template <class D>
  HWY_INLINE void Store(hn::Vec<D> vector, D d, float* to) const {
    hn::StoreU(vector, d, to);
  }
};

// Touches the first lanes alone.
struct FirstLanes {
  int64_t count;

  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const float* from) const {
    return LoadFirst(d, from, count);
  }
  template <class D>
  HWY_INLINE void Store(hn::Vec<D> vector, D d, float* to) const {
    StoreFirst(d, vector, to, count);
  }
};

// Of `kVectors` vectors of the row.
template <int kVectors, class D, class Lanes, class V = hn::Vec<D>>
HWY_INLINE void SumLanes(D d, Lanes which, const float* source, std::span<const RowTap> taps,
                         float first, float* HWY_RESTRICT sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kVectors];
  V waiting[kMaxParts][kVectors];
  int waiting_count = 0;
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Set(d, first);
  for (const RowTap& tap : taps) {
    const float* row = source + tap.place;
    const V weight = hn::Set(d, tap.weight);
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::Add(sum[v], hn::Mul(weight, which.Load(d, row + v * lanes)));
    }
    if (HWY_LIKELY(tap.merges < 0)) continue;
    for (int32_t merge = 0; merge < tap.merges; ++merge) {
      --waiting_count;
      for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(waiting[waiting_count][v], sum[v]);
    }
    if (&tap == &taps.back()) break;
    for (int v = 0; v < kVectors; ++v) {
      waiting[waiting_count][v] = sum[v];
      sum[v] = hn::Zero(d);
    }
    ++waiting_count;
  }
  for (int v = 0; v < kVectors; ++v) which.Store(sum[v], d, sums + v * lanes);
}

void SumRow(const float* source, std::span<const RowTap> taps, float first, int64_t length,
            float* HWY_RESTRICT sums) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t at = 0;
  for (; at + 4 * lanes <= length; at += 4 * lanes) {
    SumLanes<4>(d, WholeVectors(), source + at, taps, first, sums + at);
  }
  for (; at + lanes <= length; at += lanes) {
    SumLanes<1>(d, WholeVectors(), source + at, taps, first, sums + at);
  }
  if constexpr (kHasMaskedMemory<float>) {
    if (at < length) SumLanes<1>(d, FirstLanes{length - at}, source + at, taps, first, sums + at);
  } else {
    const hn::CappedTag<float, 1> d1;
    for (; at < length; ++at) SumLanes<1>(d1, WholeVectors(), source + at, taps, first, sums + at);
  }
}

// Of `kVectors` vectors.
template <int kVectors, class Operation, class D, class Lanes>
HWY_INLINE void FindExtremes(D d, Lanes which, const float* source, std::span<const RowTap> taps,
                             float begin, float* HWY_RESTRICT extremes) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> extreme[kVectors];
  for (int v = 0; v < kVectors; ++v) extreme[v] = hn::Set(d, begin);
  for (const RowTap& tap : taps) {
    const bool is_nowhere = tap.place == kNowhere;
    const auto weight = hn::Set(d, tap.weight);
    for (int v = 0; v < kVectors; ++v) {
      const auto element = is_nowhere ? hn::Zero(d) : which.Load(d, source + tap.place + v * lanes);
      extreme[v] = Operation()(d, extreme[v], hn::Mul(weight, element));
    }
  }
  for (int v = 0; v < kVectors; ++v) which.Store(extreme[v], d, extremes + v * lanes);
}

template <class Operation>
void FindExtremesOf(const float* source, std::span<const RowTap> taps, float begin, int64_t length,
                    float* HWY_RESTRICT extremes) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t at = 0;
  for (; at + 4 * lanes <= length; at += 4 * lanes) {
    FindExtremes<4, Operation>(d, WholeVectors(), source + at, taps, begin, extremes + at);
  }
  for (; at + lanes <= length; at += lanes) {
    FindExtremes<1, Operation>(d, WholeVectors(), source + at, taps, begin, extremes + at);
  }
  if constexpr (kHasMaskedMemory<float>) {
    if (at == length) return;
    FindExtremes<1, Operation>(d, FirstLanes{length - at}, source + at, taps, begin, extremes + at);
  } else {
    const hn::CappedTag<float, 1> d1;
    for (; at < length; ++at) {
      FindExtremes<1, Operation>(d1, WholeVectors(), source + at, taps, begin, extremes + at);
    }
  }
}

void FindMaxima(const float* source, std::span<const RowTap> taps, float begin, int64_t length,
                float* HWY_RESTRICT extremes) {
  FindExtremesOf<FloatMaximum>(source, taps, begin, length, extremes);
}
void FindMinima(const float* source, std::span<const RowTap> taps, float begin, int64_t length,
                float* HWY_RESTRICT extremes) {
  FindExtremesOf<FloatMinimum>(source, taps, begin, length, extremes);
}

// What rows have of a tap.
struct TapOfRow {
  const ShortRows& rows;
  int64_t row;

  float Weight(size_t tap) const {
    return rows.weights[tap] == nullptr ? 1.0F : rows.weights[tap][row];
  }
  int64_t Place(size_t tap) const {
    return rows.places[static_cast<int64_t>(tap) * rows.place_stride + row];
  }
};

// `kVectors` vectors of a row from `at` on.
template <int kVectors, class D, class Lanes>
HWY_INLINE void SumPieceOfRow(D d, Lanes which, const float* source, const TapOfRow& of,
                              float first, int64_t at, float* HWY_RESTRICT sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Set(d, first);
  for (size_t tap = 0; tap < of.rows.weights.size(); ++tap) {
    const int64_t place = of.Place(tap);
    if (HWY_UNLIKELY(place == kNowhere)) continue;
    const auto weight = hn::Set(d, of.Weight(tap));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::Add(sum[v], hn::Mul(weight, which.Load(d, source + place + at + v * lanes)));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    which.Store(sum[v], d, sums + of.rows.targets[of.row] + at + v * lanes);
  }
}

// With what the sum of a row begins.
HWY_INLINE float FirstOf(const TapOfRow& of) {
  float first = of.rows.first;
  for (size_t tap = 0; tap < of.rows.weights.size(); ++tap) {
    // Zero times what is no finite number is none; it makes the whole row so.
    if (HWY_UNLIKELY(of.Place(tap) == kNowhere)) first += of.Weight(tap) * 0.0F;
  }
  return first;
}

// Of up to four lanes.
void SumFewLanes(const float* source, const ShortRows& rows, float* HWY_RESTRICT sums) {
  const hn::CappedTag<float, 4> d;
  for (int64_t row = 0; row < rows.rows; ++row) {
    const TapOfRow of = {rows, row};
    SumPieceOfRow<1>(d, FirstLanes{rows.length}, source, of, FirstOf(of), 0, sums);
  }
}

void SumRows(const float* source, const ShortRows& rows, float* HWY_RESTRICT sums) {
  if (kHasMaskedMemory<float> && rows.length <= 4) return SumFewLanes(source, rows, sums);
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < rows.rows; ++row) {
    const TapOfRow of = {rows, row};
    const float first = FirstOf(of);
    int64_t at = 0;
    const auto sum_all = [&]<int kVectors>() HWY_ATTR {
      for (; at + kVectors * lanes <= rows.length; at += kVectors * lanes) {
        SumPieceOfRow<kVectors>(d, WholeVectors(), source, of, first, at, sums);
      }
    };
    sum_all.template operator()<4>();
    sum_all.template operator()<2>();
    sum_all.template operator()<1>();
    if constexpr (kHasMaskedMemory<float>) {
      if (at == rows.length) continue;
      SumPieceOfRow<1>(d, FirstLanes{rows.length - at}, source, of, first, at, sums);
    } else {
      const hn::CappedTag<float, 1> d1;
      for (; at < rows.length; ++at) {
        SumPieceOfRow<1>(d1, WholeVectors(), source, of, first, at, sums);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(SumRow);
HWY_EXPORT(SumRows);
HWY_EXPORT(FindMaxima);
HWY_EXPORT(FindMinima);

void SumWeightedRow(const float* source, std::span<const RowTap> taps, float first, int64_t length,
                    float* sums) {
  HWY_DYNAMIC_DISPATCH(SumRow)(source, taps, first, length, sums);
}

void FindExtremesOfRows(program::ExprOp operation, const float* source,
                        std::span<const RowTap> taps, float begin, int64_t length,
                        float* extremes) {
  if (operation == program::ExprOp::kMax) {
    HWY_DYNAMIC_DISPATCH(FindMaxima)(source, taps, begin, length, extremes);
  } else {
    HWY_DYNAMIC_DISPATCH(FindMinima)(source, taps, begin, length, extremes);
  }
}

void SumShortRows(const float* source, const ShortRows& rows, float* sums) {
  HWY_DYNAMIC_DISPATCH(SumRows)(source, rows, sums);
}

}  // namespace onnxifi::engine
#endif
