// SPDX-License-Identifier: Apache-2.0
//
// PlaneReduction: maximum or average of what windows see where the pixels of a row lie side by side
// and channels apart, with a vector of neighbouring windows at a time. Rows are copied with their
// padding first, so that no window is at an edge; those of strides above 1 as one row per
// remainder, so that what neighbouring windows see at a tap lies side by side.

#ifndef ONNXIFI_BACKENDS_CPU_POOLING_PLANE_REDUCTION_H_
#define ONNXIFI_BACKENDS_CPU_POOLING_PLANE_REDUCTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/cpu/pooling/reduction.h"

namespace onnxifi::pooling {

// The windows of one plane, of which a row's elements lie side by side.
struct PlaneWindows {
  Windows windows;
  std::array<Sliding, kSpatialAxes> sliding;  // what windows.taps were found from
};

// Whether maxima are taken axis after axis, where elements permit it.
bool IsReducedByAxes(const PlaneWindows& plane);

// Some outputs of several planes, each plane `source_stride` and `result_stride` elements behind
// the last.
struct PlaneBlock {
  Block block;  // `channels` are planes; `strides` of the last axis is 1
  int64_t source_stride = 0;
  int64_t result_stride = 0;
};

// Bytes of memory that blocks of at most these extents need.
int64_t PlaneScratchBytes(const PlaneWindows& windows,
                          const std::array<int64_t, kSpatialAxes>& extents);

// `source` is the first plane, `result` the first output of the block in it. As ReduceWindows says.
void ReducePlanes(const PlaneWindows& windows, const PlaneBlock& block, const std::byte* source,
                  std::byte* result, std::byte* scratch);

}  // namespace onnxifi::pooling

#endif  // ONNXIFI_BACKENDS_CPU_POOLING_PLANE_REDUCTION_H_
