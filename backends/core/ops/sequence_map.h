// SPDX-License-Identifier: Apache-2.0
//
// SequenceMap's definition as a function: a Loop that takes an element of each sequence, does what
// the node's body does, and appends to the results.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SEQUENCE_MAP_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SEQUENCE_MAP_H_

#include <memory>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"

namespace onnxifi::ops {

// A graph without inputs whose outputs are the node's; the node's inputs, and what its body
// captures, are captured from the graph that the node is in. `is_sequence`: by input, the others
// are the same for every element. INVALID_MODEL.
base::Result<std::unique_ptr<graph::Graph>> ExpandSequenceMap(const graph::Node& node,
                                                              const std::vector<bool>& is_sequence);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SEQUENCE_MAP_H_
