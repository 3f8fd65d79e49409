// SPDX-License-Identifier: Apache-2.0
//
// A captured value is one of the inner graph that names the outer one's.

#include "backends/core/ops/captures.h"

#include <utility>

namespace onnxifi::ops {

using graph::ValueId;

ValueId AddNamed(graph::Graph& graph, std::string name) {
  graph::Value value;
  value.name = std::move(name);
  return graph.AddValue(std::move(value));
}

graph::Node MakeNode(const graph::Node& like, std::string op_type, int since_version,
                     graph::ValueIds inputs, graph::ValueIds outputs) {
  graph::Node node;
  node.name = like.name;
  node.op_type = std::move(op_type);
  node.since_version = since_version;
  node.index = like.index;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

ValueId Captures::Of(ValueId outside, const std::string& name) {
  const auto [found, is_new] = known_.try_emplace(outside, graph::kNoValue);
  if (is_new) {
    found->second = AddNamed(inside_, name);
    inside_.values[static_cast<size_t>(found->second)].outer = outside;
  }
  return found->second;
}

void Captures::PassOn(graph::Graph& body) {
  for (graph::Value& value : body.values) {
    if (value.outer != graph::kNoValue) value.outer = Of(value.outer, value.name);
  }
}

}  // namespace onnxifi::ops
