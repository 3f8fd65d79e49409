// SPDX-License-Identifier: Apache-2.0
//
// OrderNodes: one walk tells whether the nodes are in order, which most models' are; else a
// depth-first search with a stack of its own, so that a model cannot exhaust the thread's.

#include "backends/core/model/node_order.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "backends/core/model/node_reads.h"
#include "backends/core/model/refusal.h"

namespace onnxifi::model {
namespace {

using base::Result;
using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
// Views of the nodes' own strings.
using Makers = std::unordered_map<std::string_view, int>;

Makers MakersIn(const Nodes& nodes) {
  Makers makers;
  makers.reserve(2 * static_cast<size_t>(nodes.size()));
  for (int position = 0; position < nodes.size(); ++position) {
    for (const std::string& output : nodes[position].output()) {
      // Of two nodes that make a value the import refuses the second.
      if (!output.empty()) makers.emplace(output, position);
    }
  }
  return makers;
}

bool HasSubgraph(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(),
                     [](const onnx::AttributeProto& attribute) {
                       return attribute.has_g() || attribute.graphs_size() > 0;
                     });
}

// The nodes that make what a node reads, itself among them where it reads its own result.
std::vector<int> MakersFor(const onnx::NodeProto& node, const Makers& makers) {
  std::vector<int> found;
  const auto add = [&](const std::string& name) {
    const auto maker = makers.find(name);
    if (maker != makers.end()) found.push_back(maker->second);
  };
  if (HasSubgraph(node)) {
    for (const std::string& name : NamesReadBy(node)) add(name);
  } else {
    for (const std::string& name : node.input()) add(name);
  }
  return found;
}

class Search {
 public:
  Search(const Nodes& nodes, const Makers& makers)
      : nodes_(nodes), makers_(makers), states_(static_cast<size_t>(nodes.size())) {}

  Result<std::vector<int>> Run() {
    for (int position = 0; position < nodes_.size(); ++position) {
      if (states_[position] == State::kNew) ONNXIFI_RETURN_IF_ERROR(Visit(position));
    }
    return std::move(order_);
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kDone };
  struct Frame {
    int position;
    std::vector<int> makers;
    size_t next = 0;
  };

  void Open(int position) {
    states_[position] = State::kOpen;
    stack_.push_back({position, MakersFor(nodes_[position], makers_)});
  }

  base::Status Visit(int first) {
    Open(first);
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      if (frame.next == frame.makers.size()) {
        states_[frame.position] = State::kDone;
        order_.push_back(frame.position);
        stack_.pop_back();
        continue;
      }
      const int maker = frame.makers[frame.next++];
      if (states_[maker] == State::kOpen) return RefuseCycle(maker);
      if (states_[maker] == State::kNew) Open(maker);
    }
    return base::Ok();
  }

  base::Status RefuseCycle(int position) const {
    constexpr size_t kMaxNamed = 8;
    std::string names;
    const auto begin = std::find_if(stack_.begin(), stack_.end(),
                                    [&](const Frame& frame) { return frame.position == position; });
    const auto count = static_cast<size_t>(stack_.end() - begin);
    for (size_t k = 0; k < std::min(count, kMaxNamed); ++k) {
      const int member = (stack_.end() - 1 - static_cast<std::ptrdiff_t>(k))->position;
      const onnx::NodeProto& node = nodes_[member];
      names += (k == 0 ? "" : ", ") + std::to_string(member) + " (" + node.op_type() + ")";
    }
    if (count > kMaxNamed) names += ", ...";
    return Invalid("The graph has a cycle of " + std::to_string(count) + " nodes: " + names +
                   "; each reads what the next one in this list is made from.");
  }

  const Nodes& nodes_;
  const Makers& makers_;
  std::vector<State> states_;
  std::vector<Frame> stack_;
  std::vector<int> order_;
};

}  // namespace

Result<std::vector<int>> OrderNodes(const Nodes& nodes) {
  if (nodes.size() < 2) return std::vector<int>();
  const Makers makers = MakersIn(nodes);
  bool is_sorted = true;
  for (int position = 0; position < nodes.size() && is_sorted; ++position) {
    for (const int maker : MakersFor(nodes[position], makers)) {
      is_sorted = is_sorted && maker < position;
    }
  }
  if (is_sorted) return std::vector<int>();
  return Search(nodes, makers).Run();
}

}  // namespace onnxifi::model
