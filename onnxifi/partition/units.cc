// SPDX-License-Identifier: Apache-2.0
//
// Units: with an edge back along every value that cannot be cut, the nodes that must stay together
// are those on common cycles: the strongly connected components (Tarjan's algorithm, with a stack
// of its own).

#include "onnxifi/partition/units.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace onnxifi::partition {
namespace {

using Edges = std::vector<std::vector<NodeIndex>>;

class Components {
 public:
  explicit Components(const Edges& edges)
      : edges_(edges),
        order_(edges.size(), kUnseen),
        low_(edges.size(), 0),
        component_of(edges.size(), kUnseen) {
    for (size_t node = 0; node < edges.size(); ++node) {
      if (order_[node] == kUnseen) Visit(static_cast<NodeIndex>(node));
    }
  }

 private:
  static constexpr int32_t kUnseen = -1;
  struct Frame {
    NodeIndex node;
    size_t next_edge;
  };

  void Visit(NodeIndex root) {
    std::vector<Frame> frames;
    const auto enter = [&](NodeIndex node) {
      order_[node] = low_[node] = next_order_++;
      open_.push_back(node);
      frames.push_back({node, 0});
    };
    enter(root);
    while (!frames.empty()) {
      const NodeIndex node = frames.back().node;
      if (frames.back().next_edge < edges_[node].size()) {
        const NodeIndex next = edges_[node][frames.back().next_edge++];
        if (order_[next] == kUnseen) {
          enter(next);
        } else if (component_of[next] == kUnseen) {
          low_[node] = std::min(low_[node], order_[next]);
        }
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) {
        low_[frames.back().node] = std::min(low_[frames.back().node], low_[node]);
      }
      if (low_[node] == order_[node]) Close(node);
    }
  }

  void Close(NodeIndex first) {
    while (true) {
      const NodeIndex node = open_.back();
      open_.pop_back();
      component_of[node] = count;
      if (node == first) break;
    }
    ++count;
  }

  const Edges& edges_;
  std::vector<int32_t> order_;
  std::vector<int32_t> low_;
  std::vector<NodeIndex> open_;
  int32_t next_order_ = 0;

 public:
  std::vector<int32_t> component_of;
  int32_t count = 0;
};

// Numbers components in the order in which they can run, the one with the smallest node first.
std::vector<int32_t> Number(const Edges& edges, const Components& components) {
  const auto count = static_cast<size_t>(components.count);
  std::vector<NodeIndex> first(count, static_cast<NodeIndex>(edges.size()));
  std::vector<int32_t> waits(count, 0);
  std::vector<std::vector<int32_t>> after(count);
  for (size_t node = 0; node < edges.size(); ++node) {
    const int32_t from = components.component_of[node];
    first[from] = std::min(first[from], static_cast<NodeIndex>(node));
    for (const NodeIndex next : edges[node]) {
      const int32_t to = components.component_of[next];
      if (from == to) continue;
      after[from].push_back(to);
      ++waits[to];
    }
  }
  using Entry = std::pair<NodeIndex, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t component = 0; component < count; ++component) {
    if (waits[component] == 0) ready.emplace(first[component], static_cast<int32_t>(component));
  }
  std::vector<int32_t> number(count, 0);
  int32_t next_number = 0;
  while (!ready.empty()) {
    const int32_t component = ready.top().second;
    ready.pop();
    number[component] = next_number++;
    for (const int32_t to : after[component]) {
      if (--waits[to] == 0) ready.emplace(first[to], to);
    }
  }
  return number;
}

}  // namespace

Units MakeUnits(const Problem& problem) {
  Edges edges(static_cast<size_t>(problem.node_count));
  for (const Value& value : problem.values) {
    // Readers of what the caller gives and no boundary carries stay together as well.
    NodeIndex anchor = value.producer;
    if (anchor == kCaller) {
      if (value.is_cuttable || value.consumers.empty()) continue;
      anchor = value.consumers.front();
    }
    for (const NodeIndex consumer : value.consumers) {
      if (consumer == anchor) continue;
      edges[anchor].push_back(consumer);
      if (!value.is_cuttable) edges[consumer].push_back(anchor);
    }
  }
  const Components components(edges);
  const std::vector<int32_t> number = Number(edges, components);
  Units units;
  units.nodes.resize(static_cast<size_t>(components.count));
  for (NodeIndex node = 0; node < problem.node_count; ++node) {
    units.unit_of.push_back(number[components.component_of[node]]);
    units.nodes[units.unit_of.back()].push_back(node);
  }
  return units;
}

Problem Contract(const Problem& problem, const Units& units, std::vector<ValueIndex>& value_of) {
  Problem contracted;
  contracted.devices = problem.devices;
  contracted.node_count = static_cast<NodeIndex>(units.nodes.size());
  for (const std::vector<NodeIndex>& nodes : units.nodes) {
    for (DeviceIndex device = 0; device < problem.device_count(); ++device) {
      int64_t sum = 0;
      for (const NodeIndex node : nodes) {
        const int64_t time = problem.TimeNs(node, device);
        sum = sum == kRefused || time == kRefused ? kRefused : sum + time;
      }
      contracted.node_ns.push_back(sum);
    }
  }
  value_of.clear();
  for (size_t index = 0; index < problem.values.size(); ++index) {
    const Value& value = problem.values[index];
    Value kept;
    kept.size_bytes = value.size_bytes;
    kept.is_output = value.is_output;
    if (value.producer != kCaller) kept.producer = units.unit_of[value.producer];
    for (const NodeIndex consumer : value.consumers) {
      const int32_t unit = units.unit_of[consumer];
      if (unit != kept.producer) kept.consumers.push_back(unit);
    }
    std::sort(kept.consumers.begin(), kept.consumers.end());
    kept.consumers.erase(std::unique(kept.consumers.begin(), kept.consumers.end()),
                         kept.consumers.end());
    if (kept.consumers.empty() && !kept.is_output) continue;
    contracted.values.push_back(std::move(kept));
    value_of.push_back(static_cast<ValueIndex>(index));
  }
  return contracted;
}

}  // namespace onnxifi::partition
