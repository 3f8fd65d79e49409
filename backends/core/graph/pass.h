// SPDX-License-Identifier: Apache-2.0
//
// Pass: one rewrite of a Graph. Passes that know operators are in core/ops/rewrite; those here know
// none.

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_PASS_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_PASS_H_

#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"

namespace onnxifi::graph {

class Pass {
 public:
  virtual ~Pass() = default;

  // As it appears in dumps, timings and the list of disabled passes, e.g. "dead_nodes".
  virtual std::string_view name() const = 0;

  // Rewrites `graph` and answers whether it changed anything. Subgraphs are visited by the runner,
  // each as a graph of its own after the one around it. The ids of a graph's inputs and outputs,
  // their number and their order stay. Errors: only those of resources; what a pass cannot handle
  // it leaves as it is.
  virtual base::Result<bool> Run(Graph& graph) = 0;
};

}  // namespace onnxifi::graph

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_PASS_H_
