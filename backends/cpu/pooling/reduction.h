// SPDX-License-Identifier: Apache-2.0
//
// Reduction: maximum or average of what windows see, with a vector of channels at a time.

#ifndef ONNXIFI_BACKENDS_CPU_POOLING_REDUCTION_H_
#define ONNXIFI_BACKENDS_CPU_POOLING_REDUCTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/core/tensor/element_type.h"
#include "backends/cpu/pooling/taps.h"

namespace onnxifi::pooling {

inline constexpr int kSpatialAxes = 3;

// The windows of one image. Fewer spatial axes than three are the last of them.
struct Windows {
  enum class Kind : uint8_t { kMaximum, kAverage };
  Kind kind = Kind::kMaximum;
  // Or float64, or of a kMaximum one of bytes or bfloat16.
  tensor::ElementType type = tensor::ElementType::kFloat32;
  bool counts_padding = false;
  std::array<std::vector<Taps>, kSpatialAxes> taps;    // by output coordinate
  std::array<int64_t, kSpatialAxes> strides = {};      // of the source, in elements
  std::array<int64_t, kSpatialAxes> tap_strides = {};  // from one tap to the next
};

// Some outputs of an image: a block of pixels and as many channels of each.
struct Block {
  std::array<int64_t, kSpatialAxes> begin = {};
  std::array<int64_t, kSpatialAxes> extents = {1, 1, 1};
  int64_t channels = 0;
  std::array<int64_t, kSpatialAxes> strides = {};  // of the result, in elements
};

// `source` is the block's first channel at the image's first pixel, `result` at the block's first
// pixel. Channels lie side by side.
//   kMaximum: the first of equals; NaN wins over everything; -inf, or the least byte, of nothing.
//   kAverage: the sum in float64, divided by what the window counts; 0 of nothing.
void ReduceWindows(const Windows& windows, const Block& block, const std::byte* source,
                   std::byte* result);

}  // namespace onnxifi::pooling

#endif  // ONNXIFI_BACKENDS_CPU_POOLING_REDUCTION_H_
