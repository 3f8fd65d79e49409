// SPDX-License-Identifier: Apache-2.0
//
// ConstantFolding: nodes are handed to the evaluator as graphs of their own: those that compute
// with small constants as groups, others one by one, several such graphs at a time.

#include "backends/core/graph/constant_folding.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace onnxifi::graph {
namespace {

Type TypeOf(const tensor::Tensor& tensor) {
  Type type{.kind = Type::Kind::kTensor, .element = tensor.type()};
  type.extents.emplace();
  for (const int64_t extent : tensor.extents()) type.extents->push_back({.number = extent});
  return type;
}

// Nodes that are computed together.
struct Group {
  std::vector<size_t> nodes;     // in their order
  std::vector<ValueId> outputs;  // what they make that others read, or nobody
  int64_t replaced_bytes = 0;    // of constants that nothing else reads
};

// The group alone, what it reads of others as the constants they are.
Graph MakeGraphOf(const Group& group, const Graph& graph) {
  Graph part;
  std::map<ValueId, ValueId> ids;
  const auto add = [&](ValueId value) {
    if (value == kNoValue) return kNoValue;
    const auto [found, is_new] = ids.try_emplace(value, kNoValue);
    if (is_new) found->second = part.AddValue(graph.values[static_cast<size_t>(value)]);
    return found->second;
  };
  for (const size_t k : group.nodes) {
    Node copy = graph.nodes[k];
    for (ValueId& input : copy.inputs) input = add(input);
    for (ValueId& output : copy.outputs) output = add(output);
    part.nodes.push_back(std::move(copy));
  }
  for (const ValueId output : group.outputs) part.outputs.push_back(add(output));
  return part;
}

bool HasSubgraph(const Node& node) {
  bool has_subgraph = false;
  ForEachSubgraph(node, [&](const std::shared_ptr<const Graph>&) { has_subgraph = true; });
  return has_subgraph;
}

// Whether a node makes floats of a matrix of integers of a byte and less, ONNX's operator or the
// one of its name in another domain. It stays: a device may multiply the integers, and else folds
// the step that the node becomes.
bool DequantizesWeights(const Node& node, const Graph& graph) {
  if (node.op_type != "DequantizeLinear" || node.inputs.empty() || node.inputs[0] == kNoValue) {
    return false;
  }
  const std::optional<tensor::Tensor>& weights =
      graph.values[static_cast<size_t>(node.inputs[0])].constant;
  return weights && weights->extents().size() >= 2 && tensor::IsInteger(weights->type()) &&
         tensor::BitWidth(weights->type()) <= 8;
}

// Gradient differentiates nodes of its own graph, those of constants too.
bool IsGradient(const Node& node) {
  return node.op_type == "Gradient" && node.domain == "ai.onnx.preview.training";
}

// One run over one graph. To prepare a graph takes longer than to compute with a few numbers: a
// node that reads small constants alone forms a group with those that read its results and small
// constants, with what these read, and so on. A group needs nothing that is not known.
class Folding {
 public:
  Folding(Graph& graph, Evaluator& evaluator)
      : graph_(graph),
        evaluator_(evaluator),
        use_counts_(graph.UseCounts()),
        producers_(graph.Producers()),
        readers_(graph.values.size()),
        states_(graph.nodes.size(), State::kWaits) {
    const bool has_gradient = std::ranges::any_of(graph.nodes, IsGradient);
    for (size_t k = 0; k < graph.nodes.size(); ++k) {
      for (const ValueId input : graph.nodes[k].inputs) {
        if (input != kNoValue) readers_[static_cast<size_t>(input)].push_back(k);
      }
      if (has_gradient || HasSubgraph(graph.nodes[k])) states_[k] = State::kStays;
    }
    for (size_t k = 0; k < graph.nodes.size(); ++k) Look(k);
  }

  // Whether anything was folded.
  bool Run() {
    while (!ready_.empty()) FoldSome();
    size_t position = 0;
    const size_t folded = std::erase_if(
        graph_.nodes, [&](const Node&) { return states_[position++] == State::kFolded; });
    return folded != 0;
  }

 private:
  enum class State : uint8_t {
    kWaits,   // as far as is known, it cannot be computed or not in a group
    kGroups,  // it can, with others or without
    kAlone,   // not in a group: one was refused
    kFolded,
    kStays,
  };

  void FoldSome() {
    std::vector<Group> groups;
    std::vector<Evaluator::Request> requests;
    // What takes the place of constants is held beside them until all are done.
    constexpr int64_t kEnoughBytes = int64_t{4} << 20;
    int64_t replaced_bytes = 0;
    while (!ready_.empty() && groups.size() < std::max<size_t>(1, evaluator_.at_once()) &&
           replaced_bytes < kEnoughBytes) {
      groups.push_back(TakeGroup(*ready_.begin()));
      const Group& group = groups.back();
      replaced_bytes += group.replaced_bytes;
      requests.push_back({.graph = MakeGraphOf(group, graph_),
                          .limit_bytes = std::max(kMaxFoldedBytes, group.replaced_bytes)});
      if (group.nodes.size() > 1) requests.back().value_limit_bytes = kMaxGroupedBytes;
    }
    std::vector<Evaluator::Answer> answers = evaluator_.EvaluateAll(requests);
    for (size_t k = 0; k < groups.size(); ++k) {
      const int64_t limit_bytes = requests[k].limit_bytes;
      // Its inputs are to go with the node.
      requests[k] = {};
      if (answers[k].ok() && AreWithin(limit_bytes, *answers[k])) {
        Accept(groups[k], *std::move(answers[k]));
      } else {
        Refuse(groups[k]);
      }
    }
  }

  static bool AreWithin(int64_t limit_bytes, const std::vector<tensor::Tensor>& results) {
    for (const tensor::Tensor& result : results) {
      if (__builtin_sub_overflow(limit_bytes, result.size_bytes(), &limit_bytes)) return false;
    }
    return limit_bytes >= 0;
  }

  // What can be done with a node by what is known of its inputs, and then with its readers.
  void Look(size_t first) {
    std::vector<size_t> open = {first};
    while (!open.empty()) {
      const size_t k = open.back();
      open.pop_back();
      State& state = states_[k];
      if (state == State::kFolded || state == State::kStays) continue;
      bool is_ready = true;
      bool may_group = state == State::kWaits;
      for (const ValueId input : graph_.nodes[k].inputs) {
        if (input == kNoValue) continue;
        const auto& constant = graph_.values[static_cast<size_t>(input)].constant;
        is_ready = is_ready && constant;
        may_group = may_group &&
                    (constant ? constant->size_bytes() <= kMaxGroupedBytes : IsMadeInGroup(input));
      }
      if (is_ready && DequantizesWeights(graph_.nodes[k], graph_)) {
        state = State::kStays;
        ready_.erase(k);
        continue;
      }
      if (is_ready) ready_.insert(k);
      if (!may_group) continue;
      state = State::kGroups;
      ForEachReader(k, [&](size_t reader) { open.push_back(reader); });
    }
  }

  bool IsMadeInGroup(ValueId value) const {
    const NodeId producer = ProducerOf(value);
    return producer != kNoNode && states_[static_cast<size_t>(producer)] == State::kGroups;
  }

  template <typename Visit>
  void ForEachReader(size_t k, const Visit& visit) const {
    for (const ValueId output : graph_.nodes[k].outputs) {
      if (output == kNoValue) continue;
      for (const size_t reader : readers_[static_cast<size_t>(output)]) visit(reader);
    }
  }

  // A node that is ready, and all that is computed together with it.
  Group TakeGroup(size_t first) {
    std::set<size_t> nodes = {first};
    if (states_[first] == State::kGroups) {
      std::vector<size_t> open = {first};
      const auto join = [&](size_t k) {
        if (states_[k] == State::kGroups && nodes.insert(k).second) open.push_back(k);
      };
      while (!open.empty()) {
        const size_t k = open.back();
        open.pop_back();
        ForEachReader(k, join);
        for (const ValueId input : graph_.nodes[k].inputs) {
          const NodeId producer = input == kNoValue ? kNoNode : ProducerOf(input);
          if (producer != kNoNode) join(static_cast<size_t>(producer));
        }
      }
    }
    Group group;
    group.nodes.assign(nodes.begin(), nodes.end());
    for (const size_t k : nodes) ready_.erase(k);
    std::map<ValueId, int> reads;
    for (const size_t k : nodes) {
      for (const ValueId input : graph_.nodes[k].inputs) {
        if (input != kNoValue) ++reads[input];
      }
    }
    for (const size_t k : nodes) {
      for (const ValueId output : graph_.nodes[k].outputs) {
        if (output == kNoValue) continue;
        const auto found = reads.find(output);
        if (found == reads.end() || found->second != UseCount(output)) {
          group.outputs.push_back(output);
        }
      }
    }
    for (const auto& [value, count] : reads) {
      const auto& constant = graph_.values[static_cast<size_t>(value)].constant;
      if (constant && count == UseCount(value)) group.replaced_bytes += constant->size_bytes();
    }
    return group;
  }

  void Accept(const Group& group, std::vector<tensor::Tensor> results) {
    assert(group.outputs.size() == results.size());
    for (const size_t k : group.nodes) {
      states_[k] = State::kFolded;
      const Node& node = graph_.nodes[k];
      const bool reads_weight = std::ranges::any_of(node.inputs, [&](ValueId input) {
        return input != kNoValue && graph_.values[static_cast<size_t>(input)].is_weight;
      });
      for (const ValueId output : node.outputs) {
        if (output != kNoValue) graph_.values[static_cast<size_t>(output)].is_weight = reads_weight;
      }
    }
    for (size_t k = 0; k < results.size(); ++k) {
      Value& value = graph_.values[static_cast<size_t>(group.outputs[k])];
      value.type = TypeOf(results[k]);
      value.is_weight = value.is_weight || results[k].element_count() > kMaxStructuralCount;
      value.constant = std::move(results[k]);
    }
    for (const size_t k : group.nodes) {
      // What nothing reads any more need not wait for dead nodes to be removed: weights are large.
      for (const ValueId input : graph_.nodes[k].inputs) {
        if (input == kNoValue || --use_counts_[static_cast<size_t>(input)] != 0) continue;
        graph_.values[static_cast<size_t>(input)].constant.reset();
      }
      ForEachReader(k, [&](size_t reader) { Look(reader); });
    }
  }

  // A node by itself stays; each of several is tried by itself.
  void Refuse(const Group& group) {
    const State state = group.nodes.size() > 1 ? State::kAlone : State::kStays;
    for (const size_t k : group.nodes) states_[k] = state;
    for (const size_t k : group.nodes) Look(k);
  }

  NodeId ProducerOf(ValueId value) const { return producers_[static_cast<size_t>(value)]; }
  int UseCount(ValueId value) const { return use_counts_[static_cast<size_t>(value)]; }

  Graph& graph_;
  Evaluator& evaluator_;
  std::vector<int> use_counts_;               // by value: in nodes not folded yet
  std::vector<NodeId> producers_;             // by value
  std::vector<std::vector<size_t>> readers_;  // by value: nodes
  std::vector<State> states_;                 // by node
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
