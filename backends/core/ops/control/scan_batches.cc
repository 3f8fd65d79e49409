// SPDX-License-Identifier: Apache-2.0
//
// A sequence of its own length is cut before the scan, and what the scan gives is padded after it.

#include "backends/core/ops/control/scan_batches.h"

#include <string>
#include <utility>

#include "backends/core/ops/captures.h"

namespace onnxifi::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueIds;

class EntryGraph {
 public:
  explicit EntryGraph(const Node& node) : node_(node), graph_(std::make_shared<Graph>()) {}

  Graph& graph() { return *graph_; }
  std::shared_ptr<Graph> Take() { return std::move(graph_); }

  ValueId AddInput(std::string name) {
    graph_->inputs.push_back(AddNamed(*graph_, std::move(name)));
    return graph_->inputs.back();
  }
  Node& Add(std::string op_type, int since_version, ValueIds inputs, ValueIds outputs) {
    graph_->nodes.push_back(
        MakeNode(node_, std::move(op_type), since_version, std::move(inputs), std::move(outputs)));
    return graph_->nodes.back();
  }
  ValueId Apply(std::string op_type, int since_version, ValueIds inputs) {
    const ValueId result = AddNamed(*graph_, op_type + std::to_string(graph_->nodes.size()));
    Add(std::move(op_type), since_version, std::move(inputs), {result});
    return result;
  }
  // A vector of one number.
  ValueId Number(int64_t number) {
    graph::Value value;
    value.constant =
        tensor::Tensor::FromBytes(ElementType::kInt64, {1}, std::as_bytes(std::span(&number, 1)));
    value.type.kind = graph::Type::Kind::kTensor;
    value.type.element = ElementType::kInt64;
    value.type.extents = {graph::Extent{.number = 1}};
    return graph_->AddValue(std::move(value));
  }

 private:
  const Node& node_;
  std::shared_ptr<Graph> graph_;
};

}  // namespace

std::shared_ptr<Graph> MakeScanOfEntry(const Node& node, const Graph& body, bool has_lengths,
                                       int scanned) {
  EntryGraph entry(node);
  ValueId length = graph::kNoValue;
  if (has_lengths) {
    length = entry.Apply("Reshape", 14, {entry.AddInput("length"), entry.Number(1)});
  }
  ValueIds inputs;
  for (size_t k = 0; k < body.inputs.size(); ++k) {
    inputs.push_back(entry.AddInput("input" + std::to_string(k)));
  }
  const size_t first_scanned = inputs.size() - static_cast<size_t>(scanned);
  ValueId missing = graph::kNoValue;  // How many elements a sequence lacks.
  if (has_lengths) {
    Node& extent =
        entry.Add("Shape", 15, {inputs[first_scanned]}, {AddNamed(entry.graph(), "longest")});
    extent.attributes.emplace("start", int64_t{0});
    extent.attributes.emplace("end", int64_t{1});
    missing = entry.Apply("Sub", 14, {extent.outputs[0], length});
    const ValueId zero = entry.Number(0);
    for (size_t k = first_scanned; k < inputs.size(); ++k) {
      inputs[k] = entry.Apply("Slice", 13, {inputs[k], zero, length, zero});
    }
  }

  auto inner = std::make_shared<Graph>(body);
  Captures(entry.graph()).PassOn(*inner);
  ValueIds outputs;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    outputs.push_back(AddNamed(entry.graph(), "output" + std::to_string(k)));
  }
  Node& scan = entry.Add("Scan", 9, inputs, outputs);
  scan.attributes.emplace("body", std::shared_ptr<const Graph>(std::move(inner)));
  scan.attributes.emplace("num_scan_inputs", int64_t{scanned});
  if (const auto* directions = node.FindAttribute<std::vector<int64_t>>("directions")) {
    scan.attributes.emplace("scan_input_directions", *directions);
  }
  for (size_t k = first_scanned; has_lengths && k < outputs.size(); ++k) {
    const ValueId zero = entry.Number(0);
    Node& join = entry.Add("Concat", 13, {zero, missing},
                           {AddNamed(entry.graph(), "pads" + std::to_string(k))});
    join.attributes.emplace("axis", int64_t{0});
    const ValueId pads = join.outputs[0];
    outputs[k] = entry.Apply("Pad", 18, {outputs[k], pads, graph::kNoValue, zero});
  }
  entry.graph().outputs = outputs;
  return entry.Take();
}

}  // namespace onnxifi::ops
