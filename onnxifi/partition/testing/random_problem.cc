// SPDX-License-Identifier: Apache-2.0
//
// RandomProblem: every number is drawn by remainder, so that a seed means the same everywhere.

#include "onnxifi/partition/testing/random_problem.h"

#include <algorithm>
#include <utility>

namespace onnxifi::partition::testing {
namespace {

class Drawer {
 public:
  explicit Drawer(std::mt19937& random) : random_(random) {}
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  bool Percent(int percent) { return Below(100) < percent; }

 private:
  std::mt19937& random_;
};

template <typename T>
void Shuffle(std::vector<T>& items, std::mt19937& random) {
  Drawer draw(random);
  for (size_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[static_cast<size_t>(draw.Below(static_cast<int64_t>(left)))]);
  }
}

}  // namespace

Problem RandomProblem(uint32_t seed, const RandomOptions& options) {
  std::mt19937 random(seed);
  Drawer draw(random);
  Problem problem;
  for (int device = 0; device < options.device_count; ++device) {
    DeviceCost cost;
    cost.launch_ns = draw.Below(2000);
    if (draw.Percent(60)) {
      cost.enter = {draw.Below(3000), draw.Below(400)};
      cost.leave = {draw.Below(3000), draw.Below(400)};
    }
    problem.devices.push_back(cost);
  }
  const auto add_value = [&](NodeIndex producer) {
    Value value;
    value.producer = producer;
    value.size_bytes = draw.Percent(10) ? 0 : int64_t{1} << draw.Below(18);
    value.is_cuttable = !draw.Percent(options.uncuttable_percent);
    value.is_output = producer != kCaller && draw.Percent(8);
    problem.values.push_back(std::move(value));
  };
  for (int64_t inputs = 1 + draw.Below(3); inputs > 0; --inputs) add_value(kCaller);
  problem.node_count = options.node_count;
  // How far back most values are read: chains of few, a bush of many.
  const int64_t reach = 2 + draw.Below(8);
  for (NodeIndex node = 0; node < options.node_count; ++node) {
    for (int64_t reads = 1 + draw.Below(3); reads > 0; --reads) {
      const auto count = static_cast<int64_t>(problem.values.size());
      const int64_t back =
          draw.Percent(15) ? draw.Below(count) : draw.Below(std::min(count, reach));
      std::vector<NodeIndex>& consumers =
          problem.values[static_cast<size_t>(count - 1 - back)].consumers;
      if (consumers.empty() || consumers.back() != node) consumers.push_back(node);
    }
    for (int64_t outputs = draw.Percent(15) ? 2 + draw.Below(2) : 1; outputs > 0; --outputs) {
      add_value(node);
    }
    bool is_claimed = false;
    std::vector<int64_t> times;
    for (int device = 0; device < options.device_count; ++device) {
      const bool claims = (device == 0 && options.has_host) || draw.Percent(options.claim_percent);
      // Few different times, so that there are ties.
      times.push_back(claims ? draw.Below(6) * 1000 : kRefused);
      is_claimed = is_claimed || claims;
    }
    if (!is_claimed && options.uncuttable_percent == 0) {
      times[static_cast<size_t>(draw.Below(options.device_count))] = draw.Below(6) * 1000;
    }
    problem.node_ns.insert(problem.node_ns.end(), times.begin(), times.end());
  }
  return problem;
}

Problem ShuffleValues(const Problem& problem, std::mt19937& random) {
  Problem shuffled = problem;
  Shuffle(shuffled.values, random);
  for (Value& value : shuffled.values) Shuffle(value.consumers, random);
  return shuffled;
}

Problem ShuffleNodes(const Problem& problem, std::mt19937& random,
                     std::vector<NodeIndex>& node_of) {
  const auto count = static_cast<size_t>(problem.node_count);
  std::vector<int32_t> waits(count, 0);
  std::vector<std::vector<NodeIndex>> after(count);
  for (const Value& value : problem.values) {
    if (value.producer == kCaller) continue;
    for (const NodeIndex consumer : value.consumers) {
      after[value.producer].push_back(consumer);
      ++waits[consumer];
    }
  }
  Drawer draw(random);
  std::vector<NodeIndex> ready;
  for (size_t node = 0; node < count; ++node) {
    if (waits[node] == 0) ready.push_back(static_cast<NodeIndex>(node));
  }
  node_of.clear();
  std::vector<NodeIndex> new_of(count, 0);
  while (!ready.empty()) {
    const auto pick = static_cast<size_t>(draw.Below(static_cast<int64_t>(ready.size())));
    const NodeIndex node = ready[pick];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
    new_of[node] = static_cast<NodeIndex>(node_of.size());
    node_of.push_back(node);
    for (const NodeIndex next : after[node]) {
      if (--waits[next] == 0) ready.push_back(next);
    }
  }
  Problem shuffled = problem;
  for (Value& value : shuffled.values) {
    if (value.producer != kCaller) value.producer = new_of[value.producer];
    for (NodeIndex& consumer : value.consumers) consumer = new_of[consumer];
    std::sort(value.consumers.begin(), value.consumers.end());
  }
  shuffled.node_ns.clear();
  for (const NodeIndex node : node_of) {
    for (DeviceIndex device = 0; device < problem.device_count(); ++device) {
      shuffled.node_ns.push_back(problem.TimeNs(node, device));
    }
  }
  return shuffled;
}

}  // namespace onnxifi::partition::testing
