// SPDX-License-Identifier: Apache-2.0
//
// Image: tensors [N, C, y, x] in memory whose channels lie next to each other.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_IMAGE_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_IMAGE_H_

#include <cstdint>

#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::convolution {

// Distances between images, rows and pixels, in floats. A slice of the channels of a wider tensor
// has pixels further apart than its channels need.
struct PixelStrides {
  int64_t image = 0;
  int64_t row = 0;
  int64_t pixel = 0;

  int64_t At(int64_t n, int64_t y, int64_t x) const { return n * image + y * row + x * pixel; }
};

// What a convolution reads and writes in one run. `addend` (null for none) is added to the result.
struct Images {
  const float* source;
  PixelStrides source_strides;
  float* result;
  PixelStrides result_strides;
  const float* addend;
  PixelStrides addend_strides;
};

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_IMAGE_H_
