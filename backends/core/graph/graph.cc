// SPDX-License-Identifier: Apache-2.0
//
// Graph: look-ups and edits that keep a graph and the captures of its subgraphs consistent.

#include "backends/core/graph/graph.h"

#include <algorithm>
#include <utility>

namespace onnxifi::graph {
namespace {

// The subgraph with its captures of `from` redirected to `to`; the same object where it has none.
std::shared_ptr<const Graph> Redirect(const std::shared_ptr<const Graph>& subgraph, ValueId from,
                                      ValueId to) {
  const auto captures = [from](const Value& value) { return value.outer == from; };
  if (std::ranges::none_of(subgraph->values, captures)) return subgraph;
  auto copy = std::make_shared<Graph>(*subgraph);
  for (Value& value : copy->values) {
    if (value.outer == from) value.outer = to;
  }
  return copy;
}

}  // namespace

std::string Describe(const Node& node) {
  std::string text = "node " + std::to_string(node.index);
  if (!node.name.empty()) text += " '" + node.name + "'";
  text += " (";
  if (!node.domain.empty()) text += node.domain + ".";
  return text + node.op_type + ")";
}

void ForEachSubgraph(const Node& node,
                     const std::function<void(const std::shared_ptr<const Graph>&)>& visit) {
  for (const auto& [name, attribute] : node.attributes) {
    if (const auto* one = std::get_if<std::shared_ptr<const Graph>>(&attribute)) {
      visit(*one);
    } else if (const auto* many =
                   std::get_if<std::vector<std::shared_ptr<const Graph>>>(&attribute)) {
      for (const auto& subgraph : *many) visit(subgraph);
    }
  }
}

bool TransformSubgraphs(Node& node, const std::function<std::shared_ptr<const Graph>(
                                        const std::shared_ptr<const Graph>&)>& transform) {
  bool is_changed = false;
  const auto apply = [&](std::shared_ptr<const Graph>& subgraph) {
    std::shared_ptr<const Graph> result = transform(subgraph);
    is_changed |= result != subgraph;
    subgraph = std::move(result);
  };
  for (auto& [name, attribute] : node.attributes) {
    if (auto* one = std::get_if<std::shared_ptr<const Graph>>(&attribute)) {
      apply(*one);
    } else if (auto* many = std::get_if<std::vector<std::shared_ptr<const Graph>>>(&attribute)) {
      for (auto& subgraph : *many) apply(subgraph);
    }
  }
  return is_changed;
}

ValueId Graph::AddValue(Value value) {
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size() - 1);
}

std::vector<int> Graph::UseCounts() const {
  std::vector<int> counts(values.size(), 0);
  const auto count = [&counts](ValueId id) {
    if (id != kNoValue) ++counts[static_cast<size_t>(id)];
  };
  for (const Node& node : nodes) {
    for (const ValueId input : node.inputs) count(input);
    ForEachSubgraph(node, [&](const std::shared_ptr<const Graph>& subgraph) {
      for (const Value& value : subgraph->values) count(value.outer);
    });
  }
  for (const ValueId output : outputs) count(output);
  return counts;
}

int Graph::UseCount(ValueId value) const {
  int uses = 0;
  for (const Node& node : nodes) {
    uses += static_cast<int>(std::ranges::count(node.inputs, value));
    ForEachSubgraph(node, [&](const std::shared_ptr<const Graph>& subgraph) {
      uses += static_cast<int>(std::ranges::count(subgraph->values, value, &Value::outer));
    });
  }
  return uses + static_cast<int>(std::ranges::count(outputs, value));
}

std::vector<NodeId> Graph::Producers() const {
  std::vector<NodeId> producers(values.size(), kNoNode);
  for (size_t id = 0; id < nodes.size(); ++id) {
    for (const ValueId output : nodes[id].outputs) {
      if (output != kNoValue) producers[static_cast<size_t>(output)] = static_cast<NodeId>(id);
    }
  }
  return producers;
}

std::optional<NodeId> Graph::Producer(ValueId value) const {
  for (size_t id = 0; id < nodes.size(); ++id) {
    if (std::ranges::find(nodes[id].outputs, value) != nodes[id].outputs.end()) {
      return static_cast<NodeId>(id);
    }
  }
  return std::nullopt;
}

bool Graph::IsOutput(ValueId value) const {
  return std::ranges::find(outputs, value) != outputs.end();
}

void Graph::ReplaceUses(ValueId from, ValueId to) {
  for (Node& node : nodes) {
    std::ranges::replace(node.inputs, from, to);
    TransformSubgraphs(node, [&](const std::shared_ptr<const Graph>& subgraph) {
      return Redirect(subgraph, from, to);
    });
  }
  std::ranges::replace(outputs, from, to);
}

}  // namespace onnxifi::graph
