// SPDX-License-Identifier: Apache-2.0
//
// Loops: states that run along an axis, several of them side by side.

#ifndef ONNXIFI_BACKENDS_CPU_SCAN_LOOPS_H_
#define ONNXIFI_BACKENDS_CPU_SCAN_LOOPS_H_

#include <cstddef>
#include <cstdint>

#include "backends/core/program/expr.h"

namespace onnxifi::scan {

// Elements [elements, lanes]: each lane has a state of its own, which goes from element to element.
// Steps are in elements of the type.
struct Strip {
  const std::byte* source;
  int64_t source_element_step;
  int64_t source_lane_step;
  std::byte* target;
  int64_t target_element_step;
  int64_t target_lane_step;
  std::byte* states;  // of each lane, dense
  int64_t elements;
  int64_t lanes;
};

// state[lane] = operation(state[lane], source[element, lane]), element after element;
// target[element, lane] = the state after that, or, of an exclusive one, before it. Where source
// and target overlap they are the same.
using Loop = void (*)(const Strip& strip);

// For the processor that this runs on; null where there is none: kAdd, kMul, kMin and kMax of
// float32, float64 and integers of 8 bits and more, kAnd and kOr of bool. Results are the
// reference's. Vectors go over lanes whose steps are 1.
Loop FindLoop(program::ExprOp op, tensor::ElementType type, bool is_exclusive);

}  // namespace onnxifi::scan

#endif  // ONNXIFI_BACKENDS_CPU_SCAN_LOOPS_H_
