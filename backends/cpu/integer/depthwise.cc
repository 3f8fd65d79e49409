// SPDX-License-Identifier: Apache-2.0
//
// Depthwise: per position of the result the addresses of the taps, then a loop over vectors of
// channels with a loop over taps within. Bytes and weights are widened to 32 bits.

#include "backends/cpu/integer/depthwise.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/depthwise.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::integer {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Of one position: sums[c] = start[c] + sum over taps of taps[t][c] * weights[t][c].
template <typename Byte>
void SumTaps(const uint8_t* const* taps, int64_t tap_count, const int32_t* weights,
             int64_t weight_stride, const int32_t* start, int64_t channels, int32_t* sums) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<Byte, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto product = [&](int64_t t, int64_t c) HWY_ATTR {
    const auto* tap = reinterpret_cast<const Byte*>(taps[t]);
    return hn::Mul(hn::PromoteTo(d, hn::LoadU(bytes, tap + c)),
                   hn::LoadU(d, weights + t * weight_stride + c));
  };
  int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) {
    auto s0 = hn::LoadU(d, start + c), s1 = hn::LoadU(d, start + c + lanes);
    auto s2 = hn::LoadU(d, start + c + 2 * lanes), s3 = hn::LoadU(d, start + c + 3 * lanes);
    for (int64_t t = 0; t < tap_count; ++t) {
      s0 = hn::Add(s0, product(t, c));
      s1 = hn::Add(s1, product(t, c + lanes));
      s2 = hn::Add(s2, product(t, c + 2 * lanes));
      s3 = hn::Add(s3, product(t, c + 3 * lanes));
    }
    hn::StoreU(s0, d, sums + c);
    hn::StoreU(s1, d, sums + c + lanes);
    hn::StoreU(s2, d, sums + c + 2 * lanes);
    hn::StoreU(s3, d, sums + c + 3 * lanes);
  }
  for (; c + lanes <= channels; c += lanes) {
    auto sum = hn::LoadU(d, start + c);
    for (int64_t t = 0; t < tap_count; ++t) sum = hn::Add(sum, product(t, c));
    hn::StoreU(sum, d, sums + c);
  }
  for (; c < channels; ++c) {
    auto sum = static_cast<uint32_t>(start[c]);
    for (int64_t t = 0; t < tap_count; ++t) {
      const auto byte = static_cast<int32_t>(reinterpret_cast<const Byte*>(taps[t])[c]);
      sum += static_cast<uint32_t>(byte) * static_cast<uint32_t>(weights[t * weight_stride + c]);
    }
    sums[c] = static_cast<int32_t>(sum);
  }
}

void SumSignedTaps(const uint8_t* const* taps, int64_t tap_count, const int32_t* weights,
                   int64_t weight_stride, const int32_t* start, int64_t channels, int32_t* sums) {
  SumTaps<int8_t>(taps, tap_count, weights, weight_stride, start, channels, sums);
}
void SumUnsignedTaps(const uint8_t* const* taps, int64_t tap_count, const int32_t* weights,
                     int64_t weight_stride, const int32_t* start, int64_t channels, int32_t* sums) {
  SumTaps<uint8_t>(taps, tap_count, weights, weight_stride, start, channels, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::integer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::integer {
namespace {

HWY_EXPORT(SumSignedTaps);
HWY_EXPORT(SumUnsignedTaps);

}  // namespace

int64_t TapCount(const WindowAxes& axes) {
  int64_t taps = 1;
  for (const WindowAxis& axis : axes.spatial) taps *= axis.kernel;
  return taps;
}

void UnpackTaps(const Columns& kernels, const uint8_t* b, bool is_signed, int32_t* weights) {
  const int64_t channels = kernels.columns;
  int32_t* sums = weights + kernels.depth() * channels;
  std::fill_n(sums, channels, 0);
  for (const int64_t offset : kernels.depth_offsets) {
    for (int64_t c = 0; c < channels; ++c) {
      const uint8_t byte = b[offset + c * kernels.column_stride];
      weights[c] = is_signed ? static_cast<int32_t>(static_cast<int8_t>(byte)) : byte;
      sums[c] += weights[c];
    }
    weights += channels;
  }
}

void SubtractFromTaps(const int32_t* weights, int64_t taps, int64_t channels,
                      const int32_t* subtracted, int32_t* result) {
  for (int64_t t = 0; t <= taps; ++t, weights += channels, result += channels) {
    // The last row is of sums.
    const auto times = static_cast<int32_t>(t == taps ? taps : 1);
    for (int64_t c = 0; c < channels; ++c) result[c] = weights[c] - times * subtracted[c];
  }
}

void SumWindows(const DepthwiseImage& image, const int32_t* start, int64_t first_row, int64_t rows,
                int64_t first_channel, int64_t channels, int32_t* sums) {
  const auto& [z, y, x] = image.axes.spatial;
  const auto sum_taps =
      image.is_signed ? HWY_DYNAMIC_DISPATCH(SumSignedTaps) : HWY_DYNAMIC_DISPATCH(SumUnsignedTaps);
  int64_t at[kSpatialAxes] = {first_row / (x.out * y.out), first_row / x.out % y.out,
                              first_row % x.out};
  const uint8_t* taps[kMaxTaps];
  for (int64_t row = 0; row < rows; ++row, sums += channels) {
    int64_t count = 0;
    for (int64_t tap_z = 0; tap_z < z.kernel; ++tap_z) {
      const int64_t in_z = at[0] * z.stride + tap_z * z.dilation - z.pad;
      for (int64_t tap_y = 0; tap_y < y.kernel; ++tap_y) {
        const int64_t in_y = at[1] * y.stride + tap_y * y.dilation - y.pad;
        const bool is_inside = in_z >= 0 && in_z < z.in && in_y >= 0 && in_y < y.in;
        const uint8_t* image_row =
            is_inside ? image.data + in_z * z.image_stride + in_y * y.image_stride : nullptr;
        for (int64_t tap_x = 0; tap_x < x.kernel; ++tap_x) {
          const int64_t in_x = at[2] * x.stride + tap_x * x.dilation - x.pad;
          const bool is_pixel = image_row != nullptr && in_x >= 0 && in_x < x.in;
          taps[count++] =
              (is_pixel ? image_row + in_x * x.image_stride : image.fill) + first_channel;
        }
      }
    }
    sum_taps(taps, count, image.weights + first_channel, image.axes.channels, start + first_channel,
             channels, sums);
    for (int axis = kSpatialAxes; axis-- > 0;) {
      if (++at[axis] < image.axes.spatial[static_cast<size_t>(axis)].out) break;
      at[axis] = 0;
    }
  }
}

}  // namespace onnxifi::integer
#endif
