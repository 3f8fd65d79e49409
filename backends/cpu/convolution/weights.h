// SPDX-License-Identifier: Apache-2.0
//
// Weights: constant weights of a convolution as the model has them.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_WEIGHTS_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_WEIGHTS_H_

#include <cstdint>

namespace onnxifi::convolution {

// W[M, C / group, y, x] with any strides, in floats.
struct Weights {
  const float* data;
  int64_t out_stride, in_stride, row_stride, column_stride;
};

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_WEIGHTS_H_
