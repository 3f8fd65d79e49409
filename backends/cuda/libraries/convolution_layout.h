// SPDX-License-Identifier: Apache-2.0
//
// ConvolutionLayout: a bound convolution in cuDNN's terms: tensors [N, C, spatial] with at least
// two spatial axes, all packed, with their channels outermost or innermost.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_LAYOUT_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cuda/libraries/contract_form.h"
#include "backends/cuda/libraries/rules.h"

namespace onnxifi::cuda {

struct ConvolutionLayout {
  // Strides and offset count elements.
  struct Tensor {
    std::vector<int64_t> extents, strides;
    int64_t offset = 0;
  };
  ProductExtents extents;
  bool is_channels_last = false;
  Tensor image, weights, output;
  // Where there is one: an element per channel; one that lies as the output does.
  Tensor bias, addend;
  // Weights lie in memory with their channels as the image's are not: they have to be copied.
  bool are_weights_reordered = false;
  std::vector<int64_t> strides, dilations, pads_before, pads_after;
};

// UNSUPPORTED_OPERATOR with what keeps the step, a convolution, from being such a one. Without an
// output it writes sums, as SumsOf lays them out.
base::Result<ConvolutionLayout> LayOutConvolution(const device::BoundStep& step,
                                                  const LibraryResults& results);

// Packed strides of a tensor of these extents.
std::vector<int64_t> PackedStrides(const std::vector<int64_t>& extents, bool is_channels_last);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_LAYOUT_H_
