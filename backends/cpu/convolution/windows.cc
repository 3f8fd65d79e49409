// SPDX-License-Identifier: Apache-2.0
//
// Windows: copies runs of channels, and runs of neighbouring pixels where nothing lies between.

#include "backends/cpu/convolution/windows.h"

#include <algorithm>
#include <cstring>

namespace onnxifi::convolution {
namespace {

// The product of the kernel's extents within axis `axis`.
int64_t TapsBelow(const Windows& windows, size_t axis) {
  int64_t taps = 1;
  for (size_t inner = axis + 1; inner < kMaxSpatialAxes; ++inner)
    taps *= windows.axes[inner].kernel;
  return taps;
}

float* CopyChannels(const float* from, int64_t stride, int64_t count, float* to) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  } else {
    for (int64_t c = 0; c < count; ++c) to[c] = from[c * stride];
  }
  return to + count;
}

// Where a window is in the source along an axis.
struct Location {
  const WindowAxis& axis;
  int64_t at;  // of the kernel's first tap

  bool Holds(int64_t tap) const { return InSource(tap) >= 0 && InSource(tap) < axis.in; }
  int64_t InSource(int64_t tap) const { return at + tap * axis.dilation; }
  int64_t Offset(int64_t tap) const { return InSource(tap) * axis.source_stride; }
};

}  // namespace

void Windows::Gather(const float* source, int64_t first, int64_t count, int64_t first_depth,
                     int64_t end_depth, float* rows) const {
  const auto& [z, y, x] = axes;
  const int64_t z_taps = TapsBelow(*this, 0);
  const int64_t y_taps = TapsBelow(*this, 1);
  const bool are_pixels_dense =
      channel_stride == 1 && x.dilation == 1 && x.source_stride == channels;
  for (int64_t window = first; window < first + count; ++window) {
    const Location at_z{z, window / (y.out * x.out) * z.stride - z.pad};
    const Location at_y{y, window / x.out % y.out * y.stride - y.pad};
    const Location at_x{x, window % x.out * x.stride - x.pad};
    for (int64_t depth = first_depth; depth < end_depth;) {
      const int64_t tap = depth / channels;
      const int64_t tap_z = tap / z_taps;
      const int64_t tap_y = tap / y_taps % y.kernel;
      const int64_t tap_x = tap % x.kernel;
      const int64_t channel = depth % channels;
      // Up to the end of a row of taps, or of a pixel.
      int64_t taps = 1;
      int64_t length = std::min(channels - channel, end_depth - depth);
      if (are_pixels_dense) {
        length = std::min((x.kernel - tap_x) * channels - channel, end_depth - depth);
        taps = (channel + length + channels - 1) / channels;
      }
      depth += length;
      if (!at_z.Holds(tap_z) || !at_y.Holds(tap_y)) {
        rows = std::fill_n(rows, length, 0.0F);
        continue;
      }
      const float* row = source + at_z.Offset(tap_z) + at_y.Offset(tap_y);
      if (taps == 1 || (at_x.Holds(tap_x) && at_x.Holds(tap_x + taps - 1))) {
        rows = at_x.Holds(tap_x) ? CopyChannels(row + at_x.Offset(tap_x) + channel * channel_stride,
                                                channel_stride, length, rows)
                                 : std::fill_n(rows, length, 0.0F);
        continue;
      }
      // A run of pixels that reaches into the padding.
      const int64_t begin = at_x.at * channels + tap_x * channels + channel;
      const int64_t low = std::clamp<int64_t>(-begin, 0, length);
      const int64_t high = std::clamp<int64_t>(x.in * channels - begin, low, length);
      rows = std::fill_n(rows, low, 0.0F);
      rows = CopyChannels(row + begin + low, 1, high - low, rows);
      rows = std::fill_n(rows, length - high, 0.0F);
    }
  }
}

}  // namespace onnxifi::convolution
