// SPDX-License-Identifier: Apache-2.0
//
// Plan: units, placement, islands, then the time that they should take.

#include "onnxifi/partition/plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "onnxifi/partition/islands.h"
#include "onnxifi/partition/placement.h"
#include "onnxifi/partition/units.h"

namespace onnxifi::partition {
namespace {

// The islands of a placement of units, by node.
std::vector<int32_t> IslandsOfNodes(const Units& units,
                                    const std::vector<int32_t>& island_of_unit) {
  std::vector<int32_t> island_of;
  for (const int32_t unit : units.unit_of) island_of.push_back(island_of_unit[unit]);
  return island_of;
}

Placement OfNodes(const Units& units, const Placement& of_units) {
  Placement placement;
  for (const int32_t unit : units.unit_of) placement.push_back(of_units[unit]);
  return placement;
}

void AddCuts(const Problem& problem, Plan& plan) {
  std::vector<int32_t> readers;
  for (size_t index = 0; index < problem.values.size(); ++index) {
    const Value& value = problem.values[index];
    const int32_t from = value.producer == kCaller ? kCaller : plan.island_of[value.producer];
    readers.clear();
    for (const NodeIndex consumer : value.consumers) {
      const int32_t island = plan.island_of[consumer];
      if (island != from) readers.push_back(island);
    }
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    const int64_t leave =
        from == kCaller ? 0
                        : problem.devices[plan.islands[from].device].leave.TimeNs(value.size_bytes);
    if (value.is_output && from != kCaller) {
      plan.cuts.push_back({static_cast<ValueIndex>(index), from, kCaller, value.size_bytes, leave});
    }
    for (const int32_t to : readers) {
      const int64_t enter = problem.devices[plan.islands[to].device].enter.TimeNs(value.size_bytes);
      plan.cuts.push_back(
          {static_cast<ValueIndex>(index), from, to, value.size_bytes, leave + enter});
      if (from != kCaller) plan.islands[to].after.push_back(from);
    }
  }
  for (Island& island : plan.islands) {
    std::sort(island.after.begin(), island.after.end());
    island.after.erase(std::unique(island.after.begin(), island.after.end()), island.after.end());
  }
}

// Each device takes its islands in their order, as soon as what they need is there. Copies count to
// the island that makes or needs them.
void AddTimes(const Problem& problem, Plan& plan) {
  for (Island& island : plan.islands) {
    island.duration_ns = problem.devices[island.device].launch_ns;
    for (const NodeIndex node : island.nodes) {
      island.duration_ns += problem.TimeNs(node, island.device);
    }
  }
  ValueIndex last_left = -1;
  for (const Cut& cut : plan.cuts) {
    if (cut.to != kCaller) {
      plan.islands[cut.to].duration_ns +=
          problem.devices[plan.islands[cut.to].device].enter.TimeNs(cut.size_bytes);
    }
    if (cut.from == kCaller || cut.value == last_left) continue;
    last_left = cut.value;
    plan.islands[cut.from].duration_ns +=
        problem.devices[plan.islands[cut.from].device].leave.TimeNs(cut.size_bytes);
  }
  std::vector<int64_t> free_at(problem.devices.size(), 0);
  for (Island& island : plan.islands) {
    island.start_ns = free_at[island.device];
    for (const int32_t before : island.after) {
      const Island& needed = plan.islands[before];
      island.start_ns = std::max(island.start_ns, needed.start_ns + needed.duration_ns);
    }
    free_at[island.device] = island.start_ns + island.duration_ns;
    plan.duration_ns = std::max(plan.duration_ns, free_at[island.device]);
  }
}

// The plan on the device that is fastest alone, if one claims everything.
std::optional<Plan> PlanAlone(const Problem& problem) {
  std::optional<Plan> best;
  for (DeviceIndex device = 0; device < problem.device_count(); ++device) {
    bool claims_all = true;
    for (NodeIndex node = 0; claims_all && node < problem.node_count; ++node) {
      claims_all = problem.Claims(device, node);
    }
    if (!claims_all) continue;
    const auto count = static_cast<size_t>(problem.node_count);
    Plan plan = DescribePlan(problem, Placement(count, device), std::vector<int32_t>(count, 0));
    if (!best || plan.duration_ns < best->duration_ns) best = std::move(plan);
  }
  return best;
}

}  // namespace

Plan DescribePlan(const Problem& problem, const Placement& placement,
                  std::vector<int32_t> island_of) {
  Plan plan;
  plan.island_of = std::move(island_of);
  for (NodeIndex node = 0; node < problem.node_count; ++node) {
    const auto island = static_cast<size_t>(plan.island_of[node]);
    if (plan.islands.size() <= island) plan.islands.resize(island + 1);
    plan.islands[island].device = placement[node];
    plan.islands[island].nodes.push_back(node);
  }
  AddCuts(problem, plan);
  AddTimes(problem, plan);
  return plan;
}

PlanOrGaps MakePlan(const Problem& problem) {
  PlanOrGaps result;
  if (problem.node_count == 0) return result;
  const Units units = MakeUnits(problem);
  std::vector<ValueIndex> value_of;
  const Problem contracted = Contract(problem, units, value_of);
  for (NodeIndex unit = 0; unit < contracted.node_count; ++unit) {
    bool is_claimed = false;
    for (DeviceIndex device = 0; device < contracted.device_count(); ++device) {
      is_claimed = is_claimed || contracted.Claims(device, unit);
    }
    if (!is_claimed) result.gaps.push_back(units.nodes[unit]);
  }
  if (!result.gaps.empty()) return result;
  const Placement placement = AssignDevices(contracted);
  result.plan = DescribePlan(problem, OfNodes(units, placement),
                             IslandsOfNodes(units, MakeIslands(contracted, placement)));
  // Islands that wait for one another can be slower than the sum of their parts says, and what one
  // device takes alone is launched once, which that sum leaves out.
  std::optional<Plan> alone = PlanAlone(problem);
  if (alone && alone->duration_ns <= result.plan.duration_ns) result.plan = *std::move(alone);
  return result;
}

}  // namespace onnxifi::partition
