// SPDX-License-Identifier: Apache-2.0
//
// Winograd: convolutions with kernels of 3 x 3 as products in another domain: F(4x4, 3x3), which
// has a quarter of the multiplications, and F(2x2, 3x3), with 4 of 9. Tiles of the input are
// transformed, multiplied with transformed weights per frequency, and transformed back.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_H_

#include <cstdint>

#include "backends/core/base/status.h"
#include "backends/cpu/convolution/facts.h"
#include "backends/cpu/convolution/image.h"
#include "backends/cpu/convolution/winograd_plan.h"
#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::convolution {

// Chunks [first, end) of plan.tiles / plan.chunk on the calling thread. `work`: work_floats floats.
void RunChunks(const WinogradPlan& plan, const WinogradShape& shape, const float* transformed,
               const Images& images, const gemm::Epilogue& epilogue, int64_t first, int64_t end,
               float* work);
// The middle phase of one chunk, for frequencies [first, end); the others are transforms.
void MultiplyFrequencies(const WinogradPlan& plan, const WinogradShape& shape,
                         const float* transformed, int64_t chunk, int64_t first, int64_t end,
                         float* work);

// UNSUPPORTED_* where a convolution along two axes, or a frame of one along three, is not one that
// the algorithm does, or that it does not do faster.
base::Status CheckWinograd(const ConvolutionQuery& described);
base::Status CheckWorthwhile(const WinogradShape& shape);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_WINOGRAD_H_
