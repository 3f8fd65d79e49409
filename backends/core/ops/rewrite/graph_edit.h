// SPDX-License-Identifier: Apache-2.0
//
// GraphEdit: what the rewrites do to a graph: look at constants and types, put nodes in, take nodes
// out.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REWRITE_GRAPH_EDIT_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REWRITE_GRAPH_EDIT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/graph/graph.h"

namespace onnxifi::ops {

// The attribute, or `fallback` where the node does not give it.
template <typename T>
T AttributeOr(const graph::Node& node, std::string_view name, T fallback) {
  const T* value = node.FindAttribute<T>(name);
  return value == nullptr ? fallback : *value;
}

// One run of a rewrite over one graph. Nodes are taken out and put in when Finish is called, so
// that ids stay valid until then.
class GraphEdit {
 public:
  explicit GraphEdit(graph::Graph& graph);

  graph::Node& node(graph::NodeId id) { return graph_.nodes[static_cast<size_t>(id)]; }
  bool IsRemoved(graph::NodeId id) const { return is_removed_[static_cast<size_t>(id)]; }
  // How often a value is read, at most.
  int UseCount(graph::ValueId value) const { return use_counts_[static_cast<size_t>(value)]; }
  // The node that makes the value and has not been taken out; null for inputs, constants and
  // captures.
  graph::Node* Producer(graph::ValueId value);

  const tensor::Tensor* FindConstant(graph::ValueId value) const;
  // The integers of a constant whose values may be looked at; nothing for weights and where the
  // values are not here.
  std::optional<std::vector<int64_t>> FindIntegers(graph::ValueId value) const;
  // As far as declared.
  tensor::ElementType TypeOf(graph::ValueId value) const;
  const std::vector<graph::Extent>* ExtentsOf(graph::ValueId value) const;

  // Takes the node out and lets every reader of its first output read `value` instead. False, with
  // nothing done, where the output is one of the graph's and cannot be made by the producer of
  // `value`.
  bool Bypass(graph::NodeId id, graph::ValueId value);
  // Takes the node out; `producer`, which so far makes the node's input, makes its output.
  void Absorb(graph::NodeId id, graph::Node& producer);
  // A new node before `before`; the value it makes. `before` is where its inputs are known and its
  // reader stands behind.
  graph::ValueId InsertBefore(const graph::Node& before, std::string op_type, int since_version,
                              graph::ValueIds inputs);
  graph::ValueId AddConstant(std::string name, tensor::Tensor tensor);

  // Whether anything changed.
  bool Finish();

 private:
  struct Insertion {
    size_t position;
    graph::Node node;
  };

  // Where the readers of `value` will read.
  graph::ValueId Resolve(graph::ValueId value) const;
  void Replace(graph::ValueId from, graph::ValueId to);
  void ResolveInputs(graph::Node& node) const;
  void NoteNewValue();

  graph::Graph& graph_;
  std::vector<bool> is_removed_;
  std::vector<int> use_counts_;
  std::vector<graph::NodeId> producers_;
  std::vector<graph::ValueId> replacements_;  // by ValueId; kNoValue where it is still read
  std::vector<Insertion> insertions_;
  bool is_changed_ = false;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REWRITE_GRAPH_EDIT_H_
