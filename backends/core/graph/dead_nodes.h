// SPDX-License-Identifier: Apache-2.0
//
// DeadNodes: removes nodes none of whose outputs is read, and frees constants that nothing reads
// any more.

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_DEAD_NODES_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_DEAD_NODES_H_

#include "backends/core/graph/pass.h"

namespace onnxifi::graph {

// ONNX operators have no side effects, so a node is alive only through its outputs. An output that
// nobody reads of a node that lives becomes omitted (kNoValue) in its place: the number of outputs
// can have a meaning (Split). Value ids stay. Captures that a subgraph no longer reads hold what
// they capture alive until the next run.
class DeadNodes : public Pass {
 public:
  std::string_view name() const override { return "dead_nodes"; }
  base::Result<bool> Run(Graph& graph) override;
};

}  // namespace onnxifi::graph

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_DEAD_NODES_H_
