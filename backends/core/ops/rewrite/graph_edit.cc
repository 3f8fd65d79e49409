// SPDX-License-Identifier: Apache-2.0
//
// GraphEdit: edits are gathered and applied at once, since taking out nodes one by one is
// quadratic.

#include "backends/core/ops/rewrite/graph_edit.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "backends/core/ops/graph_builder.h"

namespace onnxifi::ops {

using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::Value;
using graph::ValueId;
using graph::ValueIds;

GraphEdit::GraphEdit(graph::Graph& graph)
    : graph_(graph),
      is_removed_(graph.nodes.size(), false),
      use_counts_(graph.UseCounts()),
      producers_(graph.Producers()),
      replacements_(graph.values.size(), kNoValue) {}

ValueId GraphEdit::Resolve(ValueId value) const {
  while (value != kNoValue && replacements_[static_cast<size_t>(value)] != kNoValue) {
    value = replacements_[static_cast<size_t>(value)];
  }
  return value;
}

Node* GraphEdit::Producer(ValueId value) {
  value = Resolve(value);
  if (value == kNoValue) return nullptr;
  const NodeId id = producers_[static_cast<size_t>(value)];
  return id == kNoNode || IsRemoved(id) ? nullptr : &node(id);
}

const tensor::Tensor* GraphEdit::FindConstant(ValueId value) const {
  if (value == kNoValue) return nullptr;
  const Value& found = graph_.values[static_cast<size_t>(value)];
  return found.constant ? &*found.constant : nullptr;
}

std::optional<std::vector<int64_t>> GraphEdit::FindIntegers(ValueId value) const {
  const tensor::Tensor* constant = FindConstant(value);
  if (constant == nullptr || graph_.values[static_cast<size_t>(value)].is_weight ||
      !tensor::IsInteger(constant->type()) ||
      (constant->data() == nullptr && constant->element_count() > 0)) {
    return std::nullopt;
  }
  std::vector<int64_t> integers;
  for (int64_t k = 0; k < constant->element_count(); ++k) integers.push_back(constant->AsInt(k));
  return integers;
}

tensor::ElementType GraphEdit::TypeOf(ValueId value) const {
  if (const tensor::Tensor* constant = FindConstant(value)) return constant->type();
  const graph::Type& type = graph_.values[static_cast<size_t>(value)].type;
  return type.kind == graph::Type::Kind::kTensor ? type.element : tensor::ElementType::kUndefined;
}

const std::vector<graph::Extent>* GraphEdit::ExtentsOf(ValueId value) const {
  const graph::Type& type = graph_.values[static_cast<size_t>(value)].type;
  return type.kind == graph::Type::Kind::kTensor && type.extents ? &*type.extents : nullptr;
}

void GraphEdit::Replace(ValueId from, ValueId to) {
  replacements_[static_cast<size_t>(from)] = to;
  use_counts_[static_cast<size_t>(to)] += use_counts_[static_cast<size_t>(from)] - 1;
}

bool GraphEdit::Bypass(NodeId id, ValueId value) {
  value = Resolve(value);
  const ValueId out = node(id).outputs[0];
  if (!graph_.IsOutput(out)) {
    Replace(out, value);
  } else {
    // A graph's output keeps its id, so its value takes the place of the other one.
    Node* producer = Producer(value);
    if (producer == nullptr || graph_.IsOutput(value)) return false;
    std::replace(producer->outputs.begin(), producer->outputs.end(), value, out);
    // What is declared of the one alone is true of both.
    graph::Type& declared = graph_.values[static_cast<size_t>(out)].type;
    const graph::Type& known = graph_.values[static_cast<size_t>(value)].type;
    if (!declared.extents && known.extents) declared = known;
    producers_[static_cast<size_t>(out)] = producers_[static_cast<size_t>(value)];
    Replace(value, out);
  }
  is_removed_[static_cast<size_t>(id)] = true;
  is_changed_ = true;
  return true;
}

void GraphEdit::Absorb(NodeId id, Node& producer) {
  const ValueId out = node(id).outputs[0];
  producer.outputs[0] = out;
  producers_[static_cast<size_t>(out)] = static_cast<NodeId>(&producer - graph_.nodes.data());
  is_removed_[static_cast<size_t>(id)] = true;
  is_changed_ = true;
}

ValueId GraphEdit::InsertBefore(const Node& before, std::string op_type, int since_version,
                                ValueIds inputs) {
  std::string name = before.name + "/" + op_type + std::to_string(graph_.values.size());
  const ValueId made = AddNamed(graph_, name);
  Node inserted = MakeNode(before, std::move(op_type), since_version, std::move(inputs), {made});
  inserted.name = std::move(name);
  insertions_.push_back({static_cast<size_t>(&before - graph_.nodes.data()), std::move(inserted)});
  is_changed_ = true;
  NoteNewValue();
  return made;
}

ValueId GraphEdit::AddConstant(std::string name, tensor::Tensor tensor) {
  Value value;
  value.name = std::move(name);
  value.type.kind = graph::Type::Kind::kTensor;
  value.type.element = tensor.type();
  value.type.extents.emplace();
  for (int64_t extent : tensor.extents()) value.type.extents->push_back({extent, ""});
  value.constant = std::move(tensor);
  NoteNewValue();
  return graph_.AddValue(std::move(value));
}

void GraphEdit::NoteNewValue() {
  use_counts_.push_back(0);
  producers_.push_back(kNoNode);
  replacements_.push_back(kNoValue);
}

void GraphEdit::ResolveInputs(Node& node) const {
  for (ValueId& input : node.inputs) input = Resolve(input);
  graph::TransformSubgraphs(node, [&](const std::shared_ptr<const graph::Graph>& subgraph) {
    const auto is_replaced = [&](const Value& value) {
      return value.outer != kNoValue && Resolve(value.outer) != value.outer;
    };
    if (std::none_of(subgraph->values.begin(), subgraph->values.end(), is_replaced)) {
      return subgraph;
    }
    auto copy = std::make_shared<graph::Graph>(*subgraph);
    for (Value& value : copy->values) value.outer = Resolve(value.outer);
    return std::shared_ptr<const graph::Graph>(std::move(copy));
  });
}

bool GraphEdit::Finish() {
  if (!is_changed_) return false;
  std::stable_sort(insertions_.begin(), insertions_.end(),
                   [](const Insertion& a, const Insertion& b) { return a.position < b.position; });
  std::vector<Node> nodes;
  auto next = insertions_.begin();
  for (size_t id = 0; id < graph_.nodes.size(); ++id) {
    for (; next != insertions_.end() && next->position == id; ++next) {
      nodes.push_back(std::move(next->node));
    }
    if (!is_removed_[id]) nodes.push_back(std::move(graph_.nodes[id]));
  }
  for (Node& node : nodes) ResolveInputs(node);
  graph_.nodes = std::move(nodes);
  return true;
}

}  // namespace onnxifi::ops
