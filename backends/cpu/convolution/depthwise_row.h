// SPDX-License-Identifier: Apache-2.0
//
// DepthwiseRow: one row of a convolution in which every channel has a kernel of its own, in
// vector code for the processor at hand. Vectors run over channels, which lie next to each other.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_ROW_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_ROW_H_

#include <cstdint>
#include <span>

#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::convolution {

// The lanes of a vector: how many channels are computed together at least.
int64_t ChannelsAtOnce();

struct DepthwiseRow {
  // A row of the windows that lies in the image: its pixel 0, and its taps.
  struct Row {
    const float* pixels;
    const float* taps;
  };
  std::span<const Row> rows;  // top down
  int64_t tap_stride;         // from tap to tap, in floats: whole vectors
  int64_t pixel_stride;       // of the input, in floats
  int64_t in_width;
  int64_t kernel_width, stride, dilation;
  int64_t pad_left;  // negative where the row begins within the image
  int64_t channels;
  float* result;
  int64_t result_stride;  // from pixel to pixel
  int64_t out_width;
};

// Whether a row of such a kernel is computed at the speed of the multiply-adds.
bool HasFastRow(int64_t kernel_width, int64_t stride, int64_t dilation);

// Each result is the epilogue of the bias and the taps in order, by fused multiply-adds where the
// processor has them. The epilogue's addend is that of the row, its stride from pixel to pixel.
void ConvolveRow(const DepthwiseRow& row, const gemm::Epilogue& epilogue);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_DEPTHWISE_ROW_H_
