// SPDX-License-Identifier: Apache-2.0
//
// Winograd weights: kernels of 3 x 3 in the domain of frequencies, packed for products.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_WEIGHTS_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_WEIGHTS_H_

#include <cstdint>

#include "backends/core/device/parallel.h"
#include "backends/cpu/convolution/weights.h"
#include "backends/cpu/convolution/winograd_tile.h"

namespace onnxifi::convolution {

// Transformed weights: how many floats they take, and all of them from `weights`, in float64,
// rounded once.
int64_t TransformedSize(Tile tile, int64_t in_channels, int64_t out_channels);
void TransformWeights(Tile tile, const Weights& weights, int64_t in_channels, int64_t out_channels,
                      device::Parallel& parallel, float* transformed);

// Rows [first, first + in_channels) of products of `whole_depth`: the weights of one tap along the
// frames of a kernel along three axes. `transformed` has TransformedSize(tile, whole_depth, ...).
struct PackedRows {
  int64_t first, whole_depth;
};
void TransformWeights(Tile tile, const Weights& weights, int64_t in_channels, int64_t out_channels,
                      const PackedRows& rows, device::Parallel& parallel, float* transformed);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_WEIGHTS_H_
