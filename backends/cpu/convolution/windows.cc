// SPDX-License-Identifier: Apache-2.0
//
// Windows: the depth is cut into runs that are copied together: channels of a pixel, or
// neighbouring pixels where nothing lies between. Run by run, windows of one row of the result that
// see all of it are copied in a loop; the others, at the image's edges, one by one.

#include "backends/cpu/convolution/windows.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/transpose/transpose.h"

namespace onnxifi::convolution {
namespace {

// The product of the kernel's extents within axis `axis`.
int64_t TapsBelow(const Windows& windows, size_t axis) {
  int64_t taps = 1;
  for (size_t inner = axis + 1; inner < kMaxSpatialAxes; ++inner)
    taps *= windows.axes[inner].kernel;
  return taps;
}

// Elements [to, to + length) of each window: those of `taps` neighbours along the last axis, from
// channel `channel` of the first of them on.
struct Run {
  int64_t plane;  // of the channel, where these are first
  int64_t tap_z, tap_y, tap_x;
  int64_t taps;
  int64_t channel;  // 0 where channels are first
  int64_t length;
  int64_t to;
};

// The first windows of a row at which position `tap` of the kernel is at `limit` or behind it.
int64_t CountBefore(const WindowAxis& axis, int64_t first, int64_t tap, int64_t limit) {
  const int64_t at = first * axis.stride - axis.pad + tap * axis.dilation;
  return at >= limit ? 0 : (limit - at + axis.stride - 1) / axis.stride;
}

// `length` elements for each of `count` windows.
template <int kLength>
void CopyFixed(const float* from, int64_t step, int64_t count, int64_t depth, float* to) {
  for (int64_t k = 0; k < count; ++k, from += step, to += depth) {
    std::memcpy(to, from, kLength * sizeof(float));
  }
}

void CopyRuns(const float* from, int64_t step, int64_t count, int64_t depth, int64_t length,
              float* to) {
  switch (length) {
    case 1:
      return CopyFixed<1>(from, step, count, depth, to);
    case 2:
      return CopyFixed<2>(from, step, count, depth, to);
    case 3:
      return CopyFixed<3>(from, step, count, depth, to);
    case 4:
      return CopyFixed<4>(from, step, count, depth, to);
    case 5:
      return CopyFixed<5>(from, step, count, depth, to);
    case 6:
      return CopyFixed<6>(from, step, count, depth, to);
    case 7:
      return CopyFixed<7>(from, step, count, depth, to);
    case 8:
      return CopyFixed<8>(from, step, count, depth, to);
    case 9:
      return CopyFixed<9>(from, step, count, depth, to);
    case 10:
      return CopyFixed<10>(from, step, count, depth, to);
    case 12:
      return CopyFixed<12>(from, step, count, depth, to);
    case 15:
      return CopyFixed<15>(from, step, count, depth, to);
    case 16:
      return CopyFixed<16>(from, step, count, depth, to);
    case 32:
      return CopyFixed<32>(from, step, count, depth, to);
    default:
      for (int64_t k = 0; k < count; ++k, from += step, to += depth) {
        std::memcpy(to, from, static_cast<size_t>(length) * sizeof(float));
      }
  }
}

void FillRuns(int64_t count, int64_t depth, int64_t length, float* to) {
  for (int64_t k = 0; k < count; ++k, to += depth) std::fill_n(to, length, 0.0F);
}

class Gatherer {
 public:
  Gatherer(const Windows& windows, int64_t first_depth, int64_t end_depth)
      : windows_(windows),
        depth_(end_depth - first_depth),
        channels_(windows.has_channels_first ? 1 : windows.channels) {
    const auto& [z, y, x] = windows.axes;
    const int64_t channels = channels_;
    has_dense_channels_ = channels == 1 || windows.channel_stride == 1;
    const bool has_dense_pixels =
        has_dense_channels_ && x.dilation == 1 && x.source_stride == channels;
    const int64_t z_taps = TapsBelow(windows, 0), y_taps = TapsBelow(windows, 1);
    const int64_t all_taps = z.kernel * z_taps;
    for (int64_t depth = first_depth; depth < end_depth;) {
      const int64_t tap = depth / channels;
      Run run = {tap / all_taps,
                 tap / z_taps % z.kernel,
                 tap / y_taps % y.kernel,
                 tap % x.kernel,
                 1,
                 depth % channels,
                 0,
                 depth - first_depth};
      // Up to the end of a row of taps, or of a pixel.
      run.length = std::min(channels - run.channel, end_depth - depth);
      if (has_dense_pixels) {
        run.length = std::min((x.kernel - run.tap_x) * channels - run.channel, end_depth - depth);
        run.taps = (run.channel + run.length + channels - 1) / channels;
      }
      depth += run.length;
      runs_.push_back(run);
    }
  }

  // Windows [first, first + count) of row (z, y) of the result.
  void GatherRow(const float* source, int64_t out_z, int64_t out_y, int64_t first, int64_t count,
                 float* rows) const {
    const auto& [z, y, x] = windows_.axes;
    for (const Run& run : runs_) {
      float* const to = rows + run.to;
      const int64_t in_z = out_z * z.stride - z.pad + run.tap_z * z.dilation;
      const int64_t in_y = out_y * y.stride - y.pad + run.tap_y * y.dilation;
      if (in_z < 0 || in_z >= z.in || in_y < 0 || in_y >= y.in) {
        FillRuns(count, depth_, run.length, to);
        continue;
      }
      const float* const row = source + run.plane * windows_.channel_stride +
                               in_z * z.source_stride + in_y * y.source_stride;
      // Windows [low, high) have the whole run in the row.
      const int64_t low = std::min(count, CountBefore(x, first, run.tap_x, 0));
      const int64_t high =
          std::clamp(CountBefore(x, first, run.tap_x + run.taps - 1, x.in), low, count);
      for (int64_t k = 0; k < low; ++k) CopyAtEdge(run, row, first + k, to + k * depth_);
      if (low < high) CopyInside(run, row, first + low, high - low, to + low * depth_);
      for (int64_t k = high; k < count; ++k) CopyAtEdge(run, row, first + k, to + k * depth_);
    }
  }

 private:
  int64_t PositionOf(const Run& run, int64_t window) const {
    const WindowAxis& x = windows_.axes[2];
    return window * x.stride - x.pad + run.tap_x * x.dilation;
  }

  void CopyInside(const Run& run, const float* row, int64_t window, int64_t count,
                  float* to) const {
    const WindowAxis& x = windows_.axes[2];
    const float* const from = row + PositionOf(run, window) * x.source_stride;
    const int64_t step = x.stride * x.source_stride;
    if (has_dense_channels_)
      return CopyRuns(from + run.channel, step, count, depth_, run.length, to);
    if (step == 1) {
      return transpose::Transpose(
          reinterpret_cast<const std::byte*>(from + run.channel * windows_.channel_stride),
          windows_.channel_stride, reinterpret_cast<std::byte*>(to), depth_, count, run.length,
          sizeof(float));
    }
    for (int64_t c = 0; c < run.length; ++c) {
      const float* const channel = from + (run.channel + c) * windows_.channel_stride;
      for (int64_t k = 0; k < count; ++k) to[k * depth_ + c] = channel[k * step];
    }
  }

  // A window that reaches into the padding.
  void CopyAtEdge(const Run& run, const float* row, int64_t window, float* to) const {
    const WindowAxis& x = windows_.axes[2];
    const int64_t position = PositionOf(run, window);
    if (run.taps == 1) {
      if (position >= 0 && position < x.in) {
        CopyInside(run, row, window, 1, to);
      } else {
        std::fill_n(to, run.length, 0.0F);
      }
      return;
    }
    const int64_t channels = channels_;
    const int64_t begin = position * channels + run.channel;
    const int64_t low = std::clamp<int64_t>(-begin, 0, run.length);
    const int64_t high = std::clamp<int64_t>(x.in * channels - begin, low, run.length);
    std::fill_n(to, low, 0.0F);
    std::copy_n(row + begin + low, high - low, to + low);
    std::fill_n(to + high, run.length - high, 0.0F);
  }

  const Windows& windows_;
  const int64_t depth_;
  const int64_t channels_;  // side by side in the depth
  bool has_dense_channels_ = false;
  std::vector<Run> runs_;
};

}  // namespace

void Windows::Gather(const float* source, int64_t first, int64_t count, int64_t first_depth,
                     int64_t end_depth, float* rows) const {
  const Gatherer gatherer(*this, first_depth, end_depth);
  const int64_t row_windows = axes[2].out;
  for (const int64_t end = first + count; first < end;) {
    const int64_t row = first / row_windows;
    const int64_t in_row = std::min(end - first, (row + 1) * row_windows - first);
    gatherer.GatherRow(source, row / axes[1].out, row % axes[1].out, first % row_windows, in_row,
                       rows);
    rows += in_row * (end_depth - first_depth);
    first += in_row;
  }
}

}  // namespace onnxifi::convolution
