// SPDX-License-Identifier: Apache-2.0

#include "backends/vulkan/hazards.h"

#include <gtest/gtest.h>

#include <vector>

namespace onnxifi::vulkan {
namespace {

constexpr Use Reads(uint64_t begin, uint64_t end) { return {begin, end, false}; }
constexpr Use Writes(uint64_t begin, uint64_t end) { return {begin, end, true}; }

int BarriersOf(const std::vector<std::vector<Use>>& commands) {
  Hazards hazards;
  int barriers = 0;
  for (const std::vector<Use>& uses : commands) barriers += hazards.Add(uses) ? 1 : 0;
  return barriers;
}

TEST(HazardsTest, IndependentCommandsHaveNoBarrier) {
  std::vector<std::vector<Use>> commands;
  // All read one place, each writes its own, next to the others'.
  for (uint64_t k = 0; k < 50; ++k) commands.push_back({Reads(0, 100), Writes(100 + k, 101 + k)});
  EXPECT_EQ(BarriersOf(commands), 0);
}

TEST(HazardsTest, AChainOfCommandsHasOneLessThanCommands) {
  std::vector<std::vector<Use>> commands;
  for (uint64_t k = 0; k < 50; ++k) {
    commands.push_back({Reads(k * 8, k * 8 + 8), Writes(k * 8 + 8, k * 8 + 16)});
  }
  EXPECT_EQ(BarriersOf(commands), 49);
}

TEST(HazardsTest, WhatIsReadOrWrittenIsNotOverwrittenBefore) {
  EXPECT_EQ(BarriersOf({{Writes(0, 8)}, {Reads(7, 9)}}), 1);
  EXPECT_EQ(BarriersOf({{Reads(0, 8)}, {Writes(7, 9)}}), 1);
  EXPECT_EQ(BarriersOf({{Writes(0, 8)}, {Writes(0, 1)}}), 1);
  EXPECT_EQ(BarriersOf({{Reads(0, 8)}, {Reads(0, 8)}}), 0);
  EXPECT_EQ(BarriersOf({{Writes(0, 8)}, {Reads(8, 16)}}), 0);
  EXPECT_EQ(BarriersOf({{Writes(8, 16)}, {Writes(0, 8)}}), 0);
  // The one that needs the first is not the next.
  EXPECT_EQ(BarriersOf({{Writes(0, 8)}, {Writes(8, 16)}, {Reads(3, 4)}}), 1);
}

TEST(HazardsTest, ABarrierServesAllThatCameBeforeIt) {
  // Both sums need both products; the second needs no barrier of its own.
  EXPECT_EQ(BarriersOf({{Writes(0, 8)},
                        {Writes(8, 16)},
                        {Reads(0, 16), Writes(16, 24)},
                        {Reads(0, 16), Writes(24, 32)}}),
            1);
  // What comes behind the barrier still counts.
  EXPECT_EQ(BarriersOf({{Writes(0, 8)}, {Reads(0, 8), Writes(8, 16)}, {Writes(0, 8)}}), 2);
}

TEST(HazardsTest, ClearForgets) {
  Hazards hazards;
  const std::vector<Use> uses = {Writes(0, 8)};
  EXPECT_FALSE(hazards.Add(uses));
  hazards.Clear();
  EXPECT_FALSE(hazards.Add(uses));
  EXPECT_TRUE(hazards.Add(uses));
}

}  // namespace
}  // namespace onnxifi::vulkan
