// SPDX-License-Identifier: Apache-2.0
//
// Plane sums: a row of a convolution of planes, vectors along the row: an element of every tap is
// brought once for all outputs, whose sums stay in registers. And elements at equal distances side
// by side, as such rows want them.

#ifndef ONNXIFI_BACKENDS_CPU_CONVOLUTION_PLANE_SUMS_H_
#define ONNXIFI_BACKENDS_CPU_CONVOLUTION_PLANE_SUMS_H_

#include <cstdint>
#include <span>

namespace onnxifi::convolution {

inline constexpr int64_t kMaxPlaneOutputs = 7;

// sums[output * stride + x] = bias[output] + sum over taps of
//   weights[tap * outputs + output] * source[taps[tap] + x]
struct PlaneRow {
  const float* source;
  std::span<const int64_t> taps;
  const float* weights;
  const float* bias;  // null: 0
  int64_t outputs;    // 1 to kMaxPlaneOutputs
  int64_t width;      // how many x; of the last vector, elements behind them are read and written
  float* sums;
  int64_t stride;  // a whole number of vectors
};
void SumPlaneRow(const PlaneRow& row);

// target[k] = source[k * step] for k < count; they do not overlap.
void CopySteps(const float* source, int64_t step, int64_t count, float* target);

// Of the widest vectors.
inline constexpr int64_t kPlaneLanes = 16;

}  // namespace onnxifi::convolution

#endif  // ONNXIFI_BACKENDS_CPU_CONVOLUTION_PLANE_SUMS_H_
