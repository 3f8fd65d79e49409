// SPDX-License-Identifier: Apache-2.0
//
// SqueezedAxes: what lowering tells of a graph's Squeezes, for a graph with other extents.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SQUEEZED_AXES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SQUEEZED_AXES_H_

#include <cstdint>
#include <vector>

#include "backends/core/graph/graph.h"

namespace onnxifi::ops {

// What a Squeeze without axes removes where the numbers among the extents alone make the rank that
// is declared: symbols stay, even as 1. The same graph with numbers in place of its symbols, as it
// is lowered for a shape of its own, does not show which extents these were.
struct SqueezedAxes {
  struct Node {
    int index = 0;  // of the node
    std::vector<int64_t> axes;
  };
  std::vector<Node> nodes;  // of the graph itself
  bool are_in_bodies = false;

  // The nodes name their axes.
  void Write(graph::Graph& graph) const;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SQUEEZED_AXES_H_
