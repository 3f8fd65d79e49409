// SPDX-License-Identifier: Apache-2.0
//
// Depthwise: per position of the result the addresses of the taps, then a loop over vectors of
// channels with a loop over taps within, two at a time: where there is an instruction that adds up
// two products of 16-bit numbers, it does.

#include "backends/cpu/integer/depthwise.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/depthwise.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::integer {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Weights of two taps of a channel.
int32_t FirstOf(int32_t pair) { return static_cast<int16_t>(pair & 0xFFFF); }
int32_t SecondOf(int32_t pair) { return pair >> 16; }

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

// The bytes of two taps side by side, 16 bits each.
template <typename Byte>
HWY_INLINE __m256i WidenPairs(__m128i pairs) {
  return std::is_signed_v<Byte> ? _mm256_cvtepi8_epi16(pairs) : _mm256_cvtepu8_epi16(pairs);
}

// Channels from the first on, as many as whole vectors have.
template <typename Byte>
int64_t SumVectors(const uint8_t* const* taps, int64_t pairs, const int32_t* weights,
                   int64_t weight_stride, const int32_t* start, int64_t channels, int32_t* sums) {
  const auto load = [](const int32_t* from) HWY_ATTR {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  };
  const auto store = [](__m256i sum, int32_t* to)
                         HWY_ATTR { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sum); };
  const auto add = [&](__m256i sum, __m128i bytes, const int32_t* weight) HWY_ATTR {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(WidenPairs<Byte>(bytes), load(weight)));
  };
  constexpr int64_t kLanes = 8;
  int64_t c = 0;
  for (; c + 2 * kLanes <= channels; c += 2 * kLanes) {
    __m256i low = load(start + c), high = load(start + c + kLanes);
    const int32_t* weight = weights + c;
    for (int64_t p = 0; p < pairs; ++p, weight += weight_stride) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(taps[2 * p] + c));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(taps[2 * p + 1] + c));
      low = add(low, _mm_unpacklo_epi8(a, b), weight);
      high = add(high, _mm_unpackhi_epi8(a, b), weight + kLanes);
    }
    store(low, sums + c);
    store(high, sums + c + kLanes);
  }
  for (; c + kLanes <= channels; c += kLanes) {
    __m256i sum = load(start + c);
    const int32_t* weight = weights + c;
    for (int64_t p = 0; p < pairs; ++p, weight += weight_stride) {
      const __m128i a = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(taps[2 * p] + c));
      const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(taps[2 * p + 1] + c));
      sum = add(sum, _mm_unpacklo_epi8(a, b), weight);
    }
    store(sum, sums + c);
  }
  return c;
}

#else

template <typename Byte>
int64_t SumVectors(const uint8_t* const* taps, int64_t pairs, const int32_t* weights,
                   int64_t weight_stride, const int32_t* start, int64_t channels, int32_t* sums) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<Byte, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) {
    auto sum = hn::LoadU(d, start + c);
    for (int64_t p = 0; p < pairs; ++p) {
      const auto tap = [&](int64_t t) HWY_ATTR {
        return hn::PromoteTo(d, hn::LoadU(bytes, reinterpret_cast<const Byte*>(taps[t]) + c));
      };
      const auto pair = hn::LoadU(d, weights + p * weight_stride + c);
      const auto first = hn::ShiftRight<16>(hn::ShiftLeft<16>(pair));
      sum = hn::Add(sum, hn::Mul(tap(2 * p), first));
      sum = hn::Add(sum, hn::Mul(tap(2 * p + 1), hn::ShiftRight<16>(pair)));
    }
    hn::StoreU(sum, d, sums + c);
  }
  return c;
}

#endif

// Of one position: sums[c] = start[c] + sum over taps of taps[t][c] * weights[t][c].
template <typename Byte>
void SumTaps(const uint8_t* const* taps, int64_t pairs, const int32_t* weights,
             int64_t weight_stride, const int32_t* start, int64_t channels, int32_t* sums) {
  for (int64_t c = SumVectors<Byte>(taps, pairs, weights, weight_stride, start, channels, sums);
       c < channels; ++c) {
    auto sum = static_cast<uint32_t>(start[c]);
    for (int64_t p = 0; p < pairs; ++p) {
      const int32_t pair = weights[p * weight_stride + c];
      const auto tap = [&](int64_t t) {
        return static_cast<int32_t>(reinterpret_cast<const Byte*>(taps[t])[c]);
      };
      sum += static_cast<uint32_t>(tap(2 * p) * FirstOf(pair));
      sum += static_cast<uint32_t>(tap(2 * p + 1) * SecondOf(pair));
    }
    sums[c] = static_cast<int32_t>(sum);
  }
}

void SumSignedTaps(const uint8_t* const* taps, int64_t pairs, const int32_t* weights,
                   int64_t weight_stride, const int32_t* start, int64_t channels, int32_t* sums) {
  SumTaps<int8_t>(taps, pairs, weights, weight_stride, start, channels, sums);
}
void SumUnsignedTaps(const uint8_t* const* taps, int64_t pairs, const int32_t* weights,
                     int64_t weight_stride, const int32_t* start, int64_t channels, int32_t* sums) {
  SumTaps<uint8_t>(taps, pairs, weights, weight_stride, start, channels, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::integer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::integer {
namespace {

HWY_EXPORT(SumSignedTaps);
HWY_EXPORT(SumUnsignedTaps);

// Of numbers within 16 bits.
int32_t PairOf(int32_t first, int32_t second) {
  return static_cast<int32_t>(static_cast<uint32_t>(second) << 16 |
                              (static_cast<uint32_t>(first) & 0xFFFF));
}

// Whether a tap of a window that begins at `begin` lies in the image.
bool HasPixel(const WindowAxis& axis, int64_t begin, int64_t tap) {
  const int64_t at = begin + tap * axis.dilation;
  return at >= 0 && at < axis.in;
}

}  // namespace

int64_t TapCount(const WindowAxes& axes) {
  int64_t taps = 1;
  for (const WindowAxis& axis : axes.spatial) taps *= axis.kernel;
  return taps;
}

int64_t PairCount(const WindowAxes& axes) { return (TapCount(axes) + 1) / 2; }

void UnpackTaps(const Columns& kernels, const uint8_t* b, bool is_signed, int32_t* weights) {
  const int64_t channels = kernels.columns;
  const int64_t taps = kernels.depth();
  const auto weight = [&](int64_t t, int64_t c) -> int32_t {
    if (t == taps) return 0;
    const uint8_t byte =
        b[kernels.depth_offsets[static_cast<size_t>(t)] + c * kernels.column_stride];
    return is_signed ? static_cast<int32_t>(static_cast<int8_t>(byte)) : byte;
  };
  int32_t* sums = weights + (taps + 1) / 2 * channels;
  std::fill_n(sums, channels, 0);
  for (int64_t t = 0; t < taps; t += 2) {
    for (int64_t c = 0; c < channels; ++c) {
      *weights++ = PairOf(weight(t, c), weight(t + 1, c));
      sums[c] += weight(t, c) + weight(t + 1, c);
    }
  }
}

void SubtractFromTaps(const int32_t* weights, int64_t taps, int64_t channels,
                      const int32_t* subtracted, int32_t* result) {
  for (int64_t t = 0; t < taps; t += 2) {
    const bool has_second = t + 1 < taps;
    for (int64_t c = 0; c < channels; ++c, ++weights) {
      const int32_t second = (*weights >> 16) - (has_second ? subtracted[c] : 0);
      *result++ = PairOf(static_cast<int16_t>(*weights & 0xFFFF) - subtracted[c], second);
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    result[c] = weights[c] - static_cast<int32_t>(taps) * subtracted[c];
  }
}

void SumWindows(const DepthwiseImage& image, const int32_t* start, int64_t first_row, int64_t rows,
                int64_t first_channel, int64_t channels, int32_t* sums) {
  const auto& [z, y, x] = image.axes.spatial;
  const auto sum_taps =
      image.is_signed ? HWY_DYNAMIC_DISPATCH(SumSignedTaps) : HWY_DYNAMIC_DISPATCH(SumUnsignedTaps);
  int64_t at[kSpatialAxes] = {first_row / (x.out * y.out), first_row / x.out % y.out,
                              first_row % x.out};
  // From the first tap of a window to each.
  int64_t offsets[kMaxTaps];
  int64_t count = 0;
  for (int64_t tap_z = 0; tap_z < z.kernel; ++tap_z) {
    for (int64_t tap_y = 0; tap_y < y.kernel; ++tap_y) {
      for (int64_t tap_x = 0; tap_x < x.kernel; ++tap_x) {
        offsets[count++] = tap_z * z.dilation * z.image_stride +
                           tap_y * y.dilation * y.image_stride +
                           tap_x * x.dilation * x.image_stride;
      }
    }
  }
  const int64_t pairs = PairCount(image.axes);
  const uint8_t* taps[kMaxTaps + 1];
  for (int64_t row = 0; row < rows; ++row, sums += channels) {
    int64_t begin[kSpatialAxes], first = first_channel;
    bool is_inside = true;
    for (int axis = 0; axis < kSpatialAxes; ++axis) {
      const WindowAxis& along = image.axes.spatial[static_cast<size_t>(axis)];
      begin[axis] = at[axis] * along.stride - along.pad;
      first += begin[axis] * along.image_stride;
      is_inside = is_inside && begin[axis] >= 0 &&
                  begin[axis] + (along.kernel - 1) * along.dilation < along.in;
    }
    if (is_inside) {
      for (int64_t t = 0; t < count; ++t) taps[t] = image.data + (first + offsets[t]);
    } else {
      int64_t t = 0;
      for (int64_t tap_z = 0; tap_z < z.kernel; ++tap_z) {
        for (int64_t tap_y = 0; tap_y < y.kernel; ++tap_y) {
          for (int64_t tap_x = 0; tap_x < x.kernel; ++tap_x, ++t) {
            const bool is_pixel = HasPixel(z, begin[0], tap_z) && HasPixel(y, begin[1], tap_y) &&
                                  HasPixel(x, begin[2], tap_x);
            taps[t] = is_pixel ? image.data + (first + offsets[t]) : image.fill + first_channel;
          }
        }
      }
    }
    if (count % 2 != 0) taps[count] = taps[count - 1];  // whose weights are 0
    sum_taps(taps, pairs, image.weights + first_channel, image.axes.channels, start + first_channel,
             channels, sums);
    for (int axis = kSpatialAxes; axis-- > 0;) {
      if (++at[axis] < image.axes.spatial[static_cast<size_t>(axis)].out) break;
      at[axis] = 0;
    }
  }
}

}  // namespace onnxifi::integer
#endif
