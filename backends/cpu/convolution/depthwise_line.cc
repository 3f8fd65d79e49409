// SPDX-License-Identifier: Apache-2.0
//
// DepthwiseLine: of kernels that are common some pixels of the result at a time, so that taps, and
// what their windows share, are loaded once; with others pixel by pixel.

#include "backends/cpu/convolution/depthwise_line.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/convolution/depthwise_line.cc"
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

constexpr int kMostPixels = 4;

// Neighbours of the result, from pixel `x` on, in channels [channel, channel + count).
struct Place {
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
HWY_INLINE void StoreSums(const DepthwiseLine& line, const gemm::Epilogue& epilogue,
                          const Place& place, Vec (&sum)[pixels]) {
  const Tag d;
  if (epilogue.addend != nullptr) {
#pragma GCC unroll 4
    for (int p = 0; p < pixels; ++p) {
      const float* addend = epilogue.AddendOf(place.x + p) + place.channel;
      sum[p] = hn::Add(sum[p], LoadChannels<is_whole>(addend, place.count));
    }
  }
  Activate(d, epilogue, [&](auto activated) HWY_ATTR {
#pragma GCC unroll 4
    for (int p = 0; p < pixels; ++p) sum[p] = activated(sum[p]);
  });
  float* result = line.result + place.x * line.result_stride + place.channel;
#pragma GCC unroll 4
  for (int p = 0; p < pixels; ++p) {
    if constexpr (is_whole) {
      hn::StoreU(sum[p], d, result + p * line.result_stride);
    } else {
      StoreFirst(d, sum[p], result + p * line.result_stride, place.count);
    }
  }
}

// One pixel, with the taps [first_tap, end_tap) of each row.
template <bool is_whole>
HWY_INLINE void ConvolveAny(const DepthwiseLine& line, const gemm::Epilogue& epilogue,
                            const Place& place, int64_t first_tap, int64_t end_tap) {
  const Tag d;
  const int64_t begin = place.x * line.stride - line.pad_left;
  Vec sum[1] = {epilogue.bias == nullptr
                    ? hn::Zero(d)
                    : LoadChannels<is_whole>(epilogue.bias + place.channel, place.count)};
  for (const DepthwiseLine::Row& row : line.rows) {
    for (int64_t k = first_tap; k < end_tap; ++k) {
      const float* in =
          row.pixels + (begin + k * line.dilation) * line.pixel_stride + place.channel;
      const Vec tap = hn::LoadU(d, row.taps + k * line.tap_stride + place.channel);
      sum[0] = hn::MulAdd(LoadChannels<is_whole>(in, place.count), tap, sum[0]);
    }
  }
  StoreSums<1, is_whole>(line, epilogue, place, sum);
}

// Neighbours whose windows overlap: what several of them see is loaded once. What is not inside the
// image is 0.
template <int taps, int pixels, int stride, bool is_inside, bool is_whole>
HWY_INLINE void ConvolveTogether(const DepthwiseLine& line, const gemm::Epilogue& epilogue,
                                 const Place& place) {
  constexpr int kSeen = (pixels - 1) * stride + taps;
  const Tag d;
  const int64_t begin = place.x * stride - line.pad_left;
  const Vec start = epilogue.bias == nullptr
                        ? hn::Zero(d)
                        : LoadChannels<is_whole>(epilogue.bias + place.channel, place.count);
  Vec sum[pixels];
#pragma GCC unroll 4
  for (int p = 0; p < pixels; ++p) sum[p] = start;
  for (const DepthwiseLine::Row& row : line.rows) {
    const float* in = row.pixels + begin * line.pixel_stride + place.channel;
    Vec seen[kSeen];
#pragma GCC unroll 16
    for (int k = 0; k < kSeen; ++k) {
      seen[k] = is_inside || (begin + k >= 0 && begin + k < line.in_width)
                    ? LoadChannels<is_whole>(in + k * line.pixel_stride, place.count)
                    : hn::Zero(d);
    }
#pragma GCC unroll 7
    for (int k = 0; k < taps; ++k) {
      const Vec tap = hn::LoadU(d, row.taps + k * line.tap_stride + place.channel);
#pragma GCC unroll 4
      for (int p = 0; p < pixels; ++p) sum[p] = hn::MulAdd(seen[p * stride + k], tap, sum[p]);
    }
  }
  StoreSums<pixels, is_whole>(line, epilogue, place, sum);
}

// All channels, vector by vector: body(place, whether the vector is whole, as a constant).
template <class Body>
HWY_INLINE void ForChannels(const DepthwiseLine& line, int64_t x, Body body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  int64_t channel = 0;
  for (; channel + lanes <= line.channels; channel += lanes) {
    body(Place{x, channel, lanes}, std::true_type());
  }
  if (channel < line.channels) {
    body(Place{x, channel, line.channels - channel}, std::false_type());
  }
}

template <int taps, int pixels, int stride>
HWY_INLINE void ConvolvePixels(const DepthwiseLine& line, const gemm::Epilogue& epilogue,
                               int64_t x) {
  const int64_t begin = x * stride - line.pad_left;
  const bool is_inside = begin >= 0 && begin + (pixels - 1) * stride + taps <= line.in_width;
  ForChannels(line, x, [&](const Place& place, auto is_whole) HWY_ATTR {
    if (is_inside) {
      ConvolveTogether<taps, pixels, stride, true, is_whole.value>(line, epilogue, place);
    } else {
      ConvolveTogether<taps, pixels, stride, false, is_whole.value>(line, epilogue, place);
    }
  });
}

template <int taps, int stride>
void ConvolveLineOf(const DepthwiseLine& line, const gemm::Epilogue& epilogue) {
  int64_t x = 0;
  for (; x + kMostPixels <= line.out_width; x += kMostPixels) {
    ConvolvePixels<taps, kMostPixels, stride>(line, epilogue, x);
  }
  switch (line.out_width - x) {
    case 1:
      return ConvolvePixels<taps, 1, stride>(line, epilogue, x);
    case 2:
      return ConvolvePixels<taps, 2, stride>(line, epilogue, x);
    case 3:
      return ConvolvePixels<taps, 3, stride>(line, epilogue, x);
    default:
      return;
  }
}

// a / b, rounded up, for b > 0.
int64_t DivideUp(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

// The function for the kernels that are common; null for others.
using LineFunction = void (*)(const DepthwiseLine&, const gemm::Epilogue&);
LineFunction FunctionOf(const DepthwiseLine& line) {
  if (line.dilation != 1 || line.stride > 2) return nullptr;
  const bool has_stride = line.stride == 2;
  switch (line.kernel_width) {
    case 3:
      return has_stride ? ConvolveLineOf<3, 2> : ConvolveLineOf<3, 1>;
    case 5:
      return has_stride ? ConvolveLineOf<5, 2> : ConvolveLineOf<5, 1>;
    case 7:
      return has_stride ? ConvolveLineOf<7, 2> : ConvolveLineOf<7, 1>;
    default:
      return nullptr;
  }
}

// All of the epilogue but a function.
void ConvolveSums(const DepthwiseLine& line, const gemm::Epilogue& epilogue) {
  if (const LineFunction function = FunctionOf(line)) return function(line, epilogue);
  for (int64_t x = 0; x < line.out_width; ++x) {
    const int64_t begin = x * line.stride - line.pad_left;
    const auto tap_at = [&](int64_t in_x) {
      return std::clamp<int64_t>(DivideUp(in_x - begin, line.dilation), 0, line.kernel_width);
    };
    const int64_t first_tap = tap_at(0);
    const int64_t end_tap = tap_at(line.in_width);
    ForChannels(line, x, [&](const Place& place, auto is_whole) HWY_ATTR {
      ConvolveAny<is_whole.value>(line, epilogue, place, first_tap, end_tap);
    });
  }
}

void Convolve(const DepthwiseLine& line, const gemm::Epilogue& epilogue) {
  ConvolveSums(line, epilogue);
  if (epilogue.IsFunction()) {
    gemm::HWY_NAMESPACE::ApplyFunction(Tag(), epilogue, line.result, line.result_stride,
                                       line.out_width, line.channels);
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

void ConvolveLine(const DepthwiseLine& line, const gemm::Epilogue& epilogue) {
  HWY_DYNAMIC_DISPATCH(Convolve)(line, epilogue);
}

}  // namespace onnxifi::convolution
#endif
