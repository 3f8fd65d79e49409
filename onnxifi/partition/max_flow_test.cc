// SPDX-License-Identifier: Apache-2.0
//
// MaxFlow against all ways to tell the nodes apart.

#include "onnxifi/partition/max_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>

namespace onnxifi::partition {
namespace {

using ::testing::ElementsAre;

TEST(MaxFlow, TellsAChainApartWhereItIsCheapest) {
  MaxFlow flow(4);
  flow.PayAtSink(0, MaxFlow::kInfinite);
  flow.PayAtSource(3, MaxFlow::kInfinite);
  flow.AddEdge(0, 1, 5);
  flow.AddEdge(1, 2, 2);
  flow.AddEdge(2, 3, 3);
  EXPECT_THAT(flow.SourceSide(), ElementsAre(true, true, false, false));
}

TEST(MaxFlow, LeavesToTheSinkWhatCostsTheSame) {
  MaxFlow flow(2);
  flow.PayAtSink(0, 3);
  flow.PayAtSource(0, 3);
  flow.PayAtSink(1, 1);
  EXPECT_THAT(flow.SourceSide(), ElementsAre(false, true));
}

TEST(MaxFlow, FindsTheCheapestCutWithTheSmallestSourceSide) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const int count = 1 + static_cast<int>(random() % 7);
    struct Edge {
      int from, to;
      int64_t capacity;
    };
    std::vector<Edge> edges;
    std::vector<int64_t> at_source;
    std::vector<int64_t> at_sink;
    MaxFlow flow(count);
    for (int node = 0; node < count; ++node) {
      at_source.push_back(random() % 8);
      at_sink.push_back(random() % 8);
      flow.PayAtSource(node, at_source.back());
      flow.PayAtSink(node, at_sink.back());
    }
    for (uint32_t edge = random() % 14; edge > 0; --edge) {
      const int from = static_cast<int>(random() % count);
      const int to = static_cast<int>(random() % count);
      const int64_t capacity = random() % 5 == 0 ? MaxFlow::kInfinite : random() % 6;
      edges.push_back({from, to, capacity});
      flow.AddEdge(from, to, capacity);
    }
    const auto price = [&](uint32_t source_side) {
      int64_t sum = 0;
      for (int node = 0; node < count; ++node) {
        sum += (source_side >> node & 1) != 0 ? at_source[node] : at_sink[node];
      }
      for (const Edge& edge : edges) {
        if ((source_side >> edge.from & 1) == 0 || (source_side >> edge.to & 1) != 0) continue;
        if (edge.capacity == MaxFlow::kInfinite) return MaxFlow::kInfinite;
        sum += edge.capacity;
      }
      return sum;
    };
    uint32_t best = 0;
    for (uint32_t side = 1; side < uint32_t{1} << count; ++side) {
      const bool is_smaller = std::popcount(side) < std::popcount(best);
      if (price(side) < price(best) || (price(side) == price(best) && is_smaller)) best = side;
    }
    uint32_t found = 0;
    const std::vector<bool> side = flow.SourceSide();
    for (int node = 0; node < count; ++node) found |= side[node] ? uint32_t{1} << node : 0;
    ASSERT_EQ(found, best) << "seed " << seed;
  }
}

}  // namespace
}  // namespace onnxifi::partition
