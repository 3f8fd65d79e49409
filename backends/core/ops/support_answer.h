// SPDX-License-Identifier: Apache-2.0
//
// SupportAnswer: which nodes of a graph can be lowered, and whether its inputs and outputs can be
// carried.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SUPPORT_ANSWER_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SUPPORT_ANSWER_H_

#include <cstdint>
#include <vector>

#include "backends/core/base/status.h"

namespace onnxifi::ops {

// What carries the inputs and outputs of a graph across the boundary.
enum class Carrier : uint8_t {
  // Of the interface: tensors of numbers or bool, which the caller makes as large as the model
  // declares. What nodes make has to have the declared ranks, and outputs the declared extents.
  kDescriptors,
  // Of the SDK's extension: anything. A value brings its shape, whatever is declared.
  kValues,
};

struct SupportAnswer {
  std::vector<base::Status> nodes;  // one per node, in the graph's order
  // By node: whether the check said FALLBACK of any of its steps.
  std::vector<bool> is_emulated;
  // Whether every graph input is declared well enough to be bound, and it and every output can be
  // carried.
  base::Status edges;
  // Where `edges` refuses, the position of a node that reads or makes the value; -1: there is none.
  int edge_node = -1;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SUPPORT_ANSWER_H_
