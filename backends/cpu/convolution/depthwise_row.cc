// SPDX-License-Identifier: Apache-2.0
//
// DepthwiseRow: of kernels that are common some pixels of the result at a time, so that taps, and
// what their windows share, are loaded once; with others pixel by pixel.

#include "backends/cpu/convolution/depthwise_row.h"

#include <algorithm>
#include <type_traits>

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
using gemm::HWY_NAMESPACE::LoadFirst;
using gemm::HWY_NAMESPACE::StoreFirst;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

constexpr int kMaxPixels = 4;

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

// The epilogue of the sums of neighbours.
template <int pixels, bool is_whole>
HWY_INLINE void StoreSums(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue,
                          const PixelBlock& block, Vec (&sum)[pixels]) {
  const Tag d;
  if (epilogue.addend != nullptr) {
#pragma GCC unroll 4
    for (int p = 0; p < pixels; ++p) {
      const float* addend = epilogue.AddendOf(block.x + p) + block.channel;
      sum[p] = hn::Add(sum[p], LoadChannels<is_whole>(addend, block.count));
    }
  }
  Activate(d, epilogue, [&](auto activated) HWY_ATTR {
#pragma GCC unroll 4
    for (int p = 0; p < pixels; ++p) sum[p] = activated(sum[p]);
  });
  float* result = out_row.result + block.x * out_row.result_stride + block.channel;
#pragma GCC unroll 4
  for (int p = 0; p < pixels; ++p) {
    if constexpr (is_whole) {
      hn::StoreU(sum[p], d, result + p * out_row.result_stride);
    } else {
      StoreFirst(d, sum[p], result + p * out_row.result_stride, block.count);
    }
  }
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
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kStored = 4;
  static_assert(pixels % kStored == 0);
#pragma GCC unroll 2
  for (int p = 0; p < pixels; p += kStored) {
    Vec some[kStored] = {sum[p], sum[p + 1], sum[p + 2], sum[p + 3]};
    StoreSums<kStored, true>(out_row, epilogue, {x + p, channel, lanes}, some);
  }
}

// Neighbours whose windows overlap: what several of them see is loaded once. What is not inside the
// image is 0.
template <int taps, int pixels, int stride, bool is_inside, bool is_whole>
HWY_INLINE void ConvolveTogether(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue,
                                 const PixelBlock& block) {
  constexpr int kSeen = (pixels - 1) * stride + taps;
  const Tag d;
  const int64_t begin = block.x * stride - out_row.pad_left;
  const Vec start = epilogue.bias == nullptr
                        ? hn::Zero(d)
                        : LoadChannels<is_whole>(epilogue.bias + block.channel, block.count);
  Vec sum[pixels];
#pragma GCC unroll 4
  for (int p = 0; p < pixels; ++p) sum[p] = start;
  for (const DepthwiseRow::Row& row : out_row.rows) {
    const float* in = row.pixels + begin * out_row.pixel_stride + block.channel;
    Vec seen[kSeen];
#pragma GCC unroll 16
    for (int k = 0; k < kSeen; ++k) {
      seen[k] = is_inside || (begin + k >= 0 && begin + k < out_row.in_width)
                    ? LoadChannels<is_whole>(in + k * out_row.pixel_stride, block.count)
                    : hn::Zero(d);
    }
#pragma GCC unroll 7
    for (int k = 0; k < taps; ++k) {
      const Vec tap = hn::LoadU(d, row.taps + k * out_row.tap_stride + block.channel);
#pragma GCC unroll 4
      for (int p = 0; p < pixels; ++p) sum[p] = hn::MulAdd(seen[p * stride + k], tap, sum[p]);
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

template <int taps, int pixels, int stride>
HWY_INLINE void ConvolvePixels(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue,
                               int64_t x) {
  const int64_t begin = x * stride - out_row.pad_left;
  const bool is_inside = begin >= 0 && begin + (pixels - 1) * stride + taps <= out_row.in_width;
  ForChannels(out_row, x, [&](const PixelBlock& block, auto is_whole) HWY_ATTR {
    if (is_inside) {
      ConvolveTogether<taps, pixels, stride, true, is_whole.value>(out_row, epilogue, block);
    } else {
      ConvolveTogether<taps, pixels, stride, false, is_whole.value>(out_row, epilogue, block);
    }
  });
}

template <int taps, int stride>
void ConvolveRowOf(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue) {
  int64_t x = 0;
  for (; x + kMaxPixels <= out_row.out_width; x += kMaxPixels) {
    ConvolvePixels<taps, kMaxPixels, stride>(out_row, epilogue, x);
  }
  switch (out_row.out_width - x) {
    case 1:
      return ConvolvePixels<taps, 1, stride>(out_row, epilogue, x);
    case 2:
      return ConvolvePixels<taps, 2, stride>(out_row, epilogue, x);
    case 3:
      return ConvolvePixels<taps, 3, stride>(out_row, epilogue, x);
    default:
      return;
  }
}

// a / b, rounded up, for b > 0.
int64_t DivideUp(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

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

// All of the epilogue but a function.
void ConvolveSums(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue) {
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
    const auto tap_at = [&](int64_t in_x) {
      return std::clamp<int64_t>(DivideUp(in_x - begin, out_row.dilation), 0, out_row.kernel_width);
    };
    const int64_t first_tap = tap_at(0);
    const int64_t end_tap = tap_at(out_row.in_width);
    ForChannels(out_row, x, [&](const PixelBlock& block, auto is_whole) HWY_ATTR {
      ConvolveAny<is_whole.value>(out_row, epilogue, block, first_tap, end_tap);
    });
  }
}

void Convolve(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue) {
  ConvolveSums(out_row, epilogue);
  if (epilogue.IsFunction()) {
    gemm::HWY_NAMESPACE::ApplyFunction(Tag(), epilogue, out_row.result, out_row.result_stride,
                                       out_row.out_width, out_row.channels);
  }
}

int64_t VectorLanes() { return static_cast<int64_t>(hn::Lanes(Tag())); }

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::convolution
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::convolution {

HWY_EXPORT(Convolve);
HWY_EXPORT(VectorLanes);

int64_t ChannelsAtOnce() { return HWY_DYNAMIC_DISPATCH(VectorLanes)(); }

void ConvolveRow(const DepthwiseRow& out_row, const gemm::Epilogue& epilogue) {
  HWY_DYNAMIC_DISPATCH(Convolve)(out_row, epilogue);
}

}  // namespace onnxifi::convolution
#endif
