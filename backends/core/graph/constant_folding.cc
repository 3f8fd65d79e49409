// SPDX-License-Identifier: Apache-2.0
//
// ConstantFolding: each node is handed to the evaluator as a graph of that one node, together with
// others whose inputs are known by then.

#include "backends/core/graph/constant_folding.h"

#include <algorithm>
#include <cassert>
#include <set>
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

bool IsFoldable(const Graph& graph, const Node& node) {
  bool is_foldable = true;
  for (const ValueId input : node.inputs) {
    is_foldable = is_foldable && (input == kNoValue ||
                                  graph.values[static_cast<size_t>(input)].constant.has_value());
  }
  ForEachSubgraph(node, [&](const std::shared_ptr<const Graph>&) { is_foldable = false; });
  return is_foldable;
}

// One run over one graph.
class Folding {
 public:
  Folding(Graph& graph, Evaluator& evaluator)
      : graph_(graph),
        evaluator_(evaluator),
        use_counts_(graph.UseCounts()),
        is_folded_(graph.nodes.size()),
        readers_(graph.values.size()) {
    for (size_t k = 0; k < graph.nodes.size(); ++k) {
      for (const ValueId input : graph.nodes[k].inputs) {
        if (input != kNoValue) readers_[static_cast<size_t>(input)].push_back(k);
      }
      if (IsFoldable(graph, graph.nodes[k])) ready_.insert(k);
    }
  }

  // Whether anything was folded.
  bool Run() {
    while (!ready_.empty()) FoldSome();
    size_t position = 0;
    std::erase_if(graph_.nodes, [&](const Node&) { return is_folded_[position++]; });
    return position != graph_.nodes.size();
  }

 private:
  void FoldSome() {
    std::vector<size_t> nodes;
    std::vector<Evaluator::Request> requests;
    while (!ready_.empty() && nodes.size() < std::max<size_t>(1, evaluator_.at_once())) {
      nodes.push_back(*ready_.begin());
      ready_.erase(ready_.begin());
      const Node& node = graph_.nodes[nodes.back()];
      requests.push_back({MakeOneNodeGraph(graph_, node), LimitFor(node)});
    }
    std::vector<Evaluator::Answer> answers = evaluator_.EvaluateAll(requests);
    for (size_t k = 0; k < nodes.size(); ++k) {
      if (!answers[k].ok()) continue;
      const int64_t limit_bytes = requests[k].limit_bytes;
      // Its inputs are to go with the node.
      requests[k] = {};
      Accept(nodes[k], *std::move(answers[k]), limit_bytes);
    }
  }

  int64_t LimitFor(const Node& node) const {
    int64_t replaced_bytes = 0;  // of constants that nothing else reads
    for (const ValueId input : node.inputs) {
      if (input == kNoValue || use_counts_[static_cast<size_t>(input)] != 1) continue;
      replaced_bytes += graph_.values[static_cast<size_t>(input)].constant->size_bytes();
    }
    return std::max(kLargestFoldedBytes, replaced_bytes);
  }

  void Accept(size_t k, std::vector<tensor::Tensor> results, int64_t limit_bytes) {
    const Node& node = graph_.nodes[k];
    [[maybe_unused]] const auto is_present = [](ValueId output) { return output != kNoValue; };
    assert(std::ranges::count_if(node.outputs, is_present) ==
           static_cast<std::ptrdiff_t>(results.size()));
    int64_t result_bytes = 0;
    for (const tensor::Tensor& result : results) {
      if (__builtin_add_overflow(result_bytes, result.size_bytes(), &result_bytes)) return;
    }
    if (result_bytes > limit_bytes) return;

    is_folded_[k] = true;
    const bool reads_weight = std::ranges::any_of(node.inputs, [&](ValueId input) {
      return input != kNoValue && graph_.values[static_cast<size_t>(input)].is_weight;
    });
    size_t position = 0;
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      Value& value = graph_.values[static_cast<size_t>(output)];
      tensor::Tensor& result = results[position++];
      value.type = TypeOf(result);
      value.is_weight = reads_weight || result.element_count() > kLargestStructuralCount;
      value.constant = std::move(result);
    }
    // What nothing reads any more need not wait for dead nodes to be removed: weights are large.
    for (const ValueId input : node.inputs) {
      if (input == kNoValue || --use_counts_[static_cast<size_t>(input)] != 0) continue;
      graph_.values[static_cast<size_t>(input)].constant.reset();
    }
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      for (const size_t reader : readers_[static_cast<size_t>(output)]) {
        if (IsFoldable(graph_, graph_.nodes[reader])) ready_.insert(reader);
      }
    }
  }

  Graph& graph_;
  Evaluator& evaluator_;
  std::vector<int> use_counts_;               // by value: in nodes not folded yet
  std::vector<bool> is_folded_;               // by node
  std::vector<std::vector<size_t>> readers_;  // by value: nodes
  std::set<size_t> ready_;                    // nodes all of whose inputs are constants
};

}  // namespace

std::vector<Evaluator::Answer> Evaluator::EvaluateAll(std::span<const Request> requests) {
  std::vector<Answer> answers;
  answers.reserve(requests.size());
  for (const Request& request : requests) answers.push_back(Evaluate(request));
  return answers;
}

base::Result<bool> ConstantFolding::Run(Graph& graph) { return Folding(graph, evaluator_).Run(); }

}  // namespace onnxifi::graph
