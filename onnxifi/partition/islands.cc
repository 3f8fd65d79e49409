// SPDX-License-Identifier: Apache-2.0
//
// Islands: first by depth, counted in changes of device: neighbours of one device and depth never
// close a circle, since every edge between different depths or devices leads to a greater depth.
// Then pairs of neighbours that are left are joined where no other way leads from one to the other.

#include "onnxifi/partition/islands.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace onnxifi::partition {
namespace {

class DisjointSets {
 public:
  explicit DisjointSets(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int32_t Find(int32_t item) {
    while (parent_[item] != item) item = parent_[item] = parent_[parent_[item]];
    return item;
  }
  // The smaller of the two stands for both.
  void Join(int32_t a, int32_t b) {
    a = Find(a);
    b = Find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<int32_t> parent_;
};

template <typename Visit>
void ForEachEdge(const Problem& problem, const Visit& visit) {
  for (const Value& value : problem.values) {
    if (value.producer == kCaller) continue;
    for (const NodeIndex consumer : value.consumers) visit(value.producer, consumer);
  }
}

// The most changes of device on a way to each node.
std::vector<int32_t> Depths(const Problem& problem, const Placement& placement) {
  std::vector<std::vector<NodeIndex>> after(static_cast<size_t>(problem.node_count));
  ForEachEdge(problem, [&](NodeIndex from, NodeIndex to) { after[from].push_back(to); });
  std::vector<int32_t> depths(static_cast<size_t>(problem.node_count), 0);
  for (NodeIndex node = 0; node < problem.node_count; ++node) {
    for (const NodeIndex next : after[node]) {
      const int32_t change = placement[node] == placement[next] ? 0 : 1;
      depths[next] = std::max(depths[next], depths[node] + change);
    }
  }
  return depths;
}

// The graph of islands while they are joined. An island is named by the smallest of its numbers.
class Joining {
 public:
  Joining(const Problem& problem, const Placement& placement, std::vector<int32_t> island_of,
          int32_t count)
      : sets_(static_cast<size_t>(count)),
        after_(static_cast<size_t>(count)),
        seen_(static_cast<size_t>(count), 0) {
    ForEachEdge(problem, [&](NodeIndex from, NodeIndex to) {
      const int32_t a = island_of[from];
      const int32_t b = island_of[to];
      if (a == b) return;
      after_[a].push_back(b);
      if (placement[from] == placement[to]) candidates_.emplace_back(a, b);
    });
    for (std::vector<int32_t>& after : after_) MakeUnique(after);
    MakeUnique(candidates_);
  }

  // What cannot be joined now never can be: joining others only adds ways. So once over all pairs.
  DisjointSets& Run() {
    for (const auto& [a, b] : candidates_) {
      const int32_t from = sets_.Find(a);
      const int32_t to = sets_.Find(b);
      if (from == to || HasDetour(from, to)) continue;
      sets_.Join(from, to);
      const int32_t kept = sets_.Find(from);
      const int32_t gone = kept == from ? to : from;
      after_[kept].insert(after_[kept].end(), after_[gone].begin(), after_[gone].end());
      after_[gone] = {};
    }
    return sets_;
  }

 private:
  template <typename T>
  static void MakeUnique(std::vector<T>& items) {
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
  }

  // Whether a way over other islands leads from one to the other; true too when the search grows
  // long.
  bool HasDetour(int32_t from, int32_t to) {
    constexpr size_t kMaxSteps = 512;
    ++search_;
    seen_[from] = search_;
    std::vector<int32_t> open;
    size_t steps = 0;
    const auto visit = [&](int32_t island, bool is_first) {
      for (const int32_t next : after_[island]) {
        const int32_t found = sets_.Find(next);
        if (found == to && !is_first) return true;
        if (found == to || seen_[found] == search_) continue;
        if (++steps > kMaxSteps) return true;
        seen_[found] = search_;
        open.push_back(found);
      }
      return false;
    };
    if (visit(from, /*is_first=*/true)) return true;
    while (!open.empty()) {
      const int32_t island = open.back();
      open.pop_back();
      if (visit(island, /*is_first=*/false)) return true;
    }
    return false;
  }

  DisjointSets sets_;
  std::vector<std::vector<int32_t>> after_;
  std::vector<std::pair<int32_t, int32_t>> candidates_;
  std::vector<int32_t> seen_;
  int32_t search_ = 0;
};

// Renumbers so that every island comes after those that it needs, the one with the smallest node
// first.
void Order(const Problem& problem, std::vector<int32_t>& island_of) {
  const auto count = static_cast<size_t>(problem.node_count);
  std::vector<std::vector<int32_t>> after(count);
  std::vector<int32_t> waits(count, 0);
  ForEachEdge(problem, [&](NodeIndex from, NodeIndex to) {
    if (island_of[from] == island_of[to]) return;
    after[island_of[from]].push_back(island_of[to]);
    ++waits[island_of[to]];
  });
  // Each is named by its smallest node here.
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (NodeIndex node = 0; node < problem.node_count; ++node) {
    if (island_of[node] == node && waits[node] == 0) ready.push(node);
  }
  std::vector<int32_t> number(count, -1);
  int32_t next_number = 0;
  while (!ready.empty()) {
    const int32_t island = ready.top();
    ready.pop();
    number[island] = next_number++;
    for (const int32_t next : after[island]) {
      if (--waits[next] == 0) ready.push(next);
    }
  }
  for (int32_t& island : island_of) island = number[island];
}

}  // namespace

std::vector<int32_t> MakeIslands(const Problem& problem, const Placement& placement) {
  const auto node_count = static_cast<size_t>(problem.node_count);
  const std::vector<int32_t> depths = Depths(problem, placement);
  DisjointSets nodes(node_count);
  ForEachEdge(problem, [&](NodeIndex from, NodeIndex to) {
    if (placement[from] == placement[to] && depths[from] == depths[to]) nodes.Join(from, to);
  });
  // Numbered by their smallest nodes, so that pairs are tried in the order of the graph.
  std::vector<int32_t> island_of(node_count, -1);
  std::vector<int32_t> smallest;
  for (size_t node = 0; node < node_count; ++node) {
    const int32_t root = nodes.Find(static_cast<int32_t>(node));
    if (root == static_cast<int32_t>(node)) {
      island_of[node] = static_cast<int32_t>(smallest.size());
      smallest.push_back(root);
    } else {
      island_of[node] = island_of[root];
    }
  }
  Joining joining(problem, placement, island_of, static_cast<int32_t>(smallest.size()));
  DisjointSets& joined = joining.Run();
  for (int32_t& island : island_of) island = smallest[joined.Find(island)];
  Order(problem, island_of);
  return island_of;
}

}  // namespace onnxifi::partition
