// SPDX-License-Identifier: Apache-2.0
//
// DepthwiseRow: of kernels that are common some pixels of the result at a time, so that taps, and
// what their windows share, are loaded once; with others pixel by pixel.

#include "backends/cpu/convolution/depthwise_row.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/convolution/depthwise_row.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/gemm/epilogue-inl.h"
#include "backends/cpu/gemm/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::convolution {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using gemm::HWY_NAMESPACE::Activate;
using gemm::HWY_NAMESPACE::ActivateByFunction;
using gemm::HWY_NAMESPACE::LoadFirst;
using gemm::HWY_NAMESPACE::StoreFirst;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// Whose sums, and what their windows see, have registers.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kMaxPixels = 8;
#else
constexpr int kMaxPixels = 4;
#endif

// Neighbours of the result, from pixel `x` on, in channels [channel, channel + count).
struct PixelBlock {
  int64_t x;
  int64_t channel;
  int64_t count;  // as many as a vector has, or fewer
};

template <bool is_whole>
HWY_INLINE Vec LoadChannels(const float* from, int64_t count) {
  const Tag d;
  return is_whole ? hn::LoadU(d, from) : LoadFirst(d, from, count);
}

template <int pixels, bool is_whole>
HWY_INLINE void StoreResults(const DepthwiseRow& out_row, const PixelBlock& block,
                             const Vec (&results)[pixels]) {
  const Tag d;
  float* result = out_row.result + block.x * out_row.result_stride + block.channel;
#pragma GCC unroll 8
  for (int p = 0; p < pixels; ++p, result += out_row.result_stride) {
    if constexpr (is_whole) {
      hn::StoreU(results[p], d, result);
    } else {
      StoreFirst(d, results[p], result, block.count);
    }
  }
}

// Functions of sums, which do not depend on taps and strides: not inline, they are large.
template <int pixels, bool is_whole>
HWY_NOINLINE void StoreFunctions(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue,
                                 const PixelBlock& block, const Vec (&sums)[pixels]) {
  ActivateByFunction(Tag(), epilogue, [&](auto activated) HWY_ATTR {
    Vec results[pixels];
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p) results[p] = activated(sums[p]);
    StoreResults<pixels, is_whole>(out_row, block, results);
  });
}

// The epilogue of the sums of neighbours.
template <int pixels, bool is_whole>
HWY_INLINE void StoreSums(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue,
                          const PixelBlock& block, Vec (&sum)[pixels]) {
  if (epilogue.addend != nullptr) {
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p) {
      const float* addend = epilogue.AddendOf(block.x + p) + block.channel;
      sum[p] = hn::Add(sum[p], LoadChannels<is_whole>(addend, block.count));
    }
  }
  if (epilogue.IsFunction()) {
    // Of a copy, so that the sums need no address.
    Vec sums[pixels];
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p) sums[p] = sum[p];
    return StoreFunctions<pixels, is_whole>(out_row, epilogue, block, sums);
  }
  Activate(Tag(), epilogue, [&](auto activated) HWY_ATTR {
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p) sum[p] = activated(sum[p]);
  });
  StoreResults<pixels, is_whole>(out_row, block, sum);
}

// One pixel, with the taps [first_tap, end_tap) of each row.
template <bool is_whole>
HWY_INLINE void ConvolveAny(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue,
                            const PixelBlock& block, int64_t first_tap, int64_t end_tap) {
  const Tag d;
  const int64_t begin = block.x * out_row.stride - out_row.pad_left;
  Vec sum[1] = {epilogue.bias == nullptr
                    ? hn::Zero(d)
                    : LoadChannels<is_whole>(epilogue.bias + block.channel, block.count)};
  for (const DepthwiseRow::Row& row : out_row.rows) {
    for (int64_t k = first_tap; k < end_tap; ++k) {
      const float* in =
          row.pixels + (begin + k * out_row.dilation) * out_row.pixel_stride + block.channel;
      const Vec tap = hn::LoadU(d, row.taps + k * out_row.tap_stride + block.channel);
      sum[0] = hn::MulAdd(LoadChannels<is_whole>(in, block.count), tap, sum[0]);
    }
  }
  StoreSums<1, is_whole>(out_row, epilogue, block, sum);
}

// Several neighbours that see all taps, so that sums need not wait for one another.
template <int pixels>
HWY_INLINE void ConvolveInside(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue,
                               int64_t x, int64_t channel) {
  const Tag d;
  const int64_t begin = x * out_row.stride - out_row.pad_left;
  const Vec start = epilogue.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, epilogue.bias + channel);
  Vec sum[pixels];
#pragma GCC unroll 8
  for (int p = 0; p < pixels; ++p) sum[p] = start;
  const int64_t pixel_step = out_row.stride * out_row.pixel_stride;
  for (const DepthwiseRow::Row& row : out_row.rows) {
    const float* in = row.pixels + begin * out_row.pixel_stride + channel;
    const float* taps = row.taps + channel;
    for (int64_t k = 0; k < out_row.kernel_width; ++k) {
      const Vec tap = hn::LoadU(d, taps);
#pragma GCC unroll 8
      for (int p = 0; p < pixels; ++p) {
        sum[p] = hn::MulAdd(hn::LoadU(d, in + p * pixel_step), tap, sum[p]);
      }
      in += out_row.dilation * out_row.pixel_stride;
      taps += out_row.tap_stride;
    }
  }
  StoreSums<pixels, true>(out_row, epilogue, {x, channel, static_cast<int64_t>(hn::Lanes(d))}, sum);
}

// Which of the pixels that neighbours see are in the image: all, or all but some that the first
// taps of the first neighbours and the last taps of the last ones see.
enum class Seen : uint8_t { kAll, kMiddle };

// Neighbours whose windows overlap: what several of them see is loaded once. `inside`: bit k tells
// whether pixel k of what they see is in the image; 0 stands for the others.
template <int taps, int pixels, int stride, Seen seen, bool is_whole>
HWY_INLINE void ConvolveTogether(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue,
                                 const PixelBlock& block, uint32_t inside) {
  constexpr int kSeen = (pixels - 1) * stride + taps;
  static_assert(kSeen <= 32);
  const Tag d;
  const Vec start = epilogue.bias == nullptr
                        ? hn::Zero(d)
                        : LoadChannels<is_whole>(epilogue.bias + block.channel, block.count);
  Vec sum[pixels];
#pragma GCC unroll 8
  for (int p = 0; p < pixels; ++p) sum[p] = start;
  const int64_t step = out_row.pixel_stride;
  const int64_t tap_stride = out_row.tap_stride;
  const int64_t first = (block.x * stride - out_row.pad_left) * step + block.channel;
  const DepthwiseRow::Row* const end = out_row.rows.data() + out_row.rows.size();
  for (const DepthwiseRow::Row* row = out_row.rows.data(); row != end; ++row) {
    const float* in = row->pixels + first;
    Vec pixel[kSeen];
#pragma GCC unroll 32
    for (int k = 0; k < kSeen; ++k, in += step) {
      const bool is_middle = k >= taps - 1 && k <= (pixels - 1) * stride;
      pixel[k] = seen == Seen::kAll || is_middle || (inside >> k & 1) != 0
                     ? LoadChannels<is_whole>(in, block.count)
                     : hn::Zero(d);
    }
    const float* tap_at = row->taps + block.channel;
#pragma GCC unroll 7
    for (int k = 0; k < taps; ++k, tap_at += tap_stride) {
      const Vec tap = hn::LoadU(d, tap_at);
#pragma GCC unroll 8
      for (int p = 0; p < pixels; ++p) sum[p] = hn::MulAdd(pixel[p * stride + k], tap, sum[p]);
    }
  }
  StoreSums<pixels, is_whole>(out_row, epilogue, block, sum);
}

// All channels, vector by vector: body(place, whether the vector is whole, as a constant).
template <class Body>
HWY_INLINE void ForChannels(const DepthwiseRow& out_row, int64_t x, Body body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  int64_t channel = 0;
  for (; channel + lanes <= out_row.channels; channel += lanes) {
    body(PixelBlock{x, channel, lanes}, std::true_type());
  }
  if (channel < out_row.channels) {
    body(PixelBlock{x, channel, out_row.channels - channel}, std::false_type());
  }
}

// a / b, rounded up, for b > 0.
int64_t DivideUp(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

// One pixel, whatever it sees.
void ConvolvePixel(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue, int64_t x) {
  const int64_t begin = x * out_row.stride - out_row.pad_left;
  const auto tap_at = [&](int64_t in_x) {
    return std::clamp<int64_t>(DivideUp(in_x - begin, out_row.dilation), 0, out_row.kernel_width);
  };
  const int64_t first_tap = tap_at(0);
  const int64_t end_tap = tap_at(out_row.in_width);
  ForChannels(out_row, x, [&](const PixelBlock& block, auto is_whole) HWY_ATTR {
    ConvolveAny<is_whole.value>(out_row, epilogue, block, first_tap, end_tap);
  });
}

template <int taps, int pixels, int stride>
void ConvolvePixels(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue, int64_t x) {
  constexpr int kSeen = (pixels - 1) * stride + taps;
  const int64_t begin = x * stride - out_row.pad_left;
  const int64_t before = -begin;                            // pixels of what is seen
  const int64_t behind = begin + kSeen - out_row.in_width;  // the same
  if (std::max(before, behind) >= taps) {
    for (int p = 0; p < pixels; ++p) ConvolvePixel(out_row, epilogue, x + p);
    return;
  }
  uint32_t inside = (uint64_t{1} << kSeen) - 1;
  if (before > 0) inside &= ~uint32_t{0} << before;
  if (behind > 0) inside &= ~uint32_t{0} >> (32 - kSeen + behind);
  const bool sees_all = before <= 0 && behind <= 0;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  int64_t channel = 0;
  if (sees_all) {
    for (; channel + lanes <= out_row.channels; channel += lanes) {
      ConvolveTogether<taps, pixels, stride, Seen::kAll, true>(out_row, epilogue,
                                                               {x, channel, lanes}, inside);
    }
  } else {
    for (; channel + lanes <= out_row.channels; channel += lanes) {
      ConvolveTogether<taps, pixels, stride, Seen::kMiddle, true>(out_row, epilogue,
                                                                  {x, channel, lanes}, inside);
    }
  }
  if (channel < out_row.channels) {
    ConvolveTogether<taps, pixels, stride, Seen::kMiddle, false>(
        out_row, epilogue, {x, channel, out_row.channels - channel}, inside);
  }
}

// The functions for 1 to kMaxPixels neighbours.
using PixelsFunction = void (*)(const DepthwiseRow&, const gemm::Epilogue&, int64_t x);
template <int taps, int stride, int... pixels>
constexpr auto PixelFunctions(std::integer_sequence<int, pixels...> /*all*/) {
  return std::array<PixelsFunction, sizeof...(pixels)>{ConvolvePixels<taps, pixels + 1, stride>...};
}

// The row in blocks of about as many pixels each.
template <int taps, int stride>
void ConvolveRowOf(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue) {
  static constexpr auto kFunctions =
      PixelFunctions<taps, stride>(std::make_integer_sequence<int, kMaxPixels>());
  const int64_t blocks = (out_row.out_width + kMaxPixels - 1) / kMaxPixels;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t x = out_row.out_width * block / blocks;
    const int64_t pixels = out_row.out_width * (block + 1) / blocks - x;
    kFunctions[static_cast<size_t>(pixels - 1)](out_row, epilogue, x);
  }
}

// The function for the kernels that are common; null for others.
using RowFunction = void (*)(const DepthwiseRow&, const gemm::Epilogue&);
RowFunction FunctionOf(const DepthwiseRow& out_row) {
  if (out_row.dilation != 1 || out_row.stride > 2) return nullptr;
  const bool has_stride = out_row.stride == 2;
  switch (out_row.kernel_width) {
    case 3:
      return has_stride ? ConvolveRowOf<3, 2> : ConvolveRowOf<3, 1>;
    case 5:
      return has_stride ? ConvolveRowOf<5, 2> : ConvolveRowOf<5, 1>;
    case 7:
      return has_stride ? ConvolveRowOf<7, 2> : ConvolveRowOf<7, 1>;
    default:
      return nullptr;
  }
}

void Convolve(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue) {
  if (const RowFunction function = FunctionOf(out_row)) return function(out_row, epilogue);
  constexpr int kTogether = 8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  const int64_t reach = (out_row.kernel_width - 1) * out_row.dilation;
  for (int64_t x = 0; x < out_row.out_width; ++x) {
    const int64_t begin = x * out_row.stride - out_row.pad_left;
    const int64_t last = begin + (kTogether - 1) * out_row.stride + reach;
    if (x + kTogether <= out_row.out_width && out_row.channels % lanes == 0 && begin >= 0 &&
        last < out_row.in_width) {
      for (int64_t channel = 0; channel < out_row.channels; channel += lanes) {
        ConvolveInside<kTogether>(out_row, epilogue, x, channel);
      }
      x += kTogether - 1;
      continue;
    }
    ConvolvePixel(out_row, epilogue, x);
  }
}

// Few registers leave each pixel less than its share of taps.
bool HasFastRowHere(int64_t kernel_width, int64_t stride, int64_t dilation) {
  DepthwiseRow row{};
  row.kernel_width = kernel_width;
  row.stride = stride;
  row.dilation = dilation;
  return kMaxPixels == 8 && FunctionOf(row) != nullptr;
}

int64_t VectorLanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::convolution
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::convolution {

HWY_EXPORT(Convolve);
HWY_EXPORT(HasFastRowHere);
HWY_EXPORT(VectorLanes);

int64_t ChannelsAtOnce() { return HWY_DYNAMIC_DISPATCH(VectorLanes)(); }

bool HasFastRow(int64_t kernel_width, int64_t stride, int64_t dilation) {
  return HWY_DYNAMIC_DISPATCH(HasFastRowHere)(kernel_width, stride, dilation);
}

void ConvolveRow(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue) {
  HWY_DYNAMIC_DISPATCH(Convolve)(out_row, epilogue);
}

}  // namespace onnxifi::convolution
#endif
