// SPDX-License-Identifier: Apache-2.0
//
// Plans: properties of every plan, what is predicted, and how the work grows.

#include "onnxifi/partition/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "onnxifi/partition/testing/random_problem.h"

namespace onnxifi::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Plan, RunsIndependentIslandsAtTheSameTime) {
  // Two branches that only one device each takes, then a join on the first.
  Problem problem;
  problem.devices = {{.launch_ns = 5}, {.launch_ns = 10, .enter = {3, 1000}, .leave = {4, 2000}}};
  problem.node_count = 3;
  problem.node_ns = {100, kRefused, kRefused, 50, 7, kRefused};
  problem.values = {{.consumers = {0, 1}, .size_bytes = 8},
                    {.producer = 0, .consumers = {2}, .size_bytes = 8},
                    {.producer = 1, .consumers = {2}, .size_bytes = 8},
                    {.producer = 2, .size_bytes = 8, .is_output = true}};
  const PlanOrGaps made = MakePlan(problem);
  ASSERT_THAT(made.gaps, IsEmpty());
  const Plan& plan = made.plan;
  ASSERT_THAT(plan.islands, SizeIs(2));
  EXPECT_EQ(plan.islands[0].device, 1);
  EXPECT_EQ(plan.islands[0].start_ns, 0);
  EXPECT_EQ(plan.islands[0].duration_ns, 10 + 50 + (3 + 8) + (4 + 16));
  EXPECT_THAT(plan.islands[1].nodes, ElementsAre(0, 2));
  EXPECT_THAT(plan.islands[1].after, ElementsAre(0));
  EXPECT_EQ(plan.islands[1].start_ns, 91);
  EXPECT_EQ(plan.islands[1].duration_ns, 5 + 107);
  EXPECT_EQ(plan.duration_ns, 91 + 112);
  ASSERT_THAT(plan.cuts, SizeIs(4));
  EXPECT_EQ(plan.cuts[2].value, 2);
  EXPECT_EQ(plan.cuts[2].from, 0);
  EXPECT_EQ(plan.cuts[2].to, 1);
  EXPECT_EQ(plan.cuts[2].duration_ns, 4 + 16);
}

TEST(Plan, TellsWhichNodesNobodyTakesTogether) {
  Problem problem;
  problem.devices.resize(2);
  problem.node_count = 4;
  problem.node_ns = {1, 1, 1, kRefused, kRefused, 1, kRefused, kRefused};
  problem.values = {{.producer = 1, .consumers = {2}, .is_cuttable = false}};
  const PlanOrGaps made = MakePlan(problem);
  EXPECT_THAT(made.gaps, ElementsAre(ElementsAre(1, 2), ElementsAre(3)));
  EXPECT_THAT(made.plan.islands, IsEmpty());
}

TEST(Plan, IsEmptyForNothing) {
  Problem problem;
  problem.devices.resize(1);
  const PlanOrGaps made = MakePlan(problem);
  EXPECT_THAT(made.gaps, IsEmpty());
  EXPECT_THAT(made.plan.islands, IsEmpty());
}

void CheckPlan(const Problem& problem, const Plan& plan) {
  std::vector<int> times_placed(static_cast<size_t>(problem.node_count), 0);
  for (size_t index = 0; index < plan.islands.size(); ++index) {
    const Island& island = plan.islands[index];
    ASSERT_FALSE(island.nodes.empty());
    ASSERT_TRUE(std::is_sorted(island.nodes.begin(), island.nodes.end()));
    for (const NodeIndex node : island.nodes) {
      ++times_placed[node];
      ASSERT_EQ(plan.island_of[node], static_cast<int32_t>(index));
      ASSERT_TRUE(problem.Claims(island.device, node));
    }
    for (const int32_t before : island.after) {
      ASSERT_LT(before, static_cast<int32_t>(index));
      ASSERT_GE(island.start_ns, plan.islands[before].start_ns + plan.islands[before].duration_ns);
    }
    ASSERT_LE(island.start_ns + island.duration_ns, plan.duration_ns);
  }
  ASSERT_THAT(times_placed, ::testing::Each(1));
  for (const Value& value : problem.values) {
    int32_t together = -1;
    for (const NodeIndex consumer : value.consumers) {
      const int32_t island = plan.island_of[consumer];
      if (value.producer != kCaller) {
        const int32_t from = plan.island_of[value.producer];
        // Never back: so islands need one another in no circle, and none leaves and comes back.
        ASSERT_LE(from, island);
        ASSERT_TRUE(value.is_cuttable || from == island);
        if (from != island) {
          ASSERT_THAT(plan.islands[island].after, ::testing::Contains(from));
        }
      } else if (!value.is_cuttable) {
        ASSERT_TRUE(together == -1 || together == island);
        together = island;
      }
    }
  }
  for (DeviceIndex device = 0; device < problem.device_count(); ++device) {
    bool claims_all = true;
    for (NodeIndex node = 0; node < problem.node_count; ++node) {
      claims_all = claims_all && problem.Claims(device, node);
    }
    if (!claims_all) continue;
    const auto count = static_cast<size_t>(problem.node_count);
    const Plan alone = DescribePlan(problem, std::vector<DeviceIndex>(count, device),
                                    std::vector<int32_t>(count, 0));
    ASSERT_LE(plan.duration_ns, alone.duration_ns);
  }
}

TEST(Plan, KeepsItsPromisesForRandomGraphs) {
  int planned = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem =
        testing::RandomProblem(seed, {.node_count = 1 + static_cast<int>(seed % 60),
                                      .device_count = 1 + static_cast<int>(seed / 60 % 4),
                                      .claim_percent = 50 + static_cast<int>(seed % 5) * 12,
                                      .uncuttable_percent = seed % 3 == 0 ? 10 : 0,
                                      .has_host = seed % 2 == 0});
    const PlanOrGaps made = MakePlan(problem);
    if (!made.gaps.empty()) continue;
    ++planned;
    ASSERT_NO_FATAL_FAILURE(CheckPlan(problem, made.plan));
    std::mt19937 random(seed);
    const PlanOrGaps again = MakePlan(testing::ShuffleValues(problem, random));
    ASSERT_EQ(again.plan.island_of, made.plan.island_of);
    ASSERT_EQ(again.plan.duration_ns, made.plan.duration_ns);
  }
  EXPECT_GE(planned, 2000);
}

std::chrono::nanoseconds TimeOf(int node_count) {
  const Problem problem = testing::RandomProblem(
      7, {.node_count = node_count, .device_count = 4, .claim_percent = 70, .has_host = true});
  auto best = std::chrono::nanoseconds::max();
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    const PlanOrGaps made = MakePlan(problem);
    const auto taken = std::chrono::steady_clock::now() - start;
    EXPECT_THAT(made.gaps, IsEmpty());
    best = std::min(best, std::chrono::nanoseconds(taken));
  }
  return best;
}

TEST(Plan, GrowsLittleFasterThanTheGraph) {
  const auto small = TimeOf(1000);
  const auto large = TimeOf(10000);
  ::testing::Test::RecordProperty("large_us", static_cast<int>(large.count() / 1000));
  std::printf("1,000 nodes x 4 devices: %.2f ms; 10,000: %.2f ms\n",
              static_cast<double>(small.count()) / 1e6, static_cast<double>(large.count()) / 1e6);
  // n log n would be 13; a square 100. The rest is what a busy machine may add.
  EXPECT_LT(large.count(), 45 * small.count());
}

}  // namespace
}  // namespace onnxifi::partition
