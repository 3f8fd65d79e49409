// SPDX-License-Identifier: Apache-2.0
//
// PlanarRow: neighbouring results of a convolution of planes, in vector code for the processor at
// hand. Vectors run over the channels of the result; an element of every tap is broadcast.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_PLANAR_ROW_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_PLANAR_ROW_H_

#include <cstdint>
#include <span>

#include "backends/cpu/gemm/epilogue.h"

namespace onnxifi::convolution {

// Whether windows at that distance have kernels of their own.
inline bool HasPlanarRow(int64_t stride) { return stride == 1 || stride == 2; }

// Taps side by side: an element that one tap reads for a window another reads for the next window.
struct PlanarTaps {
  int64_t first;  // what the first one reads of the first window, in floats
  int64_t count;  // 1 to kMaxPlanarTaps
};
inline constexpr int64_t kMaxPlanarTaps = 3;

struct PlanarRow {
  const float* source;
  std::span<const PlanarTaps> taps;
  int64_t tap_count;     // of all of them
  int64_t stride;        // from window to window: one of those with kernels
  const float* weights;  // packed, as gemm::PackRows has them, a row per tap
  float* result;         // [width, columns]
  int64_t result_stride;
  int64_t width, columns;
};

// Each result is the epilogue of the bias and the taps in order, by fused multiply-adds where the
// processor has them.
void ConvolvePlanarRow(const PlanarRow& row, const gemm::Epilogue& epilogue, int64_t first_panel,
                       int64_t end_panel);

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_PLANAR_ROW_H_
