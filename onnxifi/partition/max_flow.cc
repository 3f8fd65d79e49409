// SPDX-License-Identifier: Apache-2.0
//
// MaxFlow: what a node pays on either side cancels out before the search, so that most nodes touch
// only the source or only the sink.

#include "onnxifi/partition/max_flow.h"

#include <algorithm>

namespace onnxifi::partition {

void MaxFlow::Build() {
  const auto node_count = static_cast<int32_t>(from_source_.size());
  const int32_t source = node_count;
  const int32_t sink = node_count + 1;
  std::vector<Arc> arcs = arcs_;
  for (int32_t node = 0; node < node_count; ++node) {
    const int64_t common = std::min(from_source_[node], to_sink_[node]);
    if (from_source_[node] > common) arcs.push_back({source, node, from_source_[node] - common});
    if (to_sink_[node] > common) arcs.push_back({node, sink, to_sink_[node] - common});
  }
  first_.assign(static_cast<size_t>(node_count) + 3, 0);
  for (const Arc& arc : arcs) {
    ++first_[arc.from + 1];
    ++first_[arc.to + 1];
  }
  for (size_t node = 1; node < first_.size(); ++node) first_[node] += first_[node - 1];
  halves_.resize(arcs.size() * 2);
  std::vector<int32_t> place(first_.begin(), first_.end() - 1);
  for (const Arc& arc : arcs) {
    const int32_t there = place[arc.from]++;
    const int32_t back = place[arc.to]++;
    halves_[there] = {arc.to, back, arc.capacity};
    halves_[back] = {arc.from, there, 0};
  }
}

bool MaxFlow::Layer() {
  const auto source = static_cast<int32_t>(from_source_.size());
  const int32_t sink = source + 1;
  level_.assign(static_cast<size_t>(sink) + 1, -1);
  queue_.clear();
  queue_.push_back(source);
  level_[source] = 0;
  for (size_t head = 0; head < queue_.size(); ++head) {
    const int32_t node = queue_[head];
    // Ways of this phase are as long as the shortest.
    if (level_[sink] >= 0 && level_[node] + 1 >= level_[sink]) break;
    for (int32_t half = first_[node]; half < first_[node + 1]; ++half) {
      const int32_t to = halves_[half].to;
      if (halves_[half].left == 0 || level_[to] >= 0) continue;
      level_[to] = level_[node] + 1;
      queue_.push_back(to);
    }
  }
  return level_[sink] >= 0;
}

// One way from the source to the sink along rising levels; 0 when there is none left.
int64_t MaxFlow::Augment() {
  const auto source = static_cast<int32_t>(from_source_.size());
  const int32_t sink = source + 1;
  int32_t node = path_.empty() ? source : halves_[path_.back()].to;
  while (node != sink) {
    int32_t& half = next_[node];
    while (half < first_[node + 1] &&
           (halves_[half].left == 0 || level_[halves_[half].to] != level_[node] + 1)) {
      ++half;
    }
    if (half < first_[node + 1]) {
      path_.push_back(half);
      node = halves_[half].to;
      continue;
    }
    if (path_.empty()) return 0;
    // A dead end: never again in this phase.
    level_[node] = -1;
    node = halves_[halves_[path_.back()].back].to;
    path_.pop_back();
  }
  int64_t flow = kInfinite;
  for (const int32_t half : path_) flow = std::min(flow, halves_[half].left);
  size_t kept = path_.size();
  for (size_t step = path_.size(); step-- > 0;) {
    Half& half = halves_[path_[step]];
    half.left -= flow;
    halves_[half.back].left += flow;
    if (half.left == 0) kept = step;
  }
  // The way up to the first edge that is full is the start of the next.
  path_.resize(kept);
  return flow;
}

std::vector<bool> MaxFlow::SourceSide() {
  Build();
  while (Layer()) {
    next_.assign(first_.begin(), first_.end() - 1);
    path_.clear();
    while (Augment() > 0) {
    }
  }
  std::vector<bool> side(from_source_.size());
  for (size_t node = 0; node < side.size(); ++node) side[node] = level_[node] >= 0;
  return side;
}

}  // namespace onnxifi::partition
