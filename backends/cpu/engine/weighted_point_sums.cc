// SPDX-License-Identifier: Apache-2.0
//
// SumPoints: a vector of points after the other; those that fill none one by one. Where the places
// of a vector lie near one another, as along rows that are enlarged or shrunk, it is permuted from
// one or two that are loaded whole, which takes a fraction of a gather's time.

#include <limits>

#include "backends/cpu/engine/weighted_points.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/weighted_point_sums.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Places = hn::RebindToSigned<Floats>;

// A plain loop, which the compiler makes vectors of, per target.
void NarrowHere(const int64_t* HWY_RESTRICT numbers, int64_t count, int32_t* HWY_RESTRICT narrow) {
  constexpr int64_t kLowest = std::numeric_limits<int32_t>::min();
  constexpr int64_t kHighest = std::numeric_limits<int32_t>::max();
  for (int64_t k = 0; k < count; ++k) {
    const int64_t above = numbers[k] < kLowest ? kLowest : numbers[k];
    narrow[k] = static_cast<int32_t>(above > kHighest ? kHighest : above);
  }
}

// What is there for `source` to be read from.
struct Source {
  const float* data;
  int64_t floats;
};

// How many vectors from the first of some places on have all of them; 0 where these are more than
// two, or not all there to be read for each channel. `away` are the distances from the first.
template <int channels>
HWY_INLINE int CountVectors(hn::Vec<Places> away, int64_t first, int64_t channel_step,
                            int64_t floats) {
  const hn::RebindToUnsigned<Places> d_number;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  const auto number = hn::BitCast(d_number, away);
  const auto are_below = [&](int64_t count) HWY_ATTR {
    const auto end = hn::Set(d_number, static_cast<uint32_t>(count));
    return channel_step >= 0 && first >= 0 &&
           first + (channels - 1) * channel_step + count <= floats &&
           hn::AllTrue(d_number, hn::Lt(number, end));
  };
  if (are_below(lanes)) return 1;
  return are_below(2 * lanes) ? 2 : 0;
}

template <int channels>
HWY_INLINE void SumVector(const Source& source, std::span<const PointTap> taps, int64_t at,
                          float first, float* HWY_RESTRICT sums, int64_t stride) {
  const Floats d;
  const Places d_place;
  const hn::RebindToUnsigned<Places> d_number;
  hn::Vec<Floats> sum[channels];
#pragma GCC unroll 4
  for (int c = 0; c < channels; ++c) sum[c] = hn::Set(d, first);
  for (const PointTap& tap : taps) {
    auto place = hn::Set(d_place, tap.offset);
    // As vectors: not all of them are masks of one kind.
    auto is_inside = hn::Set(d_place, -1);
    for (int k = 0; k < tap.count; ++k) {
      const PointTap::Coordinate& coordinate = tap.coordinates[k];
      const auto number = hn::LoadU(d_place, coordinate.numbers + at);
      place = hn::Add(place, hn::Mul(number, hn::Set(d_place, coordinate.step)));
      if (coordinate.extent < 0) continue;
      const auto guarded =
          hn::BitCast(d_number, hn::Add(number, hn::Set(d_place, coordinate.start)));
      const auto extent = hn::Set(d_number, static_cast<uint32_t>(coordinate.extent));
      is_inside = hn::And(is_inside,
                          hn::BitCast(d_place, hn::VecFromMask(d_number, hn::Lt(guarded, extent))));
    }
    const auto weight = tap.weights == nullptr ? hn::Set(d, 1.0F) : hn::LoadU(d, tap.weights + at);
    const int32_t nearest = hn::GetLane(place);
    // Points outside read what there is, and leave it.
    const auto away = hn::And(is_inside, hn::Sub(place, hn::Set(d_place, nearest)));
    const int vectors = CountVectors<channels>(away, nearest, tap.channel_step, source.floats);
    const auto add = [&](int c, hn::Vec<Floats> element) HWY_ATTR {
      sum[c] = hn::Add(sum[c], hn::Mul(weight, hn::And(hn::BitCast(d, is_inside), element)));
    };
    if (vectors == 0) {
#pragma GCC unroll 4
      for (int c = 0; c < channels; ++c) {
        const auto own = hn::And(is_inside, hn::Add(place, hn::Set(d_place, c * tap.channel_step)));
        add(c, hn::GatherIndex(d, source.data, own));
      }
      continue;
    }
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto end = hn::Set(d_place, static_cast<int32_t>(lanes));
    const auto is_low = hn::RebindMask(d, hn::Lt(away, end));
    const auto low =
        hn::IndicesFromVec(d, hn::And(away, hn::Set(d_place, static_cast<int32_t>(lanes) - 1)));
#pragma GCC unroll 4
    for (int c = 0; c < channels; ++c) {
      const float* const from = source.data + nearest + int64_t{c} * tap.channel_step;
      auto element = hn::TableLookupLanes(hn::LoadU(d, from), low);
      if (vectors == 2) {
        element =
            hn::IfThenElse(is_low, element, hn::TableLookupLanes(hn::LoadU(d, from + lanes), low));
      }
      add(c, element);
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < channels; ++c) hn::StoreU(sum[c], d, sums + c * stride + at);
}

// The same of one point.
void SumPoint(const float* source, std::span<const PointTap> taps, int64_t at, int64_t channels,
              float first, float* sums, int64_t stride) {
  for (int64_t c = 0; c < channels; ++c) {
    float sum = first;
    for (const PointTap& tap : taps) {
      int64_t place = tap.offset + c * tap.channel_step;
      bool is_inside = true;
      for (int k = 0; k < tap.count && is_inside; ++k) {
        const PointTap::Coordinate& coordinate = tap.coordinates[k];
        const int64_t number = coordinate.numbers[at];
        is_inside = coordinate.extent < 0 ||
                    (number >= -coordinate.start && number < coordinate.extent - coordinate.start);
        if (is_inside) place += number * coordinate.step;
      }
      const float weight = tap.weights == nullptr ? 1.0F : tap.weights[at];
      sum += weight * (is_inside ? source[place] : 0.0F);
    }
    sums[c * stride + at] = sum;
  }
}

template <int channels>
void SumPointsOf(const Source& source, std::span<const PointTap> taps, int64_t points, float first,
                 float* HWY_RESTRICT sums, int64_t stride) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t at = 0;
  for (; at + lanes <= points; at += lanes) {
    SumVector<channels>(source, taps, at, first, sums, stride);
  }
  for (; at < points; ++at) SumPoint(source.data, taps, at, channels, first, sums, stride);
}

void SumPointsHere(const float* data, int64_t floats, std::span<const PointTap> taps,
                   int64_t points, int64_t channels, float first, float* sums, int64_t stride) {
  const Source source = {data, floats};
  switch (channels) {
    case 1:
      return SumPointsOf<1>(source, taps, points, first, sums, stride);
    case 2:
      return SumPointsOf<2>(source, taps, points, first, sums, stride);
    case 3:
      return SumPointsOf<3>(source, taps, points, first, sums, stride);
    default:
      return SumPointsOf<4>(source, taps, points, first, sums, stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(NarrowHere);
HWY_EXPORT(SumPointsHere);

void NarrowNumbers(const int64_t* numbers, int64_t count, int32_t* narrow) {
  HWY_DYNAMIC_DISPATCH(NarrowHere)(numbers, count, narrow);
}

void SumPoints(const float* source, int64_t floats, std::span<const PointTap> taps, int64_t points,
               int64_t channels, float first, float* sums, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(SumPointsHere)(source, floats, taps, points, channels, first, sums, stride);
}

}  // namespace onnxifi::engine
#endif
