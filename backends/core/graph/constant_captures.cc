// SPDX-License-Identifier: Apache-2.0
//
// ConstantCaptures: one level at a time; the runner visits the deeper ones afterwards.

#include "backends/core/graph/constant_captures.h"

#include <algorithm>
#include <memory>

namespace onnxifi::graph {

base::Result<bool> ConstantCaptures::Run(Graph& graph) {
  const auto captures_constant = [&graph](const Value& value) {
    if (value.outer == kNoValue) return false;
    const Value& outer = graph.values[static_cast<size_t>(value.outer)];
    return outer.constant.has_value() || outer.is_weight;
  };
  bool is_changed = false;
  for (Node& node : graph.nodes) {
    is_changed |= TransformSubgraphs(node, [&](const std::shared_ptr<const Graph>& subgraph) {
      if (std::ranges::none_of(subgraph->values, captures_constant)) return subgraph;
      auto copy = std::make_shared<Graph>(*subgraph);
      for (Value& value : copy->values) {
        if (!captures_constant(value)) continue;
        const Value& outer = graph.values[static_cast<size_t>(value.outer)];
        value.constant = outer.constant;
        value.is_weight = outer.is_weight;
        value.type = outer.type;
        value.outer = kNoValue;
      }
      return std::shared_ptr<const Graph>(std::move(copy));
    });
  }
  return is_changed;
}

}  // namespace onnxifi::graph
