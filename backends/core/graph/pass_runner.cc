// SPDX-License-Identifier: Apache-2.0
//
// PassRunner: disabled? time it, run it, verify the graph, dump it.

#include "backends/core/graph/pass_runner.h"

#include <algorithm>
#include <utility>

#include "backends/core/graph/verify.h"

namespace onnxifi::graph {

base::Status PassRunner::Run(Pass& pass, Graph& graph) {
  PassRecord record{.pass = std::string(pass.name())};
  record.nodes_before = record.nodes_after = static_cast<int>(graph.nodes.size());
  if (std::ranges::find(options_.disabled, record.pass) != options_.disabled.end()) {
    record.is_disabled = true;
    records_.push_back(std::move(record));
    return base::Ok();
  }
  const auto start = std::chrono::steady_clock::now();
  base::Result<bool> is_changed = RunNested(pass, graph);
  record.duration = std::chrono::steady_clock::now() - start;
  const std::string context = "while running graph pass '" + record.pass + "'";
  if (!is_changed.ok()) return std::move(is_changed).status().Context(context);
  record.is_changed = *is_changed;
  record.nodes_after = static_cast<int>(graph.nodes.size());
  if (options_.verify) ONNXIFI_RETURN_IF_ERROR(Verify(graph).Context(context));
  if (options_.dump && record.is_changed) options_.dump(record.pass, graph);
  records_.push_back(std::move(record));
  return base::Ok();
}

base::Result<bool> PassRunner::RunNested(Pass& pass, Graph& graph) {
  ONNXIFI_ASSIGN_OR_RETURN(bool is_changed, pass.Run(graph));
  for (Node& node : graph.nodes) {
    base::Status status;
    is_changed |= TransformSubgraphs(node, [&](const std::shared_ptr<const Graph>& subgraph) {
      if (!status.ok()) return subgraph;
      // A subgraph may be shared with a copy of the node: the pass works on a copy, kept only if it
      // changed.
      auto copy = std::make_shared<Graph>(*subgraph);
      base::Result<bool> is_copy_changed = RunNested(pass, *copy);
      if (!is_copy_changed.ok()) {
        status = is_copy_changed.status();
        status.Context("in a subgraph of " + Describe(node));
        return subgraph;
      }
      return *is_copy_changed ? std::shared_ptr<const Graph>(std::move(copy)) : subgraph;
    });
    if (!status.ok()) return status;
  }
  return is_changed;
}

}  // namespace onnxifi::graph
