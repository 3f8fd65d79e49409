// SPDX-License-Identifier: Apache-2.0
//
// Windows: the windows of a convolution along one to three axes as rows of a matrix: a row per
// position of the result, of which the depth goes over positions of the kernel first and over
// channels last, or the other way round. Gathered into memory where the products of gemm/ read
// them.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINDOWS_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINDOWS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace onnxifi::convolution {

inline constexpr size_t kMaxSpatialAxes = 3;

// Positions [begin, end) along an axis.
struct Range {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
};

// One axis; strides of the source in floats.
struct WindowAxis {
  int64_t in = 1, out = 1, kernel = 1;
  int64_t stride = 1, dilation = 1, pad = 0;
  int64_t source_stride = 0;
};

struct Windows {
  int64_t channels = 1;  // of one group
  int64_t channel_stride = 1;
  std::array<WindowAxis, kMaxSpatialAxes> axes;  // outermost first; missing ones as they are
  // Whether the depth goes over channels first, of which each has its positions one after the
  // other: of planes that is how neighbours are copied together.
  bool has_channels_first = false;

  // How many there are in an image, and the elements of each.
  int64_t count() const { return axes[0].out * axes[1].out * axes[2].out; }
  int64_t depth() const { return channels * axes[0].kernel * axes[1].kernel * axes[2].kernel; }

  // Elements [first_depth, end_depth) of windows [first, first + count) of the image at `source`,
  // one window after the other. Outside the image is 0. One thread.
  void Gather(const float* source, int64_t first, int64_t count, int64_t first_depth,
              int64_t end_depth, float* rows) const;
};

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINDOWS_H_
