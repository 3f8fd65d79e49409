// SPDX-License-Identifier: Apache-2.0
//
// Plans that are given: what a planner made is taken as it is, and everything else told apart.

#include "onnxifi/partition/given_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "onnxifi/partition/testing/random_problem.h"

namespace onnxifi::partition {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;

// A diamond: 0 feeds 1 and 2, which 3 joins. Device 1 takes all but node 3.
Problem Diamond() {
  Problem problem;
  problem.devices.resize(2);
  problem.node_count = 4;
  problem.node_ns = {1, 1, 1, 1, 1, 1, 1, kRefused};
  problem.values = {{.consumers = {0}, .size_bytes = 8},
                    {.producer = 0, .consumers = {1, 2}, .size_bytes = 8},
                    {.producer = 1, .consumers = {3}, .size_bytes = 8},
                    {.producer = 2, .consumers = {3}, .size_bytes = 8},
                    {.producer = 3, .size_bytes = 8, .is_output = true}};
  return problem;
}

TEST(GivenPlan, IsTakenAsItIs) {
  const PlanOrFault made = MakeGivenPlan(Diamond(), {0, 1, 0}, {0, 1, 0, 2});
  ASSERT_FALSE(made.fault.has_value());
  ASSERT_EQ(made.plan.islands.size(), 3U);
  EXPECT_THAT(made.plan.islands[0].nodes, ElementsAre(0, 2));
  EXPECT_EQ(made.plan.islands[1].device, 1);
  EXPECT_THAT(made.plan.islands[1].after, ElementsAre(0));
  EXPECT_THAT(made.plan.islands[2].after, ElementsAre(0, 1));
  EXPECT_THAT(made.plan.islands, Each(Field(&Island::duration_ns, 0)));
  EXPECT_EQ(made.plan.duration_ns, 0);
  EXPECT_EQ(made.plan.cuts.size(), 5U);
}

TEST(GivenPlan, GetsAnOrderInWhichItsIslandsCanRun) {
  const PlanOrFault made = MakeGivenPlan(Diamond(), {0, 1, 0}, {1, 1, 2, 0});
  ASSERT_FALSE(made.fault.has_value());
  EXPECT_THAT(made.plan.island_of, ElementsAre(0, 0, 1, 2));
  EXPECT_EQ(made.plan.islands[0].device, 1);
  EXPECT_EQ(made.plan.islands[1].device, 0);
}

TEST(GivenPlan, MayNotGiveANodeToADeviceThatRefusesIt) {
  const PlanOrFault made = MakeGivenPlan(Diamond(), {0, 1}, {0, 0, 1, 1});
  ASSERT_TRUE(made.fault.has_value());
  EXPECT_EQ(made.fault->kind, PlanFault::Kind::kRefused);
  EXPECT_EQ(made.fault->node, 3);
}

TEST(GivenPlan, MayNotTearWhatNothingCarries) {
  Problem problem = Diamond();
  problem.values[2].is_cuttable = false;
  EXPECT_FALSE(MakeGivenPlan(problem, {0, 1, 0}, {0, 2, 1, 2}).fault.has_value());
  const PlanOrFault made = MakeGivenPlan(problem, {0, 1}, {0, 1, 0, 0});
  ASSERT_TRUE(made.fault.has_value());
  EXPECT_EQ(made.fault->kind, PlanFault::Kind::kTorn);
  EXPECT_EQ(made.fault->node, 1);
  EXPECT_EQ(made.fault->other, 3);
  EXPECT_EQ(made.fault->value, 2);
}

TEST(GivenPlan, MayNotGoInACircle) {
  // Node 3 and node 0 together need nodes 1 and 2, which need node 0. Island 0 hangs on the circle
  // without being of it.
  Problem problem = Diamond();
  problem.node_count = 5;
  problem.node_ns.insert(problem.node_ns.end(), {1, 1});
  problem.values[4].consumers = {4};
  const PlanOrFault made = MakeGivenPlan(problem, {0, 0, 1}, {1, 2, 1, 1, 0});
  ASSERT_TRUE(made.fault.has_value());
  EXPECT_EQ(made.fault->kind, PlanFault::Kind::kCircle);
  const bool goes_in = made.fault->node == 0 && made.fault->other == 1 && made.fault->value == 1;
  const bool comes_out = made.fault->node == 1 && made.fault->other == 3 && made.fault->value == 2;
  EXPECT_TRUE(goes_in || comes_out) << made.fault->node << ' ' << made.fault->other;
}

// Whatever is given, there is a plan in which everything runs after what it needs, or a fault that
// is one.
TEST(GivenPlan, IsSoundOrNone) {
  std::mt19937 random(20);
  int sound = 0;
  int faulty = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const Problem problem =
        testing::RandomProblem(seed, {.node_count = 3 + static_cast<int>(random() % 9),
                                      .device_count = 3,
                                      .claim_percent = 97,
                                      .uncuttable_percent = 5});
    constexpr int32_t kIslands = 3;
    std::vector<int32_t> island_of;
    for (NodeIndex node = 0; node < problem.node_count; ++node) {
      // Mostly in the order of the nodes, which closes few circles.
      island_of.push_back(random() % 8 == 0 ? static_cast<int32_t>(random() % kIslands)
                                            : node * kIslands / problem.node_count);
    }
    // Every island has a node.
    if (std::set<int32_t>(island_of.begin(), island_of.end()).size() < kIslands) continue;
    std::vector<DeviceIndex> devices;
    for (int32_t island = 0; island < kIslands; ++island) {
      devices.push_back(static_cast<DeviceIndex>(random() % 3));
    }
    const PlanOrFault made = MakeGivenPlan(problem, devices, island_of);
    if (!made.fault) {
      ++sound;
      for (const Value& value : problem.values) {
        if (value.producer == kCaller) continue;
        for (const NodeIndex consumer : value.consumers) {
          const int32_t from = made.plan.island_of[value.producer];
          const int32_t to = made.plan.island_of[consumer];
          ASSERT_LE(from, to);
          ASSERT_TRUE(from == to || value.is_cuttable);
        }
      }
      for (NodeIndex node = 0; node < problem.node_count; ++node) {
        const DeviceIndex device = made.plan.islands[made.plan.island_of[node]].device;
        ASSERT_EQ(device, devices[island_of[node]]);
        ASSERT_TRUE(problem.Claims(device, node));
      }
      continue;
    }
    ++faulty;
    const PlanFault& fault = *made.fault;
    if (fault.kind == PlanFault::Kind::kRefused) {
      ASSERT_FALSE(problem.Claims(devices[island_of[fault.node]], fault.node));
    } else {
      ASSERT_NE(island_of[fault.node], island_of[fault.other]);
    }
    if (fault.kind == PlanFault::Kind::kTorn) {
      ASSERT_FALSE(problem.values[fault.value].is_cuttable);
    }
  }
  EXPECT_GT(sound, 50);
  EXPECT_GT(faulty, 50);
}

// Every plan of the planner's is one that may be given.
TEST(GivenPlan, MayBeAnyThatWasMade) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const Problem problem = testing::RandomProblem(
        seed, {.node_count = 12, .device_count = 3, .uncuttable_percent = 10});
    const PlanOrGaps planned = MakePlan(problem);
    if (planned.plan.islands.empty()) continue;
    std::vector<DeviceIndex> devices;
    for (const Island& island : planned.plan.islands) devices.push_back(island.device);
    const PlanOrFault made = MakeGivenPlan(problem, devices, planned.plan.island_of);
    ASSERT_FALSE(made.fault.has_value());
    EXPECT_EQ(made.plan.island_of, planned.plan.island_of);
  }
}

}  // namespace
}  // namespace onnxifi::partition
