// SPDX-License-Identifier: Apache-2.0
//
// Depthwise: per position of the result the addresses of the taps, then a loop over vectors of
// channels with a loop over taps within, two at a time: where there is an instruction that adds up
// two products of 16-bit numbers, it does. Where one adds up four products of bytes, windows are
// walked along rows of the image: four neighbouring pixels of a channel are a lane. Of kernels 3, 5
// or 7 pixels wide each such quad is made once, and all windows that see it have weights of their
// own, shifted to where their pixels are in it. Of others, the quads of every pixel are stored.

#include "backends/cpu/integer/depthwise.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/integer/byte_factors.h"
#include "backends/cpu/processor/processor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/depthwise.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::integer {

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_DEPTHWISE_ROWS_
#define ONNXIFI_BACKENDS_CPU_INTEGER_DEPTHWISE_ROWS_
constexpr int kMaxWalkedRows = 32;

// Results of neighbouring windows along one row of the image.
struct WalkedRow {
  // Per row of the kernel: the pixel at 0 of its row of the image, and how far pixels lie apart.
  const uint8_t* rows[kMaxWalkedRows];
  int64_t pixel_strides[kMaxWalkedRows];
  int64_t row_count;
  const uint8_t* fill;  // what is beside a row
  int64_t in;           // pixels of a row
  int64_t begin;        // of the first window
  int64_t count;        // of windows
  int64_t dilation;     // pixels between neighbours in a window
  uint8_t flip;         // of the bytes of the image
  const int32_t* quads;
  int64_t quad_stride;
  const int32_t* start;
  const int32_t* weight_sums;
  int64_t channels;
  int32_t* sums;
  int64_t sum_stride;
};

// Quads that a window reaches over, from the one it begins in on.
constexpr int64_t ReachOf(int64_t kernel, int64_t stride) {
  return ((kQuad / stride - 1) * stride + kernel - 1) / kQuad + 1;
}

// Whether window `window` of those that begin in a quad of pixels, `stride` apart, meets that quad,
// or the one so many behind it.
constexpr bool MeetsQuad(int64_t kernel, int64_t stride, int64_t window, int64_t behind) {
  const int64_t first_tap = kQuad * behind - window * stride;
  return first_tap + kQuad > 0 && first_tap < kernel;
}

// The same of a kernel of any rows, of at most kMaxWideKernel pixels, that reaches along `stride`.
constexpr int64_t kMaxWideKernel = 64;
struct WideRow {
  const uint8_t* const* rows;
  const int64_t* pixel_strides;
  int64_t row_count;
  int64_t row_quads;
  int64_t stride;
  WalkedRow row;  // all but its rows
};

#endif

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

#if HWY_TARGET == HWY_AVX3

HWY_INLINE void AddProducts(__m512i unsigned_bytes, __m512i signed_bytes, __m512i& sum) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
}

// Pixels of at most 16 channels along a row of the image.
struct PixelRow {
  const uint8_t* first;  // at 0
  const uint8_t* fill;
  int64_t stride;    // between pixels
  int64_t in;        // pixels
  int64_t dilation;  // between neighbours in a window, pixels
  __mmask16 mask;    // of the channels
};

// Four neighbouring pixels of a window: a channel is a lane. `is_whole`: 16 channels.
template <bool is_whole>
HWY_INLINE __m512i LoadQuad(const PixelRow& row, int64_t pixel) {
  const auto load = [&](const uint8_t* at) HWY_ATTR {
    if constexpr (is_whole) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    } else {
      return _mm_maskz_loadu_epi8(row.mask, at);
    }
  };
  const auto join = [&](const uint8_t* a, const uint8_t* b, const uint8_t* c,
                        const uint8_t* d) HWY_ATTR {
    __m512i pixels = _mm512_inserti32x4(_mm512_castsi128_si512(load(a)), load(b), 1);
    pixels = _mm512_inserti32x4(pixels, load(c), 2);
    return _mm512_inserti32x4(pixels, load(d), 3);
  };
  __m512i pixels;
  if (HWY_LIKELY(pixel >= 0 && pixel + (kQuad - 1) * row.dilation < row.in)) {
    const int64_t step = row.stride * row.dilation;
    const uint8_t* const at = row.first + pixel * row.stride;
    const uint8_t* const third = at + 2 * step;
    pixels = join(at, at + step, third, third + step);
  } else {
    const auto find = [&](int64_t there) {
      return there >= 0 && there < row.in ? row.first + there * row.stride : row.fill;
    };
    pixels = join(find(pixel), find(pixel + row.dilation), find(pixel + 2 * row.dilation),
                  find(pixel + 3 * row.dilation));
  }
  // Four channels of all pixels side by side, then the pixels of each.
  const __m512i fours = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const __m512i turned =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(fours, pixels), turned);
}

// At most 16 channels of the windows of some quads of pixels, of which the first `count` are
// stored.
template <int kernel, int stride, int quads, bool is_whole>
HWY_NOINLINE void WalkQuads(const WalkedRow& row, int64_t channel, __mmask16 mask, __m512i start,
                            int64_t first, int64_t count) {
  constexpr int kWindows = kQuad / stride;  // that begin in a quad
  constexpr int kReach = ReachOf(kernel, stride);
  __m512i sums[quads][kWindows];
#pragma GCC unroll 4
  for (int q = 0; q < quads; ++q) {
#pragma GCC unroll 4
    for (int w = 0; w < kWindows; ++w) sums[q][w] = start;
  }
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(row.flip));
  const int32_t* weights = row.quads + channel;
  const int64_t begin = row.begin + first * stride * row.dilation;
  for (int64_t k = 0; k < row.row_count; ++k) {
    const PixelRow from = {row.rows[k] + channel, row.fill + channel,
                           row.pixel_strides[k],  row.in,
                           row.dilation,          mask};
    __m512i pixels[quads + kReach - 1];
#pragma GCC unroll 6
    for (int q = 0; q < quads + kReach - 1; ++q) {
      pixels[q] =
          _mm512_xor_si512(LoadQuad<is_whole>(from, begin + q * kQuad * row.dilation), flip);
    }
#pragma GCC unroll 4
    for (int w = 0; w < kWindows; ++w) {
#pragma GCC unroll 3
      for (int behind = 0; behind < kReach; ++behind) {
        if (!MeetsQuad(kernel, stride, w, behind)) continue;
        const __m512i weight = _mm512_maskz_loadu_epi32(mask, weights);
        weights += row.quad_stride;
#pragma GCC unroll 4
        for (int q = 0; q < quads; ++q) AddProducts(pixels[q + behind], weight, sums[q][w]);
      }
    }
  }
  int32_t* to = row.sums + channel + first * row.sum_stride;
#pragma GCC unroll 4
  for (int q = 0; q < quads; ++q) {
#pragma GCC unroll 4
    for (int w = 0; w < kWindows; ++w, to += row.sum_stride) {
      if (q * kWindows + w < count) _mm512_mask_storeu_epi32(to, mask, sums[q][w]);
    }
  }
}

template <int kernel, int stride, bool is_whole>
void WalkSome(const WalkedRow& row, int64_t channel, __mmask16 mask, __m512i start) {
  constexpr int64_t kWindows = kQuad / stride;
  for (int64_t window = 0; window < row.count;) {
    const int64_t left = row.count - window;
    const int64_t quads = std::min<int64_t>(4, (left + kWindows - 1) / kWindows);
    const auto walk = quads == 4   ? WalkQuads<kernel, stride, 4, is_whole>
                      : quads == 3 ? WalkQuads<kernel, stride, 3, is_whole>
                      : quads == 2 ? WalkQuads<kernel, stride, 2, is_whole>
                                   : WalkQuads<kernel, stride, 1, is_whole>;
    walk(row, channel, mask, start, window, left);
    window += quads * kWindows;
  }
}

template <int kernel, int stride>
void WalkNeighbours(const WalkedRow& row) {
  for (int64_t channel = 0; channel < row.channels; channel += 16) {
    const auto mask =
        static_cast<__mmask16>((uint32_t{1} << std::min<int64_t>(16, row.channels - channel)) - 1);
    __m512i start = _mm512_maskz_loadu_epi32(mask, row.start + channel);
    // A byte that is flipped is one of 128 more.
    if (row.flip != 0) {
      const __m512i sums = _mm512_maskz_loadu_epi32(mask, row.weight_sums + channel);
      start = _mm512_sub_epi32(start, _mm512_slli_epi32(sums, 7));
    }
    const auto walk =
        mask == 0xFFFF ? WalkSome<kernel, stride, true> : WalkSome<kernel, stride, false>;
    walk(row, channel, mask, start);
  }
}

// Windows of which each sees pixels of the next have as many windows between them as pixels lie
// apart.
template <int kernel, int stride>
void WalkRow(const WalkedRow& row) {
  WalkedRow some = row;
  for (int64_t first = 0; first < std::min(row.dilation, row.count); ++first) {
    some.begin = row.begin + first;
    some.count = (row.count - first + row.dilation - 1) / row.dilation;
    some.sums = row.sums + first * row.sum_stride;
    some.sum_stride = row.sum_stride * row.dilation;
    WalkNeighbours<kernel, stride>(some);
  }
}

// Windows whose sums are in registers together.
constexpr int64_t kWideWindows = 8;
// Fours of pixels that are stored together.
constexpr int64_t kMaxStored = 512;

// At most 16 channels of all windows, of some rows of the kernel; the first rows begin the sums.
void AddWideRows(const WideRow& wide, int64_t channel, int64_t first_window, int64_t count,
                 int64_t first_row, int64_t rows) {
  const WalkedRow& row = wide.row;
  const auto mask =
      static_cast<__mmask16>((uint32_t{1} << std::min<int64_t>(16, row.channels - channel)) - 1);
  const auto load = [&](const int32_t* from)
                        HWY_ATTR { return _mm512_maskz_loadu_epi32(mask, from + channel); };
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i to_top = _mm512_or_si512(_mm512_slli_epi32(lane, 24), _mm512_set1_epi32(0x808080));
  const __m512i flip = _mm512_set1_epi32(static_cast<int32_t>(uint32_t{row.flip} << 24));
  const int64_t padded = (count + kWideWindows - 1) / kWideWindows * kWideWindows;
  const int64_t stored = (padded - 1) * wide.stride + 4 * (wide.row_quads - 1) + 1;
  alignas(64) __m512i fours[kMaxStored];
  const int64_t begin = row.begin + first_window * wide.stride;
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* const pixels = wide.rows[first_row + r];
    const int64_t pixel_stride = wide.pixel_strides[first_row + r];
    __m512i four = _mm512_setzero_si512();
    for (int64_t k = 0; k < stored + 3; ++k) {
      const int64_t pixel = begin + k;
      const bool is_inside = pixel >= 0 && pixel < row.in;
      const uint8_t* at = is_inside ? pixels + pixel * pixel_stride : row.fill;
      const __m128i bytes = _mm_maskz_loadu_epi8(mask, at + channel);
      const __m512i top = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), to_top);
      four = _mm512_ternarylogic_epi32(_mm512_srli_epi32(four, 8), top, flip, 0x56);
      if (k >= 3) fours[r * stored + k - 3] = four;
    }
  }
  __m512i start = load(row.start);
  if (row.flip != 0) start = _mm512_sub_epi32(start, _mm512_slli_epi32(load(row.weight_sums), 7));
  int32_t* sums = row.sums + channel + first_window * row.sum_stride;
  for (int64_t window = 0; window < count; window += kWideWindows) {
    const int64_t left = std::min(kWideWindows, count - window);
    __m512i sum[kWideWindows];
#pragma GCC unroll 8
    for (int64_t k = 0; k < kWideWindows; ++k) {
      sum[k] = start;
      if (first_row > 0 && k < left) {
        sum[k] = _mm512_maskz_loadu_epi32(mask, sums + (window + k) * row.sum_stride);
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      const int32_t* weight = row.quads + (first_row + r) * wide.row_quads * row.quad_stride;
      const __m512i* of_window = fours + r * stored + window * wide.stride;
      for (int64_t q = 0; q < wide.row_quads; ++q, weight += row.quad_stride, of_window += 4) {
        const __m512i weights = load(weight);
#pragma GCC unroll 8
        for (int64_t k = 0; k < kWideWindows; ++k) {
          AddProducts(of_window[k * wide.stride], weights, sum[k]);
        }
      }
    }
#pragma GCC unroll 8
    for (int64_t k = 0; k < kWideWindows; ++k) {
      if (k >= left) break;
      _mm512_mask_storeu_epi32(sums + (window + k) * row.sum_stride, mask, sum[k]);
    }
  }
}

void WalkWide(const WideRow& wide) {
  constexpr int64_t kSomeWindows = 32;
  const int64_t in_kernel = 4 * wide.row_quads;
  const int64_t some = std::max<int64_t>(
      1,
      std::min(kSomeWindows, (kMaxStored - in_kernel) / wide.stride / kWideWindows * kWideWindows));
  for (int64_t window = 0; window < wide.row.count; window += some) {
    const int64_t count = std::min(some, wide.row.count - window);
    const int64_t padded = (count + kWideWindows - 1) / kWideWindows * kWideWindows;
    const int64_t rows =
        std::max<int64_t>(1, kMaxStored / ((padded - 1) * wide.stride + in_kernel));
    for (int64_t channel = 0; channel < wide.row.channels; channel += 16) {
      for (int64_t r = 0; r < wide.row_count; r += rows) {
        AddWideRows(wide, channel, window, count, r, std::min(rows, wide.row_count - r));
      }
    }
  }
}

bool CanWalk() { return true; }
void Walk(const WalkedRow& row, int64_t kernel, int64_t stride) {
  const auto walk = kernel == 3   ? (stride == 1 ? WalkRow<3, 1> : WalkRow<3, 2>)
                    : kernel == 5 ? (stride == 1 ? WalkRow<5, 1> : WalkRow<5, 2>)
                                  : (stride == 1 ? WalkRow<7, 1> : WalkRow<7, 2>);
  walk(row);
}

#else

void WalkWide(const WideRow& /*wide*/) {}
bool CanWalk() { return false; }
void Walk(const WalkedRow& /*row*/, int64_t /*kernel*/, int64_t /*stride*/) {}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::integer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::integer {
namespace {

HWY_EXPORT(SumSignedTaps);
HWY_EXPORT(SumUnsignedTaps);
HWY_EXPORT(CanWalk);
HWY_EXPORT(Walk);
HWY_EXPORT(WalkWide);

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

namespace {

// Kernels so narrow that the pixels of a row stay in registers.
bool IsNarrow(const WindowAxes& axes) {
  const auto& [z, y, x] = axes.spatial;
  return (x.kernel == 3 || x.kernel == 5 || x.kernel == 7) && x.stride <= 2 &&
         (x.dilation == 1 || x.stride == 1) && z.kernel * y.kernel <= kMaxWalkedRows;
}

// Others along a row of some pixels, most of which several windows see.
bool IsWide(const WindowAxes& axes) {
  const WindowAxis& x = axes.spatial[2];
  return x.dilation == 1 && x.kernel >= 3 && x.kernel <= kMaxWideKernel && 2 * x.stride <= x.kernel;
}

// Quads of weights of a row of such a kernel: those of each window that begins in a quad of pixels.
int64_t QuadsOfRow(const WindowAxis& x) {
  int64_t count = 0;
  for (int64_t window = 0; window < kQuad / x.stride; ++window) {
    for (int64_t behind = 0; behind < ReachOf(x.kernel, x.stride); ++behind) {
      count += MeetsQuad(x.kernel, x.stride, window, behind) ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

int64_t WalkedQuads(const WindowAxes& axes) {
  const auto& [z, y, x] = axes.spatial;
  if (!processor::HasByteProducts() || !HWY_DYNAMIC_DISPATCH(CanWalk)()) return 0;
  if (IsNarrow(axes)) return z.kernel * y.kernel * QuadsOfRow(x);
  return IsWide(axes) ? z.kernel * y.kernel * ((x.kernel + 3) / 4) : 0;
}

void PackWalkedQuads(const WindowAxes& axes, const Columns& kernels, const uint8_t* b,
                     int32_t* quads) {
  if (WalkedQuads(axes) == 0) return;
  const int64_t rows = axes.spatial[0].kernel * axes.spatial[1].kernel;
  const int64_t kernel = axes.spatial[2].kernel;
  if (!IsNarrow(axes)) {
    const int64_t row_quads = (kernel + 3) / 4;
    for (int64_t k = 0; k < WalkedQuads(axes); ++k) {
      for (int64_t c = 0; c < kernels.columns; ++c) {
        uint32_t quad = 0;
        for (int64_t place = 0; place < 4; ++place) {
          const int64_t tap = k % row_quads * 4 + place;
          if (tap >= kernel) break;
          const int64_t t = k / row_quads * kernel + tap;
          quad |=
              uint32_t{b[kernels.depth_offsets[static_cast<size_t>(t)] + c * kernels.column_stride]}
              << 8 * place;
        }
        *quads++ = static_cast<int32_t>(quad);
      }
    }
    return;
  }
  const WindowAxis& x = axes.spatial[2];
  for (int64_t k = 0; k < rows; ++k) {
    const int64_t reach = ReachOf(kernel, x.stride);
    for (int64_t at = 0; at < reach * (kQuad / x.stride); ++at) {
      const int64_t window = at / reach, behind = at % reach;
      if (!MeetsQuad(kernel, x.stride, window, behind)) continue;
      for (int64_t c = 0; c < kernels.columns; ++c) {
        uint32_t quad = 0;
        for (int64_t place = 0; place < kQuad; ++place) {
          const int64_t tap = kQuad * behind + place - window * x.stride;
          if (tap < 0 || tap >= kernel) continue;
          const int64_t t = k * kernel + tap;
          const int64_t offset =
              kernels.depth_offsets[static_cast<size_t>(t)] + c * kernels.column_stride;
          quad |= uint32_t{b[offset]} << 8 * place;
        }
        *quads++ = static_cast<int32_t>(quad);
      }
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

void PlaceRows(const WindowAxes& axes, const uint8_t* data, const uint8_t* fill, int64_t first_row,
               const uint8_t** pixels, int64_t* pixel_strides) {
  const auto& [z, y, x] = axes.spatial;
  const int64_t at_z = first_row / (x.out * y.out), at_y = first_row / x.out % y.out;
  for (int64_t k = 0; k < z.kernel * y.kernel; ++k) {
    const int64_t in_z = at_z * z.stride - z.pad + k / y.kernel * z.dilation;
    const int64_t in_y = at_y * y.stride - y.pad + k % y.kernel * y.dilation;
    const bool is_inside = in_z >= 0 && in_z < z.in && in_y >= 0 && in_y < y.in;
    pixels[k] = is_inside ? data + in_z * z.image_stride + in_y * y.image_stride : fill;
    pixel_strides[k] = is_inside ? x.image_stride : 0;
  }
}

namespace {

WalkedRow RowOf(const DepthwiseImage& image, const int32_t* start, int64_t first_channel,
                int64_t channels) {
  const WindowAxis& x = image.axes.spatial[2];
  WalkedRow row{};
  row.fill = image.fill + first_channel;
  row.in = x.in;
  row.dilation = x.dilation;
  row.flip = image.is_signed ? kFlip : 0;
  row.quads = image.quads + first_channel;
  row.quad_stride = image.axes.channels;
  row.start = start + first_channel;
  row.weight_sums = image.weights + PairCount(image.axes) * image.axes.channels + first_channel;
  row.channels = row.sum_stride = channels;
  return row;
}

// As SumWindows, row after row of the image.
void WalkWindows(const DepthwiseImage& image, const int32_t* start, int64_t first_row, int64_t rows,
                 int64_t first_channel, int64_t channels, int32_t* sums) {
  const auto& [z, y, x] = image.axes.spatial;
  const uint8_t* pixels[kMaxTaps];
  int64_t pixel_strides[kMaxTaps];
  WideRow wide{pixels,
               pixel_strides,
               z.kernel * y.kernel,
               (x.kernel + 3) / 4,
               x.stride,
               RowOf(image, start, first_channel, channels)};
  const bool is_narrow = IsNarrow(image.axes);
  WalkedRow& row = wide.row;
  row.row_count = wide.row_count;
  while (rows > 0) {
    const int64_t at_x = first_row % x.out;
    row.count = std::min(rows, x.out - at_x);
    row.begin = at_x * x.stride - x.pad;
    row.sums = sums;
    if (is_narrow) {
      PlaceRows(image.axes, image.data + first_channel, row.fill, first_row, row.rows,
                row.pixel_strides);
      HWY_DYNAMIC_DISPATCH(Walk)(row, x.kernel, x.stride);
    } else {
      PlaceRows(image.axes, image.data + first_channel, row.fill, first_row, pixels, pixel_strides);
      HWY_DYNAMIC_DISPATCH(WalkWide)(wide);
    }
    first_row += row.count;
    rows -= row.count;
    sums += row.count * channels;
  }
}

}  // namespace

void SumWindows(const DepthwiseImage& image, const int32_t* start, int64_t first_row, int64_t rows,
                int64_t first_channel, int64_t channels, int32_t* sums) {
  if (image.quads != nullptr) {
    return WalkWindows(image, start, first_row, rows, first_channel, channels, sums);
  }
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
