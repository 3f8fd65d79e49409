// SPDX-License-Identifier: Apache-2.0
//
// DeadNodes: one backward walk from the outputs marks what is alive.

#include "backends/core/graph/dead_nodes.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace onnxifi::graph {

base::Result<bool> DeadNodes::Run(Graph& graph) {
  std::vector<bool> is_alive(graph.values.size(), false);
  const auto mark = [&is_alive](ValueId id) {
    if (id != kNoValue) is_alive[static_cast<size_t>(id)] = true;
  };
  const auto lives = [&is_alive](ValueId id) {
    return id != kNoValue && is_alive[static_cast<size_t>(id)];
  };
  for (const ValueId output : graph.outputs) mark(output);
  std::vector<bool> is_kept(graph.nodes.size(), false);
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    if (std::ranges::none_of(node.outputs, lives)) continue;
    is_kept[id] = true;
    for (const ValueId input : node.inputs) mark(input);
    ForEachSubgraph(node, [&](const std::shared_ptr<const Graph>& subgraph) {
      for (const Value& value : subgraph->values) mark(value.outer);
    });
  }

  bool is_changed = false;
  size_t kept = 0;
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    if (!is_kept[id]) continue;
    Node& node = graph.nodes[id];
    for (ValueId& output : node.outputs) {
      if (output == kNoValue || lives(output)) continue;
      output = kNoValue;
      is_changed = true;
    }
    if (kept != id) graph.nodes[kept] = std::move(node);
    ++kept;
  }
  is_changed |= kept != graph.nodes.size();
  graph.nodes.resize(kept);

  for (size_t id = 0; id < graph.values.size(); ++id) {
    Value& value = graph.values[id];
    if (is_alive[id] || (!value.constant && value.outer == kNoValue)) continue;
    value.constant.reset();
    value.outer = kNoValue;
    is_changed = true;
  }
  return is_changed;
}

}  // namespace onnxifi::graph
