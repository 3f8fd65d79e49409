// SPDX-License-Identifier: Apache-2.0
//
// Winograd transforms: tiles of the input to frequencies, and products of frequencies to tiles of
// the result. After Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015),
// with the points 0, +-sqrt(1/2), +-sqrt(2), infinity, whose rounding errors are smaller than those
// of 0, +-1, +-2.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_TRANSFORM_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_TRANSFORM_H_

#include <cstdint>

#include "backends/cpu/convolution/image.h"
#include "backends/cpu/convolution/winograd_plan.h"
#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::convolution {

// Tiles [first_tile, end_tile) of a chunk, into or out of its work memory.
void TransformInput(const WinogradPlan& plan, const WinogradShape& shape, const Images& images,
                    int64_t chunk, int64_t first_tile, int64_t end_tile, float* work);
void TransformOutput(const WinogradPlan& plan, const WinogradShape& shape, const Images& images,
                     const gemm::Epilogue& epilogue, int64_t chunk, int64_t first_tile,
                     int64_t end_tile, float* work);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_TRANSFORM_H_
