// SPDX-License-Identifier: Apache-2.0
//
// Windows beside loops that look every element up.

#include "backends/cpu/convolution/windows.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace onnxifi::convolution {
namespace {

int64_t Roll(std::mt19937& random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

// An image whose elements all differ, with any strides.
struct Image {
  Windows windows;
  std::vector<float> elements;
};

Image MakeImage(std::mt19937& random) {
  Image image;
  Windows& windows = image.windows;
  windows.channels = Roll(random, 1, 6);
  const bool is_planar = Roll(random, 0, 2) == 0;
  int64_t stride = is_planar ? 1 : windows.channels + (Roll(random, 0, 1) == 0 ? 0 : 3);
  windows.channel_stride = 1;
  for (size_t k = kMaxSpatialAxes; k-- > 0;) {
    WindowAxis& axis = windows.axes[k];
    if (k + 2 < kMaxSpatialAxes && Roll(random, 0, 1) == 0) continue;
    axis.kernel = Roll(random, 1, 4);
    axis.stride = Roll(random, 1, 3);
    axis.dilation = Roll(random, 1, 2);
    axis.pad = Roll(random, 0, 3);
    axis.in = Roll(random, 1, 7);
    const int64_t reach = (axis.kernel - 1) * axis.dilation + 1;
    axis.out = std::max<int64_t>(1, (axis.in + 2 * axis.pad - reach) / axis.stride + 1);
    axis.source_stride = stride;
    stride *= axis.in;
  }
  if (is_planar) {
    windows.channel_stride = stride;
    stride *= windows.channels;
    windows.has_channels_first = Roll(random, 0, 1) == 0;
  }
  image.elements.resize(static_cast<size_t>(stride));
  for (size_t k = 0; k < image.elements.size(); ++k) image.elements[k] = static_cast<float>(k + 1);
  return image;
}

float Expected(const Image& image, int64_t window, int64_t depth) {
  const Windows& windows = image.windows;
  const int64_t taps = windows.depth() / windows.channels;
  const bool is_first = windows.has_channels_first;
  int64_t tap = is_first ? depth % taps : depth / windows.channels;
  int64_t offset = (is_first ? depth / taps : depth % windows.channels) * windows.channel_stride;
  for (size_t k = kMaxSpatialAxes; k-- > 0;) {
    const WindowAxis& axis = windows.axes[k];
    const int64_t at =
        window % axis.out * axis.stride + tap % axis.kernel * axis.dilation - axis.pad;
    if (at < 0 || at >= axis.in) return 0;
    offset += at * axis.source_stride;
    window /= axis.out;
    tap /= axis.kernel;
  }
  return image.elements[static_cast<size_t>(offset)];
}

TEST(WindowsTest, GathersAnyRangeOfWindowsAndDepth) {
  std::mt19937 random(7);
  int64_t outside = 0;
  for (int round = 0; round < 500; ++round) {
    const Image image = MakeImage(random);
    const Windows& windows = image.windows;
    const int64_t first = Roll(random, 0, windows.count() - 1);
    const int64_t count = Roll(random, 1, windows.count() - first);
    const int64_t begin = Roll(random, 0, windows.depth() - 1);
    const int64_t end = Roll(random, begin + 1, windows.depth());
    std::vector<float> rows(static_cast<size_t>(count * (end - begin)) + 1, -1.0F);
    windows.Gather(image.elements.data(), first, count, begin, end, rows.data());
    for (int64_t window = 0; window < count; ++window) {
      for (int64_t depth = begin; depth < end; ++depth) {
        const float expected = Expected(image, first + window, depth);
        outside += expected == 0 ? 1 : 0;
        ASSERT_EQ(rows[static_cast<size_t>(window * (end - begin) + depth - begin)], expected)
            << "round " << round << ", window " << first + window << ", depth " << depth;
      }
    }
    ASSERT_EQ(rows.back(), -1.0F) << "round " << round;
  }
  EXPECT_GT(outside, 1000);
}

}  // namespace
}  // namespace onnxifi::convolution
