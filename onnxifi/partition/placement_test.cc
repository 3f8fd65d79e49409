// SPDX-License-Identifier: Apache-2.0
//
// Placement against all placements of small graphs.

#include "onnxifi/partition/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "onnxifi/partition/testing/random_problem.h"

namespace onnxifi::partition {
namespace {

using ::testing::ElementsAre;

// Calls `visit` with every placement of nodes on devices that `may_take` them; the others stay.
void ForEachPlacement(const Problem& problem, Placement placement,
                      const std::function<bool(NodeIndex, DeviceIndex)>& may_take,
                      const std::function<void(const Placement&)>& visit, NodeIndex node = 0) {
  if (node == problem.node_count) return visit(placement);
  const DeviceIndex own = placement[node];
  bool is_visited = false;
  for (DeviceIndex device = 0; device < problem.device_count(); ++device) {
    if (!problem.Claims(device, node) || !may_take(node, device)) continue;
    is_visited = true;
    placement[node] = device;
    ForEachPlacement(problem, placement, may_take, visit, node + 1);
  }
  if (is_visited) return;
  placement[node] = own;
  ForEachPlacement(problem, placement, may_take, visit, node + 1);
}

int64_t LeastTotal(const Problem& problem, const Placement& start,
                   const std::function<bool(NodeIndex, DeviceIndex)>& may_take) {
  int64_t least = INT64_MAX;
  ForEachPlacement(problem, start, may_take, [&](const Placement& placement) {
    least = std::min(least, TotalNs(problem, placement));
  });
  return least;
}

TEST(Placement, CountsACopyOncePerDeviceAndTheLeavingOnce) {
  Problem problem;
  problem.devices = {{.launch_ns = 10, .leave = {100, 0}}, {.launch_ns = 20, .enter = {7, 1000}}};
  problem.node_count = 4;
  problem.node_ns = {1, 1, 1, 1, 1, 1, 1, 1};
  problem.values = {{.consumers = {0}, .size_bytes = 5},
                    {.producer = 0, .consumers = {1, 2, 3}, .size_bytes = 5, .is_output = true}};
  EXPECT_EQ(TotalNs(problem, {0, 0, 0, 0}), 4 + 100);
  EXPECT_EQ(TotalNs(problem, {0, 1, 1, 0}), 4 + 100 + (7 + 5 + 20));
  EXPECT_EQ(TotalNs(problem, {1, 1, 1, 1}), 4 + (7 + 5));
  EXPECT_EQ(TotalNs(problem, {1, 0, 1, 0}), 4 + (7 + 5) + 10);
}

TEST(Placement, LeavesASmallNodeWhereItsNeighboursAre) {
  Problem problem;
  problem.devices.resize(2);
  problem.devices[0].launch_ns = problem.devices[1].launch_ns = 5;
  problem.node_count = 3;
  // The middle is faster elsewhere, by less than going there and back costs, then by more.
  problem.node_ns = {10, kRefused, 13, 4, 10, kRefused};
  problem.values = {{.producer = 0, .consumers = {1}}, {.producer = 1, .consumers = {2}}};
  EXPECT_THAT(AssignDevices(problem), ElementsAre(0, 0, 0));
  problem.node_ns[2] = 15;
  EXPECT_THAT(AssignDevices(problem), ElementsAre(0, 1, 0));
}

TEST(Placement, IsTheCheapestOfAllWithTwoDevices) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const Problem problem = testing::RandomProblem(
        seed, {.node_count = 1 + static_cast<int>(seed % 10), .claim_percent = 90});
    const Placement placement = AssignDevices(problem);
    for (NodeIndex node = 0; node < problem.node_count; ++node) {
      ASSERT_TRUE(problem.Claims(placement[node], node)) << "seed " << seed;
    }
    ASSERT_EQ(TotalNs(problem, placement),
              LeastTotal(problem, placement, [](NodeIndex, DeviceIndex) { return true; }))
        << "seed " << seed;
  }
}

TEST(Placement, IsTheCheapestOfAllThatDifferInTwoDevicesWithMore) {
  int best_count = 0;
  constexpr int kSeeds = 600;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const Problem problem = testing::RandomProblem(
        seed, {.node_count = 2 + static_cast<int>(seed % 6), .device_count = 3});
    const Placement placement = AssignDevices(problem);
    const int64_t total = TotalNs(problem, placement);
    for (DeviceIndex absent = 0; absent < 3; ++absent) {
      // Nodes of the absent device stay; all others go anywhere else.
      ASSERT_EQ(total, LeastTotal(problem, placement,
                                  [&](NodeIndex node, DeviceIndex device) {
                                    return placement[node] == absent ? device == absent
                                                                     : device != absent;
                                  }))
          << "seed " << seed;
      Placement alone(static_cast<size_t>(problem.node_count), absent);
      bool claims_all = true;
      for (NodeIndex node = 0; node < problem.node_count; ++node) {
        claims_all = claims_all && problem.Claims(absent, node);
      }
      if (claims_all) {
        ASSERT_LE(total, TotalNs(problem, alone)) << "seed " << seed;
      }
    }
    const int64_t least =
        LeastTotal(problem, placement, [](NodeIndex, DeviceIndex) { return true; });
    ASSERT_LE(total, least * 2) << "seed " << seed;
    best_count += total == least ? 1 : 0;
  }
  EXPECT_GE(best_count, kSeeds * 95 / 100);
}

TEST(Placement, DoesNotDependOnTheOrderOfValuesOrNodes) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const Problem problem = testing::RandomProblem(
        seed, {.node_count = 3 + static_cast<int>(seed % 40), .device_count = 2 + (seed % 3 == 0)});
    const Placement placement = AssignDevices(problem);
    std::mt19937 random(seed);
    ASSERT_EQ(AssignDevices(testing::ShuffleValues(problem, random)), placement) << "seed " << seed;
    std::vector<NodeIndex> node_of;
    const Placement shuffled = AssignDevices(testing::ShuffleNodes(problem, random, node_of));
    for (size_t node = 0; node < node_of.size(); ++node) {
      ASSERT_EQ(shuffled[node], placement[node_of[node]]) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace onnxifi::partition
