// SPDX-License-Identifier: Apache-2.0
//
// SunkGraph: a graph in which what reads an If stands inside of its branches. Where the branches
// give different ranks and data choose between them, each reader is lowered twice, with one rank
// each.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SUNK_READERS_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SUNK_READERS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "backends/core/graph/graph.h"

namespace onnxifi::ops {

struct SunkGraph {
  graph::Graph graph;
  // By node of the graph as it was: where it is, or the If that it is part of.
  std::vector<int> positions;
  // That were moved into the branches, with all that is inside them.
  size_t node_count = 0;
};

// The graph without the readers of `conditional`, an If of it or of a body inside it, which is what
// follows from its results; its branches have them, and it gives what they gave. Where it has none
// and stands in a branch of another If, those of that one. Nothing where the readers with all that
// is inside them are more than `max_nodes`, or where there are none.
std::optional<SunkGraph> SinkReaders(const graph::Graph& graph, const graph::Node& conditional,
                                     size_t max_nodes);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SUNK_READERS_H_
