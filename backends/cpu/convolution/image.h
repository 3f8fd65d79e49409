// SPDX-License-Identifier: Apache-2.0
//
// Image: tensors [N, C, y, x] in memory.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_IMAGE_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_IMAGE_H_

#include <cstdint>

#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::convolution {

// Distances between images, channels, rows and pixels, in floats. A slice of the channels of a
// wider tensor has pixels further apart than its channels need.
struct PixelStrides {
  int64_t image = 0;
  int64_t channel = 0;
  int64_t row = 0;
  int64_t pixel = 0;

  // The first channel of a pixel.
  int64_t At(int64_t n, int64_t y, int64_t x) const { return n * image + y * row + x * pixel; }
};

// Channels innermost, without gaps.
inline PixelStrides DensePixels(int64_t height, int64_t width, int64_t channels) {
  return {height * width * channels, 1, width * channels, channels};
}

// Rows of one image, channels innermost, of which as many as `ring` are there at a time: row y
// takes the place of row y - ring.
template <typename Float>
struct ImageRows {
  Float* data;
  int64_t row;    // from one to the next, in floats
  int64_t pixel;  // from pixel to pixel
  int64_t ring;

  Float* At(int64_t y) const { return data + y % ring * row; }
};

// What a convolution reads and writes in one run. `addend` (null for none) is added to the result.
struct Images {
  const float* source;
  PixelStrides source_strides;
  float* result;
  PixelStrides result_strides;
  const float* addend;
  PixelStrides addend_strides;
  bool result_exceeds_cache = false;  // so large that it comes from memory before it is stored

  // All rows of an image.
  ImageRows<const float> SourceOf(int64_t n, int64_t height) const {
    return {source + source_strides.At(n, 0, 0), source_strides.row, source_strides.pixel, height};
  }
  ImageRows<float> ResultOf(int64_t n, int64_t height) const {
    return {result + result_strides.At(n, 0, 0), result_strides.row, result_strides.pixel, height};
  }
  // The epilogue with the addend of a row.
  gemm::Epilogue EpilogueOf(gemm::Epilogue epilogue, int64_t n, int64_t y) const {
    if (addend == nullptr) return epilogue;
    epilogue.addend = addend + addend_strides.At(n, y, 0);
    epilogue.addend_stride = addend_strides.pixel;
    return epilogue;
  }
};

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_IMAGE_H_
