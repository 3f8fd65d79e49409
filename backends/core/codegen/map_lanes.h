// SPDX-License-Identifier: Apache-2.0
//
// MapLanes: how many neighbours along the last axis an item of a Map takes, so that what it loads
// and stores are words of 16 bytes. For generate.cc, which asks, and map_lanes.cc, which writes the
// kernel, alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_MAP_LANES_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_MAP_LANES_H_

#include "backends/core/codegen/family.h"

namespace onnxifi::codegen {

// The elements of the narrowest type of the step that fill 16 bytes. 1, for a kernel with an item
// per element, where a view steps along the last axis by more than one element, is loaded at
// coordinates that come from data, or has rows that begin elsewhere than at a multiple of 16 bytes;
// where a guard changes along the axis; where elements are smaller than a byte; and where that many
// elements are more than a kernel's registers. Buffers begin at multiples of 16 bytes.
int MapLanes(const LoopFacts& facts, const device::BoundStep& step, const LoopNest& loops);

// Of LoopNest::given, for a Map whose form has lanes.
enum MapNumber : int { kRunsPerRow };

// The kernel of such a Map.
Launch WriteMapOfLanes(Writer& writer, const Source& source);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_MAP_LANES_H_
