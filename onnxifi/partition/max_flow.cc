// SPDX-License-Identifier: Apache-2.0
//
// MaxFlow: what a node pays on either side cancels out before the search, and a node that pays more
// for one side than all its edges could ever make good goes to the other without a search; that
// settles most of them.

#include "onnxifi/partition/max_flow.h"

#include <algorithm>

namespace onnxifi::partition {
namespace {

// A sum of capacities some of which are infinite.
struct CapacitySum {
  int64_t finite = 0;
  int32_t infinite_count = 0;

  void Add(int64_t capacity) {
    if (capacity >= MaxFlow::kInfinite) {
      ++infinite_count;
    } else {
      finite += capacity;
    }
  }
  void Remove(int64_t capacity) {
    if (capacity >= MaxFlow::kInfinite) {
      --infinite_count;
    } else {
      finite -= capacity;
    }
  }
};

}  // namespace

void MaxFlow::DecideWithoutSearch() {
  const size_t node_count = from_source_.size();
  places_.assign(node_count, Side::kOpen);
  excess_.resize(node_count);
  std::vector<CapacitySum> sum_out(node_count);
  std::vector<CapacitySum> sum_in(node_count);
  std::vector<int32_t> first(node_count + 1, 0);
  for (const Arc& arc : arcs_) {
    sum_out[arc.from].Add(arc.capacity);
    sum_in[arc.to].Add(arc.capacity);
    ++first[arc.from + 1];
    ++first[arc.to + 1];
  }
  for (size_t node = 0; node < node_count; ++node) first[node + 1] += first[node];
  std::vector<int32_t> arcs_of(arcs_.size() * 2);
  std::vector<int32_t> place(first.begin(), first.end() - 1);
  for (size_t arc = 0; arc < arcs_.size(); ++arc) {
    arcs_of[place[arcs_[arc].from]++] = static_cast<int32_t>(arc);
    arcs_of[place[arcs_[arc].to]++] = static_cast<int32_t>(arc);
  }
  std::vector<int32_t> waiting;
  const auto decide = [&](int32_t node) {
    if (places_[node] != Side::kOpen) return;
    // Only what is better by far: of two cheapest cuts the one with fewer nodes at the source.
    if (sum_out[node].infinite_count == 0 && excess_[node] > sum_out[node].finite) {
      places_[node] = Side::kSource;
    } else if (sum_in[node].infinite_count == 0 && -excess_[node] >= sum_in[node].finite) {
      places_[node] = Side::kSink;
    } else {
      return;
    }
    waiting.push_back(node);
  };
  for (size_t node = 0; node < node_count; ++node) {
    excess_[node] = from_source_[node] - to_sink_[node];
    decide(static_cast<int32_t>(node));
  }
  while (!waiting.empty()) {
    const int32_t node = waiting.back();
    waiting.pop_back();
    for (int32_t position = first[node]; position < first[node + 1]; ++position) {
      const Arc& arc = arcs_[arcs_of[position]];
      const int32_t other = arc.from == node ? arc.to : arc.from;
      if (places_[other] != Side::kOpen) continue;
      if (arc.from == node) {
        sum_in[other].Remove(arc.capacity);
        if (places_[node] == Side::kSource) {
          excess_[other] = std::min(excess_[other] + arc.capacity, kInfinite);
        }
      } else {
        sum_out[other].Remove(arc.capacity);
        if (places_[node] == Side::kSink) {
          excess_[other] = std::max(excess_[other] - arc.capacity, -kInfinite);
        }
      }
      decide(other);
    }
  }
}

void MaxFlow::Build() {
  open_.clear();
  number_.assign(places_.size(), -1);
  for (size_t node = 0; node < places_.size(); ++node) {
    if (places_[node] != Side::kOpen) continue;
    number_[node] = static_cast<int32_t>(open_.size());
    open_.push_back(static_cast<int32_t>(node));
  }
  const auto source = static_cast<int32_t>(open_.size());
  const int32_t sink = source + 1;
  std::vector<Arc> arcs;
  for (const Arc& arc : arcs_) {
    if (number_[arc.from] < 0 || number_[arc.to] < 0) continue;
    arcs.push_back({number_[arc.from], number_[arc.to], arc.capacity});
  }
  for (int32_t number = 0; number < source; ++number) {
    const int64_t excess = excess_[open_[number]];
    if (excess > 0) arcs.push_back({source, number, excess});
    if (excess < 0) arcs.push_back({number, sink, -excess});
  }
  first_.assign(static_cast<size_t>(source) + 3, 0);
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
  const auto source = static_cast<int32_t>(open_.size());
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
  const auto source = static_cast<int32_t>(open_.size());
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
  DecideWithoutSearch();
  Build();
  while (Layer()) {
    next_.assign(first_.begin(), first_.end() - 1);
    path_.clear();
    while (Augment() > 0) {
    }
  }
  std::vector<bool> side(places_.size());
  for (size_t node = 0; node < side.size(); ++node) {
    side[node] = number_[node] >= 0 ? level_[number_[node]] >= 0 : places_[node] == Side::kSource;
  }
  return side;
}

}  // namespace onnxifi::partition
