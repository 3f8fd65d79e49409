// SPDX-License-Identifier: Apache-2.0
//
// ConstantFolding: each node is handed to the evaluator as a graph of that one node.

#include "backends/core/graph/constant_folding.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace onnxifi::graph {
namespace {

Type TypeOf(const tensor::Tensor& tensor) {
  Type type{.kind = Type::Kind::kTensor, .element = tensor.type()};
  type.extents.emplace();
  for (const int64_t extent : tensor.extents()) type.extents->push_back({.number = extent});
  return type;
}

// The node alone, its inputs as the constants they are.
Graph MakeOneNodeGraph(const Graph& graph, const Node& node) {
  Graph one;
  Node copy = node;
  for (ValueId& input : copy.inputs) {
    if (input == kNoValue) continue;
    input = one.AddValue(graph.values[static_cast<size_t>(input)]);
  }
  for (ValueId& output : copy.outputs) {
    if (output == kNoValue) continue;
    output = one.AddValue(graph.values[static_cast<size_t>(output)]);
    one.outputs.push_back(output);
  }
  one.nodes.push_back(std::move(copy));
  return one;
}

}  // namespace

bool ConstantFolding::FoldNode(Graph& graph, const Node& node, std::vector<int>& use_counts) {
  bool is_foldable = true;
  bool reads_weight = false;
  int64_t replaced_bytes = 0;  // of constants that nothing else reads
  for (const ValueId input : node.inputs) {
    if (input == kNoValue) continue;
    const Value& value = graph.values[static_cast<size_t>(input)];
    if (!value.constant) return false;
    reads_weight |= value.is_weight;
    if (use_counts[static_cast<size_t>(input)] == 1) replaced_bytes += value.constant->size_bytes();
  }
  ForEachSubgraph(node, [&](const std::shared_ptr<const Graph>&) { is_foldable = false; });
  if (!is_foldable) return false;

  const int64_t limit_bytes = std::max(kLargestFoldedBytes, replaced_bytes);
  base::Result<std::vector<tensor::Tensor>> results =
      evaluator_.Evaluate(MakeOneNodeGraph(graph, node), limit_bytes);
  if (!results.ok()) return false;
  [[maybe_unused]] const auto is_present = [](ValueId output) { return output != kNoValue; };
  assert(std::ranges::count_if(node.outputs, is_present) ==
         static_cast<std::ptrdiff_t>(results->size()));
  int64_t result_bytes = 0;
  for (const tensor::Tensor& result : *results) {
    if (__builtin_add_overflow(result_bytes, result.size_bytes(), &result_bytes)) return false;
  }
  if (result_bytes > limit_bytes) return false;

  size_t position = 0;
  for (const ValueId output : node.outputs) {
    if (output == kNoValue) continue;
    Value& value = graph.values[static_cast<size_t>(output)];
    tensor::Tensor& result = (*results)[position++];
    value.type = TypeOf(result);
    value.is_weight = reads_weight || result.element_count() > kLargestStructuralCount;
    value.constant = std::move(result);
  }
  // What nothing reads any more need not wait for dead nodes to be removed: weights are large.
  for (const ValueId input : node.inputs) {
    if (input == kNoValue || --use_counts[static_cast<size_t>(input)] != 0) continue;
    graph.values[static_cast<size_t>(input)].constant.reset();
  }
  return true;
}

base::Result<bool> ConstantFolding::Run(Graph& graph) {
  std::vector<int> use_counts = graph.UseCounts();
  const size_t count = graph.nodes.size();
  std::erase_if(graph.nodes, [&](const Node& node) { return FoldNode(graph, node, use_counts); });
  return graph.nodes.size() != count;
}

}  // namespace onnxifi::graph
