// SPDX-License-Identifier: Apache-2.0
//
// Islands: of one device, connected, without circles, and no smaller than they must be.

#include "onnxifi/partition/islands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "onnxifi/partition/testing/random_problem.h"

namespace onnxifi::partition {
namespace {

using ::testing::ElementsAre;

Problem Edges(NodeIndex count, const std::vector<std::pair<NodeIndex, NodeIndex>>& edges) {
  Problem problem;
  problem.devices.resize(2);
  problem.node_count = count;
  problem.node_ns.assign(static_cast<size_t>(count) * 2, 1);
  for (const auto& [from, to] : edges) {
    problem.values.push_back({.producer = from, .consumers = {to}});
  }
  return problem;
}

TEST(Islands, AreOneForOneDevice) {
  EXPECT_THAT(MakeIslands(Edges(3, {{0, 1}, {1, 2}, {0, 2}}), {1, 1, 1}), ElementsAre(0, 0, 0));
}

TEST(Islands, AreCutWhereAWayLeadsOutAndBack) {
  // 0 -> 1 -> 2 with 1 elsewhere, and 0 -> 2: one island of 0 and 2 would need itself.
  EXPECT_THAT(MakeIslands(Edges(3, {{0, 1}, {1, 2}, {0, 2}}), {0, 1, 0}), ElementsAre(0, 1, 2));
}

TEST(Islands, JoinNeighboursOfDifferentDepth) {
  // 2 needs 0 of its own device and 1 of the other; nothing leads from 0 to 1.
  EXPECT_THAT(MakeIslands(Edges(3, {{0, 2}, {1, 2}}), {0, 1, 0}), ElementsAre(1, 0, 1));
}

TEST(Islands, LeaveApartWhatIsNotConnected) {
  EXPECT_THAT(MakeIslands(Edges(2, {}), {0, 0}), ElementsAre(0, 1));
}

TEST(Islands, AreLargestWithoutCircles) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const Problem problem = testing::RandomProblem(
        seed, {.node_count = 1 + static_cast<int>(seed % 30), .device_count = 3});
    std::mt19937 random(seed);
    Placement placement;
    for (NodeIndex node = 0; node < problem.node_count; ++node) placement.push_back(random() % 3);
    const std::vector<int32_t> island_of = MakeIslands(problem, placement);
    const int32_t count = *std::max_element(island_of.begin(), island_of.end()) + 1;
    std::set<std::pair<int32_t, int32_t>> edges;
    std::vector<DeviceIndex> device_of(static_cast<size_t>(count), -1);
    for (NodeIndex node = 0; node < problem.node_count; ++node) {
      DeviceIndex& device = device_of[island_of[node]];
      ASSERT_TRUE(device == -1 || device == placement[node]) << "seed " << seed;
      device = placement[node];
    }
    for (const Value& value : problem.values) {
      if (value.producer == kCaller) continue;
      for (const NodeIndex consumer : value.consumers) {
        const std::pair<int32_t, int32_t> edge = {island_of[value.producer], island_of[consumer]};
        // In an order in which they can run, and so in no circle.
        ASSERT_LE(edge.first, edge.second) << "seed " << seed;
        if (edge.first != edge.second) edges.insert(edge);
      }
    }
    std::vector<std::set<int32_t>> reaches(static_cast<size_t>(count));
    for (int32_t island = count - 1; island >= 0; --island) {
      for (const auto& [from, to] : edges) {
        if (from != island) continue;
        reaches[from].insert(to);
        reaches[from].insert(reaches[to].begin(), reaches[to].end());
      }
    }
    for (const auto& joinable : edges) {
      const int32_t from = joinable.first;
      const int32_t to = joinable.second;
      if (device_of[from] != device_of[to]) continue;
      const bool has_detour = std::any_of(edges.begin(), edges.end(), [&](const auto& edge) {
        return edge.first == from && edge.second != to && reaches[edge.second].contains(to);
      });
      ASSERT_TRUE(has_detour) << "seed " << seed << ": islands " << from << " and " << to
                              << " could be one";
    }
    // Connected: as many joins as nodes but one per island.
    std::vector<int32_t> root(static_cast<size_t>(problem.node_count));
    for (size_t node = 0; node < root.size(); ++node) root[node] = static_cast<int32_t>(node);
    for (int pass = 0; pass < problem.node_count; ++pass) {
      for (const Value& value : problem.values) {
        if (value.producer == kCaller) continue;
        for (const NodeIndex consumer : value.consumers) {
          if (island_of[value.producer] != island_of[consumer]) continue;
          root[consumer] = root[value.producer] = std::min(root[consumer], root[value.producer]);
        }
      }
    }
    std::vector<int32_t> root_of(static_cast<size_t>(count), -1);
    for (size_t node = 0; node < root.size(); ++node) {
      int32_t& known = root_of[island_of[node]];
      ASSERT_TRUE(known == -1 || known == root[node]) << "seed " << seed;
      known = root[node];
    }
  }
}

}  // namespace
}  // namespace onnxifi::partition
