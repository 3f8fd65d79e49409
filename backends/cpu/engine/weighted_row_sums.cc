// SPDX-License-Identifier: Apache-2.0
//
// SumWeightedRow: sums of four vectors at a time stay in registers while all taps are added.
// SumShortRows: one after the other, in a vector as narrow as they are. FindExtremesOfRows: as
// SumWeightedRow.

#include <algorithm>

#include "backends/cpu/engine/weighted_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/weighted_row_sums.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/arithmetic-inl.h"

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

#undef ONNXIFI_ROW_SUMS_HAVE_MASKS
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
#define ONNXIFI_ROW_SUMS_HAVE_MASKS 1
// Touches the first lanes alone, as instructions with masks do on these targets.
struct FirstLanes {
  int64_t count;

  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const float* from) const {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
  }
  template <class D>
  HWY_INLINE void Store(hn::Vec<D> vector, D d, float* to) const {
    hn::BlendedStore(vector, hn::FirstN(d, static_cast<size_t>(count)), d, to);
  }
};
#else
#define ONNXIFI_ROW_SUMS_HAVE_MASKS 0
#endif

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
#if ONNXIFI_ROW_SUMS_HAVE_MASKS
  if (at < length) SumLanes<1>(d, FirstLanes{length - at}, source + at, taps, first, sums + at);
#else
  const hn::CappedTag<float, 1> d1;
  for (; at < length; ++at) SumLanes<1>(d1, WholeVectors(), source + at, taps, first, sums + at);
#endif
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
    for (int v = 0; v < kVectors; ++v) {
      const auto element = is_nowhere ? hn::Zero(d) : which.Load(d, source + tap.place + v * lanes);
      extreme[v] = Operation()(d, extreme[v], element);
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
#if ONNXIFI_ROW_SUMS_HAVE_MASKS
  if (at == length) return;
  FindExtremes<1, Operation>(d, FirstLanes{length - at}, source + at, taps, begin, extremes + at);
#else
  const hn::CappedTag<float, 1> d1;
  for (; at < length; ++at) {
    FindExtremes<1, Operation>(d1, WholeVectors(), source + at, taps, begin, extremes + at);
  }
#endif
}

void FindMaxima(const float* source, std::span<const RowTap> taps, float begin, int64_t length,
                float* HWY_RESTRICT extremes) {
  FindExtremesOf<FloatMaximum>(source, taps, begin, length, extremes);
}
void FindMinima(const float* source, std::span<const RowTap> taps, float begin, int64_t length,
                float* HWY_RESTRICT extremes) {
  FindExtremesOf<FloatMinimum>(source, taps, begin, length, extremes);
}

// Lanes [at, at + count) of all rows; `which` loads and stores so many.
template <class D, class Lanes>
HWY_INLINE void SumPiecesOfRows(D d, Lanes which, const float* source, const ShortRows& rows,
                                int64_t at, float* HWY_RESTRICT sums) {
  const size_t taps = rows.weights.size();
  for (int64_t row = 0; row < rows.rows; ++row) {
    const auto weight_of = [&](size_t tap) {
      return rows.weights[tap] == nullptr ? 1.0f : rows.weights[tap][row];
    };
    const auto place_of = [&](size_t tap) {
      return rows.places[static_cast<int64_t>(tap) * rows.place_stride + row];
    };
    float first = rows.first;
    for (size_t tap = 0; tap < taps; ++tap) {
      // Zero times what is no finite number is none; it makes the whole row so.
      if (HWY_UNLIKELY(place_of(tap) == kNowhere)) first += weight_of(tap) * 0.0f;
    }
    auto sum = hn::Set(d, first);
    for (size_t tap = 0; tap < taps; ++tap) {
      const int64_t place = place_of(tap);
      if (HWY_UNLIKELY(place == kNowhere)) continue;
      sum = hn::Add(sum, hn::Mul(hn::Set(d, weight_of(tap)), which.Load(d, source + place + at)));
    }
    which.Store(sum, d, sums + rows.targets[row] + at);
  }
}

void SumRows(const float* source, const ShortRows& rows, float* HWY_RESTRICT sums) {
#if ONNXIFI_ROW_SUMS_HAVE_MASKS
  const hn::CappedTag<float, 4> d4;
  if (rows.length <= 4) {
    return SumPiecesOfRows(d4, FirstLanes{rows.length}, source, rows, 0, sums);
  }
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t at = 0; at < rows.length; at += lanes) {
    SumPiecesOfRows(d, FirstLanes{std::min(lanes, rows.length - at)}, source, rows, at, sums);
  }
#else
  const hn::CappedTag<float, 1> d1;
  for (int64_t at = 0; at < rows.length; ++at) {
    SumPiecesOfRows(d1, WholeVectors(), source, rows, at, sums);
  }
#endif
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
