// SPDX-License-Identifier: Apache-2.0
//
// Weighted points: weighted rows (weighted_rows.h) of a Map that are short or do not lie together,
// as images of one channel and of planes are sampled. Vectors go along the rows, which are points
// then: places are worked out and held against guards in registers, once for some channels.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_WEIGHTED_POINTS_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_WEIGHTED_POINTS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/geometry.h"
#include "backends/cpu/engine/runtime.h"
#include "backends/cpu/engine/weighted_rows.h"

namespace onnxifi::engine {

// Null where a guard depends on more than one coordinate or places exceed 32 bits.
std::unique_ptr<device::BoundKernel> BindWeightedPoints(std::shared_ptr<const WeightedRows> rows,
                                                        const device::BoundStep& step,
                                                        Runtime& runtime);

// Of a tap of some points: coordinate k of point p is numbers[k][p], and
//   place = offset + sum over k of steps * numbers + channel * channel_step
// A point at which start + number is outside [0, extent) reads 0 instead.
struct PointTap {
  struct Coordinate {
    const int32_t* numbers;  // of NarrowNumbers
    int32_t step;
    int32_t start;
    int32_t extent;  // -1: of any number there is an element
  };
  const float* weights;  // null: 1
  Coordinate coordinates[kMaxAxes];
  int count;
  int32_t offset;
  int32_t channel_step;
};
// Numbers, those beyond 32 bits as the ends of these.
void NarrowNumbers(const int64_t* numbers, int64_t count, int32_t* narrow);
// Starts and extents of guards, so that sums of both with any number say which are outside.
inline constexpr int64_t kMaxGuardNumber = int64_t{1} << 29;
inline constexpr int64_t kMaxPointChannels = 4;

// sums[channel * stride + p] = first + weight * source[place] + ..., in this order, each product
// rounded, for p < points and channel < channels <= kMaxPointChannels. There are `floats` elements
// of the source, at least one.
void SumPoints(const float* source, int64_t floats, std::span<const PointTap> taps, int64_t points,
               int64_t channels, float first, float* sums, int64_t stride);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_WEIGHTED_POINTS_H_
