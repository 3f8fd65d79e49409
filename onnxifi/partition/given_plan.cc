// SPDX-License-Identifier: Apache-2.0
//
// GivenPlan: islands are taken in an order in which they can run, the first of those that can; what
// is left when none can is a circle, or needs one.

#include "onnxifi/partition/given_plan.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace onnxifi::partition {
namespace {

// An edge between two islands, with what lies on it.
struct Edge {
  int32_t from = 0;
  int32_t to = 0;
  NodeIndex producer = 0;
  NodeIndex consumer = 0;
  ValueIndex value = 0;
};

std::vector<Edge> EdgesOf(const Problem& problem, const std::vector<int32_t>& island_of) {
  std::vector<Edge> edges;
  for (size_t index = 0; index < problem.values.size(); ++index) {
    const Value& value = problem.values[index];
    if (value.producer == kCaller) continue;
    for (const NodeIndex consumer : value.consumers) {
      if (island_of[value.producer] == island_of[consumer]) continue;
      edges.push_back({island_of[value.producer], island_of[consumer], value.producer, consumer,
                       static_cast<ValueIndex>(index)});
    }
  }
  return edges;
}

std::optional<PlanFault> FindTorn(const Problem& problem, const std::vector<int32_t>& island_of) {
  for (size_t index = 0; index < problem.values.size(); ++index) {
    const Value& value = problem.values[index];
    if (value.is_cuttable || value.consumers.empty()) continue;
    const NodeIndex anchor = value.producer == kCaller ? value.consumers.front() : value.producer;
    for (const NodeIndex consumer : value.consumers) {
      if (island_of[consumer] == island_of[anchor]) continue;
      return PlanFault{PlanFault::Kind::kTorn, anchor, consumer, static_cast<ValueIndex>(index)};
    }
  }
  return std::nullopt;
}

// The new number of each island; -1 for those that can never run.
std::vector<int32_t> Number(const std::vector<Edge>& edges, size_t count) {
  std::vector<int32_t> waits(count, 0);
  std::vector<std::vector<int32_t>> after(count);
  for (const Edge& edge : edges) {
    after[edge.from].push_back(edge.to);
    ++waits[edge.to];
  }
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t island = 0; island < count; ++island) {
    if (waits[island] == 0) ready.push(static_cast<int32_t>(island));
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
  return number;
}

// An edge of a circle among the islands without a number.
PlanFault FindCircle(const std::vector<Edge>& edges, const std::vector<int32_t>& number) {
  // Each of them waits for another of them: going back from one to the next comes round.
  std::vector<const Edge*> into(number.size(), nullptr);
  const Edge* last = nullptr;
  for (const Edge& edge : edges) {
    if (number[edge.from] >= 0 || number[edge.to] >= 0) continue;
    into[edge.to] = &edge;
    last = &edge;
  }
  for (size_t step = 0; step < number.size(); ++step) last = into[last->from];
  return {PlanFault::Kind::kCircle, last->producer, last->consumer, last->value};
}

}  // namespace

PlanOrFault MakeGivenPlan(const Problem& problem, const std::vector<DeviceIndex>& devices,
                          std::vector<int32_t> island_of) {
  PlanOrFault result;
  for (NodeIndex node = 0; node < problem.node_count; ++node) {
    if (problem.Claims(devices[island_of[node]], node)) continue;
    result.fault = PlanFault{PlanFault::Kind::kRefused, node, node, 0};
    return result;
  }
  if (result.fault = FindTorn(problem, island_of); result.fault) return result;
  const std::vector<Edge> edges = EdgesOf(problem, island_of);
  const std::vector<int32_t> number = Number(edges, devices.size());
  if (std::find(number.begin(), number.end(), -1) != number.end()) {
    result.fault = FindCircle(edges, number);
    return result;
  }
  std::vector<DeviceIndex> placement;
  for (int32_t& island : island_of) {
    placement.push_back(devices[island]);
    island = number[island];
  }
  result.plan = DescribePlan(problem, placement, std::move(island_of));
  result.plan.duration_ns = 0;
  for (Island& island : result.plan.islands) island.start_ns = island.duration_ns = 0;
  for (Cut& cut : result.plan.cuts) cut.duration_ns = 0;
  return result;
}

}  // namespace onnxifi::partition
