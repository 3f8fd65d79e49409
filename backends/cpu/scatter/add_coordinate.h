// SPDX-License-Identifier: Apache-2.0
//
// AddCoordinate: offsets of lanes from the coordinates along one axis of the target, in vector code
// for the processor at hand.

#ifndef ONNXIFI_BACKENDS_CPU_SCATTER_ADD_COORDINATE_H_
#define ONNXIFI_BACKENDS_CPU_SCATTER_ADD_COORDINATE_H_

#include <cstdint>

namespace onnxifi::scatter {

// The number of a coordinate that is out of range, and of any sum with one. Sums with as many of
// them as a view has axes do not overflow.
inline constexpr int64_t kOutside = INT64_MIN / 64;

struct CoordinateLanes {
  const int64_t* coordinates;
  int64_t lanes;
  int64_t extent;  // of the target
  int64_t stride;  // in elements
};

// offsets[k] = before[k] + coordinates[k] * stride, or + kOutside where the coordinate is not in
// [0, extent). `offsets` may be `before`.
void AddCoordinate(const CoordinateLanes& coordinate, const int64_t* before, int64_t* offsets);

}  // namespace onnxifi::scatter

#endif  // ONNXIFI_BACKENDS_CPU_SCATTER_ADD_COORDINATE_H_
