// SPDX-License-Identifier: Apache-2.0
//
// UsedTaps: which taps of a convolution's kernel meet something else than padding, and the windows
// of a bound step that has these alone; and which steps kernels of gathered windows take.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_USED_TAPS_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_USED_TAPS_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/cpu/convolution/windows.h"

namespace onnxifi::convolution {

inline constexpr size_t kFirstSpatial = 2;  // axes of images are N, C and the spatial ones

// Along each axis the taps that some window has inside of its image: of a small image, a kernel's
// outermost ones may meet nothing but padding. At least one.
struct UsedTaps {
  tensor::Extents first, count;

  int64_t total() const { return tensor::ElementCount(count); }
  bool operator==(const UsedTaps& other) const = default;
};

// `step` is a convolution along at most kMaxSpatialAxes axes.
UsedTaps FindUsedTaps(const device::BoundStep& step);
Windows WindowsOf(const device::BoundStep& step, const UsedTaps& used);

// Numbers for weights that are packed for different taps. Threads: any.
class TapLayouts {
 public:
  int NumberOf(const UsedTaps& used);

 private:
  std::mutex mutex_;
  std::vector<UsedTaps> layouts_;
};

// Along one to three axes, of float32, with constant weights and known numbers of channels, outputs
// and taps. UNSUPPORTED_*.
base::Status CheckGathered(const device::Facts& facts);
// Whether neighbours in the order of positions are at one distance from each other.
base::Status CheckEvenPositions(const program::View& view, const program::Shape& domain,
                                std::string_view what);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_USED_TAPS_H_
