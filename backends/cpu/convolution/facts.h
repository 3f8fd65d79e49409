// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of this folder ask of a step before it has numbers: a two-dimensional float32
// convolution with constant weights, whose result has its channels innermost.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_FACTS_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_FACTS_H_

#include <cstdint>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/gemm/step_epilogue.h"

namespace onnxifi::convolution {

// Everything about the step that is a number whatever is bound later. Extents in elements.
struct Convolution {
  int64_t batch;  // images; 1 where their number is known late
  int64_t group;
  int64_t in_channels, out_channels;  // of all groups
  int64_t in_height, in_width;
  int64_t out_height, out_width;
  int64_t kernel_height, kernel_width;
  int64_t stride_y, stride_x;
  int64_t dilation_y, dilation_x;
  int64_t pad_top, pad_left;
  gemm::StepEpilogue epilogue;
  // Whether pixels of the input, the result or the summand are further apart than their channels
  // need: slices of wider tensors, which oneDNN reads and writes by way of reorders only.
  bool has_gaps;
};

// A convolution, and how its input can be walked: UNSUPPORTED_SHAPE with the reason where it
// cannot.
struct ConvolutionQuery {
  Convolution convolution{};
  base::Status nhwc_status;  // channel by channel within a pixel, in memory of the program's own
  base::Status nchw_status;  // along x within a channel, in anybody's memory
  base::Status axes_status;  // whether the step itself has two spatial axes, not the last one alone
  bool has_fast_algorithms = true;  // as in program::Program
  int reads = 0;                    // of the step
};

// UNSUPPORTED_* with what is in the way of all kernels.
base::Result<ConvolutionQuery> QueryConvolution(const device::Facts& facts);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_FACTS_H_
