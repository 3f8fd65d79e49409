// SPDX-License-Identifier: Apache-2.0

#include "backends/core/device/dependences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace onnxifi::device {
namespace {

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

// What a graph of this many nodes with few uses each may look at.
void ExpectFewLooks(const Dependences& dependences, size_t uses, size_t edges) {
  EXPECT_LT(dependences.look_count(), static_cast<int64_t>(8 * uses + 80 * edges + 1000));
}

// A chain in memory that is used over and over, buffers of their own, one buffer that all read, and
// one in pieces that all read: what is looked at grows with the nodes and not with their square.
TEST(DependencesTest, LargeGraphsTakeFewLooks) {
  constexpr size_t kNodes = 50'000;
  constexpr uint64_t kBytes = 16;
  for (const uint64_t distinct : {uint64_t{3}, uint64_t{100}, uint64_t{kNodes}}) {
    Dependences dependences;
    size_t edges = 0;
    for (size_t n = 0; n < kNodes; ++n) {
      const uint64_t from = n % distinct * kBytes;
      const uint64_t to = (n + 1) % distinct * kBytes;
      const uint64_t weights = (kNodes + 1 + n % 7) * kBytes;
      edges += Add(dependences, {Reads(from, from + kBytes), Reads(weights, weights + kBytes),
                                 Writes(to, to + kBytes)})
                   .size();
    }
    EXPECT_LE(edges, 3 * kNodes);
    ExpectFewLooks(dependences, 3 * kNodes, edges);
  }
}

TEST(DependencesTest, AllOfWhatWasWrittenInPiecesIsReadAgainAndAgain) {
  Dependences dependences;
  constexpr size_t kPieces = 20'000;
  size_t edges = 0;
  for (size_t n = 0; n < kPieces; ++n) {
    edges += Add(dependences, {Writes(n, n + 1)}).size();
  }
  EXPECT_EQ(edges, 0U);
  EXPECT_EQ(Add(dependences, {Reads(0, kPieces)}).size(), kPieces);
  // Later reads follow the first, which stands for a write, and so do writes of a piece.
  for (size_t n = 0; n < kPieces; ++n) {
    EXPECT_THAT(Add(dependences, {Reads(0, kPieces)}), ElementsAre(kPieces));
  }
  EXPECT_EQ(Add(dependences, {Writes(5, 6)}).size(), kPieces);
  ExpectFewLooks(dependences, 2 * kPieces, 3 * kPieces);
}

// Reads that count as writes may put in order what need not be; what need be is in order all the
// same.
TEST(DependencesTest, ManyPiecesAreInOrderWhereItMatters) {
  std::mt19937 random(6);
  constexpr uint64_t kMemory = 400;
  for (int graph = 0; graph < 20; ++graph) {
    Dependences dependences;
    std::vector<MemoryUse> nodes;
    std::vector<std::vector<bool>> told;
    for (size_t n = 0; n < 300; ++n) {
      const bool is_large = random() % 8 == 0;
      const uint64_t begin = random() % (is_large ? kMemory / 4 : kMemory);
      const MemoryUse use{begin, begin + (is_large ? kMemory / 2 : 2), random() % 2 == 0};
      told.emplace_back(n, false);
      for (const size_t m : Add(dependences, {use})) {
        told[n][m] = true;
        for (size_t before = 0; before < m; ++before) {
          if (told[m][before]) told[n][before] = true;
        }
      }
      for (size_t m = 0; m < n; ++m) {
        if (!use.Conflicts(nodes[m])) continue;
        ASSERT_TRUE(told[n][m]) << "graph " << graph << ", nodes " << m << " and " << n;
      }
      nodes.push_back(use);
    }
  }
}

}  // namespace
}  // namespace onnxifi::device
