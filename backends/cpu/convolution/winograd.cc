// SPDX-License-Identifier: Apache-2.0
//
// Winograd: the phases, the products by gemm/.

#include "backends/cpu/convolution/winograd.h"

#include "backends/cpu/convolution/winograd_transform.h"
#include "backends/cpu/gemm/gemm.h"

namespace onnxifi::convolution {

void MultiplyFrequencies(const WinogradPlan& plan, const WinogradShape& shape,
                         const float* transformed, int64_t chunk, int64_t first, int64_t end,
                         float* work) {
  const int64_t size = gemm::PackedSize(shape.in_channels, shape.out_channels);
  const int64_t width = gemm::PanelColumns();
  float* products = work + Frequencies(plan.tile) * plan.in_frequency_stride;
  for (int64_t frequency = first; frequency < end; ++frequency) {
    gemm::Multiply({work + frequency * plan.in_frequency_stride,
                    plan.in_stride,
                    transformed + frequency * size,
                    products + frequency * plan.out_frequency_stride,
                    plan.out_stride,
                    TilesOf(plan, chunk),
                    shape.in_channels,
                    shape.out_channels,
                    {}},
                   {}, 0, plan.out_stride / width);
  }
}

void RunChunks(const WinogradPlan& plan, const WinogradShape& shape, const float* transformed,
               const Images& images, const gemm::Epilogue& epilogue, int64_t first, int64_t end,
               float* work) {
  for (int64_t chunk = first; chunk < end; ++chunk) {
    const int64_t tiles = TilesOf(plan, chunk);
    TransformInput(plan, shape, images, chunk, 0, tiles, work);
    MultiplyFrequencies(plan, shape, transformed, chunk, 0, Frequencies(plan.tile), work);
    TransformOutput(plan, shape, images, epilogue, chunk, 0, tiles, work);
  }
}

}  // namespace onnxifi::convolution
