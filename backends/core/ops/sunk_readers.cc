// SPDX-License-Identifier: Apache-2.0
//
// SunkGraph: readers keep their order behind the nodes of a branch; what they read from outside of
// it becomes captures of the branch.

#include "backends/core/ops/sunk_readers.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "backends/core/ops/captures.h"
#include "backends/core/ops/graph_builder.h"

namespace onnxifi::ops {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Value;
using graph::ValueId;
using GraphPointer = std::shared_ptr<const Graph>;

// With what the condition is there.
constexpr std::pair<const char*, bool> kBranches[] = {{"then_branch", true},
                                                      {"else_branch", false}};

bool IsIf(const Node& node) { return node.domain.empty() && node.op_type == "If"; }

size_t CountNodes(const Node& node) {
  size_t count = 1;
  graph::ForEachSubgraph(node, [&](const GraphPointer& subgraph) {
    for (const Node& inside : subgraph->nodes) count += CountNodes(inside);
  });
  return count;
}

// Calls `visit` for what a node reads, captures of its graphs included.
template <typename Visit>
void ForEachRead(const Node& node, Visit visit) {
  for (const ValueId id : node.inputs) {
    if (id != kNoValue) visit(id);
  }
  graph::ForEachSubgraph(node, [&](const GraphPointer& subgraph) {
    for (const Value& value : subgraph->values) {
      if (value.outer != kNoValue) visit(value.outer);
    }
  });
}

// What follows from the results of one If of a graph.
class Readers {
 public:
  Readers(const Graph& graph, size_t conditional)
      : graph_(graph), conditional_(conditional), follows_(graph.values.size()) {
    Mark(graph.nodes[conditional]);
    for (size_t k = conditional + 1; k < graph.nodes.size(); ++k) {
      bool is_reader = false;
      ForEachRead(graph.nodes[k],
                  [&](ValueId id) { is_reader = is_reader || follows_[static_cast<size_t>(id)]; });
      if (!is_reader) continue;
      Mark(graph.nodes[k]);
      nodes_.push_back(k);
    }
    for (const ValueId id : graph.outputs) {
      if (Follows(id) && std::ranges::find(outputs_, id) == outputs_.end()) outputs_.push_back(id);
    }
  }

  const std::vector<size_t>& nodes() const { return nodes_; }
  // Those that the graph gives.
  const graph::ValueIds& outputs() const { return outputs_; }

  size_t CountAll() const {
    size_t count = 0;
    for (const size_t k : nodes_) count += CountNodes(graph_.nodes[k]);
    return count;
  }

  // The branch with the readers behind its nodes. Other Ifs of the same condition take the same
  // branch there: what is in their other one may not fit the rank.
  GraphPointer Append(const Graph& branch, bool is_taken) const {
    auto all = std::make_shared<Graph>(branch);
    Captures captures(*all);
    std::vector<ValueId> inside(graph_.values.size(), kNoValue);
    const graph::ValueIds& results = graph_.nodes[conditional_].outputs;
    for (size_t k = 0; k < results.size() && k < branch.outputs.size(); ++k) {
      if (results[k] != kNoValue) inside[static_cast<size_t>(results[k])] = branch.outputs[k];
    }
    const auto map = [&](ValueId id) {
      if (id == kNoValue) return id;
      const ValueId known = inside[static_cast<size_t>(id)];
      return known != kNoValue ? known
                               : captures.Of(id, graph_.values[static_cast<size_t>(id)].name);
    };
    for (const size_t k : nodes_) {
      Node node = graph_.nodes[k];
      const bool has_condition = IsIf(node) && node.inputs == graph_.nodes[conditional_].inputs;
      for (ValueId& id : node.inputs) id = map(id);
      if (has_condition) {
        node.inputs[0] =
            GraphBuilder(*all, node).AddScalar(tensor::ElementType::kBool, is_taken ? 1 : 0);
      }
      graph::TransformSubgraphs(node, [&](const GraphPointer& subgraph) {
        auto moved = std::make_shared<Graph>(*subgraph);
        for (Value& value : moved->values) value.outer = map(value.outer);
        return GraphPointer(std::move(moved));
      });
      for (ValueId& id : node.outputs) {
        if (id == kNoValue) continue;
        // What is declared of its extents may be what the other branch gives.
        Value value = graph_.values[static_cast<size_t>(id)];
        value.type.extents.reset();
        id = inside[static_cast<size_t>(id)] = all->AddValue(std::move(value));
      }
      all->nodes.push_back(std::move(node));
    }
    all->outputs.clear();
    for (const ValueId id : outputs_) all->outputs.push_back(inside[static_cast<size_t>(id)]);
    return all;
  }

 private:
  bool Follows(ValueId id) const { return follows_[static_cast<size_t>(id)]; }
  void Mark(const Node& node) {
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) follows_[static_cast<size_t>(id)] = true;
    }
  }

  const Graph& graph_;
  const size_t conditional_;
  std::vector<bool> follows_;  // by ValueId
  std::vector<size_t> nodes_;
  graph::ValueIds outputs_;
};

std::optional<SunkGraph> SinkHere(const Graph& graph, size_t conditional, size_t max_nodes) {
  const Readers readers(graph, conditional);
  const size_t node_count = readers.CountAll();
  if (node_count == 0 || node_count > max_nodes) return std::nullopt;
  Node whole = graph.nodes[conditional];
  for (const auto& [name, is_taken] : kBranches) {
    const auto* branch = whole.FindAttribute<GraphPointer>(name);
    if (branch == nullptr || (*branch)->outputs.size() != whole.outputs.size()) return std::nullopt;
    whole.attributes[name] = readers.Append(**branch, is_taken);
  }
  whole.outputs = readers.outputs();

  SunkGraph sunk{graph, std::vector<int>(graph.nodes.size(), -1), node_count};
  sunk.graph.nodes.clear();
  std::vector<bool> is_inside(graph.nodes.size());
  is_inside[conditional] = true;
  for (const size_t k : readers.nodes()) is_inside[k] = true;
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    if (is_inside[k]) continue;
    sunk.positions[k] = static_cast<int>(sunk.graph.nodes.size());
    sunk.graph.nodes.push_back(graph.nodes[k]);
  }
  // Nothing else reads what it gives.
  std::ranges::replace(sunk.positions, -1, static_cast<int>(sunk.graph.nodes.size()));
  sunk.graph.nodes.push_back(std::move(whole));
  return sunk;
}

bool Contains(const Graph& graph, const Node& searched) {
  for (const Node& node : graph.nodes) {
    bool is_found = &node == &searched;
    graph::ForEachSubgraph(node, [&](const GraphPointer& subgraph) {
      is_found = is_found || Contains(*subgraph, searched);
    });
    if (is_found) return true;
  }
  return false;
}

}  // namespace

std::optional<SunkGraph> SinkReaders(const Graph& graph, const Node& conditional,
                                     size_t max_nodes) {
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    if (&graph.nodes[k] == &conditional) return SinkHere(graph, k, max_nodes);
    bool is_inside = false;
    std::optional<SunkGraph> inside;
    Node node = graph.nodes[k];
    graph::TransformSubgraphs(node, [&](const GraphPointer& subgraph) {
      if (is_inside || !Contains(*subgraph, conditional)) return subgraph;
      is_inside = true;
      inside = SinkReaders(*subgraph, conditional, max_nodes);
      return inside ? std::make_shared<const Graph>(std::move(inside->graph)) : subgraph;
    });
    if (!is_inside) continue;
    // What the branch of an If gives has its readers behind that.
    if (!inside) return IsIf(node) ? SinkHere(graph, k, max_nodes) : std::nullopt;
    SunkGraph sunk{graph, {}, inside->node_count};
    sunk.graph.nodes[k] = std::move(node);
    for (size_t n = 0; n < graph.nodes.size(); ++n) sunk.positions.push_back(static_cast<int>(n));
    return sunk;
  }
  return std::nullopt;
}

}  // namespace onnxifi::ops
