// SPDX-License-Identifier: Apache-2.0
//
// A captured value is one of the inner graph that names the outer one's.

#include "backends/core/ops/captures.h"

#include "backends/core/ops/graph_builder.h"

namespace onnxifi::ops {

using graph::ValueId;

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
