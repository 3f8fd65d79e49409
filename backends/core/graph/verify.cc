// SPDX-License-Identifier: Apache-2.0
//
// Verify: one walk in node order that marks what is defined so far.

#include "backends/core/graph/verify.h"

#include <vector>

namespace onnxifi::graph {
namespace {

base::Status Broken(std::string sentence) {
  return {base::Code::kInternalError, std::move(sentence)};
}

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), is_defined_(graph.values.size(), false) {}

  base::Status Run() {
    for (size_t id = 0; id < graph_.values.size(); ++id) {
      const Value& value = graph_.values[id];
      if (value.constant && value.outer != kNoValue) {
        return Broken("Value " + Text(static_cast<ValueId>(id)) +
                      " is both a constant and a capture.");
      }
      is_defined_[id] = value.constant || value.is_weight || value.outer != kNoValue;
    }
    for (const ValueId input : graph_.inputs) {
      ONNXIFI_RETURN_IF_ERROR(Define(input).Context("among the graph's inputs"));
    }
    for (const Node& node : graph_.nodes) {
      ONNXIFI_RETURN_IF_ERROR(CheckNode(node).Context("at " + Describe(node)));
    }
    for (const ValueId output : graph_.outputs) {
      ONNXIFI_RETURN_IF_ERROR(CheckUse(output).Context("among the graph's outputs"));
    }
    return base::Ok();
  }

 private:
  base::Status CheckNode(const Node& node) {
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) ONNXIFI_RETURN_IF_ERROR(CheckUse(input));
    }
    base::Status status;
    ForEachSubgraph(node, [&](const std::shared_ptr<const Graph>& subgraph) {
      if (status.ok()) status = CheckSubgraph(*subgraph);
    });
    ONNXIFI_RETURN_IF_ERROR(status);
    for (const ValueId output : node.outputs) {
      if (output != kNoValue) ONNXIFI_RETURN_IF_ERROR(Define(output));
    }
    return base::Ok();
  }

  base::Status CheckSubgraph(const Graph& subgraph) {
    for (const Value& value : subgraph.values) {
      if (value.outer == kNoValue) continue;
      ONNXIFI_RETURN_IF_ERROR(CheckUse(value.outer).Context("captured as '" + value.name + "'"));
    }
    return Verify(subgraph).Context("in subgraph '" + subgraph.name + "'");
  }

  base::Status CheckRange(ValueId id) const {
    if (id >= 0 && static_cast<size_t>(id) < graph_.values.size()) return base::Ok();
    return Broken("Value id " + std::to_string(id) + " is outside the graph's " +
                  std::to_string(graph_.values.size()) + " values.");
  }

  base::Status CheckUse(ValueId id) const {
    ONNXIFI_RETURN_IF_ERROR(CheckRange(id));
    if (is_defined_[static_cast<size_t>(id)]) return base::Ok();
    return Broken("Value " + Text(id) + " is read before it is defined.");
  }

  base::Status Define(ValueId id) {
    ONNXIFI_RETURN_IF_ERROR(CheckRange(id));
    if (is_defined_[static_cast<size_t>(id)]) {
      return Broken("Value " + Text(id) + " is defined twice.");
    }
    is_defined_[static_cast<size_t>(id)] = true;
    return base::Ok();
  }

  std::string Text(ValueId id) const {
    return std::to_string(id) + " '" + graph_.values[static_cast<size_t>(id)].name + "'";
  }

  const Graph& graph_;
  std::vector<bool> is_defined_;
};

}  // namespace

base::Status Verify(const Graph& graph) { return Verifier(graph).Run(); }

}  // namespace onnxifi::graph
