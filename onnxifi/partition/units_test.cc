// SPDX-License-Identifier: Apache-2.0
//
// Units: what must run together, and the problem that is left.

#include "onnxifi/partition/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnxifi/partition/testing/random_problem.h"

namespace onnxifi::partition {
namespace {

using ::testing::ElementsAre;

// A problem of one device that takes `node` seconds for each.
Problem Chain(NodeIndex count) {
  Problem problem;
  problem.devices.resize(1);
  problem.node_count = count;
  for (NodeIndex node = 0; node < count; ++node) {
    problem.node_ns.push_back(node + 1);
    Value value;
    value.producer = node;
    if (node + 1 < count) value.consumers = {node + 1};
    problem.values.push_back(value);
  }
  problem.values.back().is_output = true;
  return problem;
}

TEST(Units, AreSingleNodesWhereEverythingCanBeCut) {
  const Units units = MakeUnits(Chain(3));
  EXPECT_THAT(units.unit_of, ElementsAre(0, 1, 2));
}

TEST(Units, JoinWhatLiesBetween) {
  // 0 makes a sequence that 3 reads; 1 and 2 lie on the way from one to the other.
  Problem problem = Chain(5);
  Value sequence;
  sequence.producer = 0;
  sequence.consumers = {3};
  sequence.is_cuttable = false;
  problem.values.push_back(sequence);
  const Units units = MakeUnits(problem);
  EXPECT_THAT(units.unit_of, ElementsAre(0, 0, 0, 0, 1));
  std::vector<ValueIndex> value_of;
  const Problem contracted = Contract(problem, units, value_of);
  EXPECT_EQ(contracted.node_count, 2);
  EXPECT_THAT(contracted.node_ns, ElementsAre(1 + 2 + 3 + 4, 5));
  // What 3 gives to 4, and the output.
  EXPECT_THAT(value_of, ElementsAre(3, 4));
  EXPECT_EQ(contracted.values[0].producer, 0);
  EXPECT_THAT(contracted.values[0].consumers, ElementsAre(1));
}

TEST(Units, JoinTheReadersOfAnInputThatCannotBeCarriedTwice) {
  Problem problem = Chain(3);
  problem.values[0].consumers = {};
  problem.values[1].consumers = {};
  Value sequence;
  sequence.consumers = {0, 2};
  sequence.is_cuttable = false;
  problem.values.push_back(sequence);
  EXPECT_THAT(MakeUnits(problem).unit_of, ElementsAre(0, 1, 0));
}

TEST(Units, RefuseWhatOneOfTheirNodesRefuses) {
  Problem problem = Chain(2);
  problem.values[0].is_cuttable = false;
  problem.node_ns[1] = kRefused;
  std::vector<ValueIndex> value_of;
  EXPECT_THAT(Contract(problem, MakeUnits(problem), value_of).node_ns, ElementsAre(kRefused));
}

TEST(Units, AreTheSmallestSetsClosedUnderWays) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const Problem problem = testing::RandomProblem(
        seed, {.node_count = 2 + static_cast<int>(seed % 12), .uncuttable_percent = 20});
    const auto count = static_cast<size_t>(problem.node_count);
    // reaches[a][b]: by edges, and backwards along what cannot be cut.
    std::vector<std::vector<bool>> reaches(count, std::vector<bool>(count, false));
    for (const Value& value : problem.values) {
      for (const NodeIndex consumer : value.consumers) {
        if (value.producer != kCaller) {
          reaches[value.producer][consumer] = true;
          if (!value.is_cuttable) reaches[consumer][value.producer] = true;
        } else if (!value.is_cuttable) {
          for (const NodeIndex other : value.consumers) reaches[consumer][other] = true;
        }
      }
    }
    for (size_t by = 0; by < count; ++by) {
      for (size_t a = 0; a < count; ++a) {
        for (size_t b = 0; reaches[a][by] && b < count; ++b) {
          if (reaches[by][b]) reaches[a][b] = true;
        }
      }
    }
    const Units units = MakeUnits(problem);
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = 0; b < count; ++b) {
        const bool are_together = a == b || (reaches[a][b] && reaches[b][a]);
        ASSERT_EQ(units.unit_of[a] == units.unit_of[b], are_together) << "seed " << seed;
        if (reaches[a][b]) {
          ASSERT_LE(units.unit_of[a], units.unit_of[b]) << "seed " << seed;
        }
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::partition
