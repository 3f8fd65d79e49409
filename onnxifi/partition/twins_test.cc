// SPDX-License-Identifier: Apache-2.0
//
// Twins: properties of plans over random problems, and which device of a group has its nodes.

#include "onnxifi/partition/twins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "onnxifi/partition/testing/random_problem.h"
#include "onnxifi/partition/units.h"

namespace onnxifi::partition {
namespace {

// A chain; `node_ns` as the problem has it.
Problem MakeChain(NodeIndex node_count, std::vector<DeviceCost> devices,
                  std::vector<int64_t> node_ns) {
  Problem problem;
  problem.devices = std::move(devices);
  problem.node_count = node_count;
  problem.node_ns = std::move(node_ns);
  problem.values = {{.consumers = {0}, .size_bytes = 8}};
  for (NodeIndex node = 0; node < node_count; ++node) {
    Value& value = problem.values.emplace_back();
    value.producer = node;
    value.size_bytes = 8;
    if (node + 1 < node_count) value.consumers = {node + 1};
    value.is_output = node + 1 == node_count;
  }
  return problem;
}

std::vector<DeviceIndex> DevicesOf(const Plan& plan) {
  std::vector<DeviceIndex> devices;
  for (const int32_t island : plan.island_of) {
    devices.push_back(plan.islands[static_cast<size_t>(island)].device);
  }
  return devices;
}

using Devices = std::vector<DeviceIndex>;

TEST(Twins, AreNotCutBetweenForWhatATableSays) {
  const Problem problem = MakeChain(2, {{.launch_ns = 1}, {.launch_ns = 1}}, {5, 90, 90, 6});
  const Plan cut = MakePlan(problem).plan;
  EXPECT_EQ(DevicesOf(cut), (Devices{0, 1}));
  EXPECT_TRUE(CutsBetweenTwins(cut, {{0, 1}}));
  EXPECT_FALSE(CutsBetweenTwins(cut, {}));
  EXPECT_EQ(DevicesOf(MakePlanWithoutTwins(problem, {{0, 1}})), (Devices{0, 0}));
  EXPECT_EQ(DevicesOf(MakePlanWithoutTwins(problem, {})), (Devices{0, 1}));
}

TEST(Twins, HaveTheirNodesOnTheOneThatTakesLeastTime) {
  const std::vector<DeviceCost> costs(3, DeviceCost{.launch_ns = 1});
  // The last is no twin and slow.
  const Problem problem = MakeChain(3, costs, {50, 9, 900, 5, 60, 900, 70, 9, 900});
  const Twins twins = {{0, 1}};
  EXPECT_EQ(DevicesOf(MakePlan(problem).plan), (Devices{1, 0, 1}));
  EXPECT_EQ(DevicesOf(MakePlanWithoutTwins(problem, twins)), (Devices{1, 1, 1}));
}

TEST(Twins, AreCutBetweenForNodesThatNobodyElseTakesAndForFewest) {
  const std::vector<DeviceCost> costs(3, DeviceCost{.launch_ns = 1});
  constexpr int64_t kNo = kRefused;
  // Nodes 0 and 3 are device 0's alone, node 2 device 1's alone; node 1 is of all.
  const Problem problem = MakeChain(4, costs, {5, kNo, kNo, 5, 1, 7, kNo, 5, kNo, 5, kNo, kNo});
  const Plan plan = MakePlanWithoutTwins(problem, {{0, 1}});
  EXPECT_EQ(DevicesOf(plan), (Devices{0, 0, 1, 0}));
  // Where another takes it, it goes there, be that slower.
  const Problem with_other = MakeChain(4, costs, {5, kNo, kNo, 5, 1, 7, kNo, 5, 99, 5, kNo, kNo});
  EXPECT_EQ(DevicesOf(MakePlanWithoutTwins(with_other, {{0, 1}})), (Devices{0, 0, 2, 0}));
}

TEST(Twins, KeepToOneDeviceOfAGroupInRandomProblems) {
  int cut_count = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    testing::RandomOptions options;
    options.node_count = 14;
    options.device_count = 6;
    options.uncuttable_percent = seed % 3 == 0 ? 20 : 0;
    options.claim_percent = seed % 2 == 0 ? 100 : 60;
    // Of several groups, what one leaves out may be all that another has beside twins.
    const bool is_claimed = options.claim_percent == 100;
    const Twins twins = is_claimed ? Twins{{0, 3}, {1, 2, 4}} : Twins{{1, 2, 4}};
    const Problem problem = testing::RandomProblem(seed, options);
    const PlanOrGaps made = MakePlan(problem);
    if (!made.gaps.empty()) continue;
    cut_count += CutsBetweenTwins(made.plan, twins) ? 1 : 0;
    const Plan plan = MakePlanWithoutTwins(problem, twins);
    const Devices devices = DevicesOf(plan);
    for (NodeIndex node = 0; node < problem.node_count; ++node) {
      ASSERT_TRUE(problem.Claims(devices[static_cast<size_t>(node)], node)) << seed;
    }
    const Units units = MakeUnits(problem);
    for (const std::vector<DeviceIndex>& group : twins) {
      std::set<DeviceIndex> used;
      for (const std::vector<NodeIndex>& unit : units.nodes) {
        // What an outsider takes needs no second twin.
        const auto takes = [&](DeviceIndex device) {
          return std::ranges::all_of(unit,
                                     [&](NodeIndex node) { return problem.Claims(device, node); });
        };
        bool has_outsider = false;
        for (DeviceIndex device = 0; device < problem.device_count(); ++device) {
          if (std::ranges::find(group, device) == group.end() && takes(device)) has_outsider = true;
        }
        const DeviceIndex device = devices[static_cast<size_t>(unit.front())];
        if (has_outsider && std::ranges::find(group, device) != group.end()) used.insert(device);
      }
      ASSERT_LE(used.size(), 1U) << seed;
    }
    if (is_claimed) {
      ASSERT_FALSE(CutsBetweenTwins(plan, twins)) << seed;
    }
  }
  // Without the rule there would be such.
  EXPECT_GT(cut_count, 20);
}

}  // namespace
}  // namespace onnxifi::partition
