// SPDX-License-Identifier: Apache-2.0
//
// Twins: one group after the other is left to one of its devices, as long as the plan cuts between
// twins, so that at most as many plans are made as there are devices, and one.

#include "onnxifi/partition/twins.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "onnxifi/partition/units.h"

namespace onnxifi::partition {
namespace {

using Group = std::vector<DeviceIndex>;

bool Contains(const Group& group, DeviceIndex device) {
  return std::ranges::find(group, device) != group.end();
}

bool CutsWithin(const Plan& plan, const Group& group) {
  std::set<DeviceIndex> used;
  for (const Island& island : plan.islands) {
    if (Contains(group, island.device)) used.insert(island.device);
  }
  return used.size() > 1;
}

bool ClaimsAll(const Problem& problem, DeviceIndex device, std::span<const NodeIndex> nodes) {
  return std::ranges::all_of(nodes, [&](NodeIndex node) { return problem.Claims(device, node); });
}

// Leaves nothing to the twins of `kept` that any other device takes.
Problem LeaveTo(DeviceIndex kept, const Group& group, const Units& units, Problem problem) {
  for (const std::vector<NodeIndex>& unit : units.nodes) {
    bool has_other = false;
    for (DeviceIndex device = 0; device < problem.device_count(); ++device) {
      const bool is_twin = device != kept && Contains(group, device);
      has_other = has_other || (!is_twin && ClaimsAll(problem, device, unit));
    }
    if (!has_other) continue;
    for (const DeviceIndex device : group) {
      if (device == kept) continue;
      for (const NodeIndex node : unit) {
        problem.node_ns[static_cast<size_t>(node) * problem.devices.size() +
                        static_cast<size_t>(device)] = kRefused;
      }
    }
  }
  return problem;
}

int64_t CountNodesOfTwins(const Plan& plan, const Group& group, DeviceIndex kept) {
  int64_t count = 0;
  for (const Island& island : plan.islands) {
    if (island.device == kept || !Contains(group, island.device)) continue;
    count += static_cast<int64_t>(island.nodes.size());
  }
  return count;
}

struct Choice {
  Problem problem;
  Plan plan;
  int64_t twin_nodes = 0;

  bool IsBetterThan(const Choice& other) const {
    return std::tuple(twin_nodes, plan.duration_ns) <
           std::tuple(other.twin_nodes, other.plan.duration_ns);
  }
};

Choice ChooseOf(const Group& group, const Units& units, const Problem& problem) {
  std::optional<Choice> best;
  for (const DeviceIndex kept : group) {
    Choice choice;
    choice.problem = LeaveTo(kept, group, units, problem);
    choice.plan = MakePlan(choice.problem).plan;
    choice.twin_nodes = CountNodesOfTwins(choice.plan, group, kept);
    if (!best || choice.IsBetterThan(*best)) best = std::move(choice);
  }
  return *std::move(best);
}

}  // namespace

bool CutsBetweenTwins(const Plan& plan, const Twins& twins) {
  return std::ranges::any_of(twins, [&](const Group& group) { return CutsWithin(plan, group); });
}

Plan MakePlanWithoutTwins(Problem problem, const Twins& twins) {
  const Units units = MakeUnits(problem);
  Twins left = twins;
  Plan plan = MakePlan(problem).plan;
  while (true) {
    const auto cut =
        std::ranges::find_if(left, [&](const Group& group) { return CutsWithin(plan, group); });
    if (cut == left.end()) return plan;
    Choice choice = ChooseOf(*cut, units, problem);
    problem = std::move(choice.problem);
    plan = std::move(choice.plan);
    left.erase(cut);
  }
}

}  // namespace onnxifi::partition
