// SPDX-License-Identifier: Apache-2.0
//
// Verify: the invariants of a Graph, checked after import and after each pass.

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_VERIFY_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_VERIFY_H_

#include "backends/core/base/status.h"
#include "backends/core/graph/graph.h"

namespace onnxifi::graph {

// Every id is in range; each value has at most one origin (graph input, constant, capture or node
// output); nodes are in topological order; captures of subgraphs, at any depth, name values that
// exist before the node. INTERNAL_ERROR with the node and the value otherwise: a graph that breaks
// this is a fault of a pass, never of a model.
base::Status Verify(const Graph& graph);

}  // namespace onnxifi::graph

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_VERIFY_H_
