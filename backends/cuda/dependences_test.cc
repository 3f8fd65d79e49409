// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/dependences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace onnxifi::cuda {
namespace {

using device::MemoryUse;
using testing::ElementsAre;
using testing::IsEmpty;

MemoryUse Reads(uint64_t begin, uint64_t end) { return {begin, end, false}; }
MemoryUse Writes(uint64_t begin, uint64_t end) { return {begin, end, true}; }
std::vector<size_t> Add(Dependences& dependences, std::vector<MemoryUse> uses) {
  return dependences.Add(uses);
}

TEST(DependencesTest, BranchesFollowTheirRootAndAreFollowedByTheirJoin) {
  Dependences dependences;
  EXPECT_THAT(Add(dependences, {Writes(0, 8)}), IsEmpty());
  EXPECT_THAT(Add(dependences, {Reads(0, 8), Writes(8, 16)}), ElementsAre(0));
  EXPECT_THAT(Add(dependences, {Reads(0, 8), Writes(16, 24)}), ElementsAre(0));
  EXPECT_THAT(Add(dependences, {Reads(8, 16), Reads(16, 24), Writes(24, 32)}), ElementsAre(1, 2));
}

TEST(DependencesTest, WhatIsOverwrittenWasReadBefore) {
  Dependences dependences;
  EXPECT_THAT(Add(dependences, {Reads(0, 8), Writes(8, 16)}), IsEmpty());
  EXPECT_THAT(Add(dependences, {Reads(0, 8), Writes(16, 24)}), IsEmpty());
  EXPECT_THAT(Add(dependences, {Writes(4, 6)}), ElementsAre(0, 1));
  // Of what is partly overwritten the rest is still waited for.
  EXPECT_THAT(Add(dependences, {Writes(0, 2)}), ElementsAre(0, 1));
  EXPECT_THAT(Add(dependences, {Reads(4, 5), Writes(32, 40)}), ElementsAre(2));
}

TEST(DependencesTest, MemoryOfUnknownSizeReachesToTheEnd) {
  Dependences dependences;
  EXPECT_THAT(Add(dependences, {Writes(0, 8)}), IsEmpty());
  EXPECT_THAT(Add(dependences, {Writes(100, 108)}), IsEmpty());
  const auto* const address = reinterpret_cast<const std::byte*>(uintptr_t{50});
  EXPECT_THAT(Add(dependences, {MemoryUse::From(address, false)}), ElementsAre(1));
}

// Every pair whose order matters is in order, by way of others at least; and nothing is in order
// that no such pairs put in order.
TEST(DependencesTest, RandomNodesAreInOrderExactlyWhereItMatters) {
  std::mt19937 random(5);
  for (int graph = 0; graph < 300; ++graph) {
    Dependences dependences;
    const uint64_t memory = 8 + random() % 120;
    std::vector<std::vector<MemoryUse>> nodes;
    // follows[n][m]: n is behind m; by the dependences, and by every pair.
    std::vector<std::vector<bool>> told;
    std::vector<std::vector<bool>> needed;
    for (size_t n = 0; n < 40; ++n) {
      std::vector<MemoryUse> uses;
      for (uint32_t k = 0; k <= random() % 4; ++k) {
        const uint64_t begin = random() % memory;
        uses.push_back({begin, begin + 1 + random() % 16, random() % 3 == 0});
      }
      told.emplace_back(n, false);
      needed.emplace_back(n, false);
      const auto behind = [&](std::vector<std::vector<bool>>& follows, size_t m) {
        follows[n][m] = true;
        for (size_t before = 0; before < m; ++before) {
          if (follows[m][before]) follows[n][before] = true;
        }
      };
      for (const size_t m : dependences.Add(uses)) behind(told, m);
      for (size_t m = 0; m < n; ++m) {
        for (const MemoryUse& earlier : nodes[m]) {
          for (const MemoryUse& use : uses) {
            if (use.Conflicts(earlier)) behind(needed, m);
          }
        }
      }
      nodes.push_back(std::move(uses));
      ASSERT_EQ(told[n], needed[n]) << "graph " << graph << ", node " << n;
    }
  }
}

}  // namespace
}  // namespace onnxifi::cuda
