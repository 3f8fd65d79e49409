// SPDX-License-Identifier: Apache-2.0
//
// Random steps on the tile engine, compared with the reference's loops. With the reference's own
// functions for exp, sin and their like, every element has to be the same: reductions join their
// parts in the reference's order. The vector functions are compared with float64 in
// function_loops_test.cc.

#include "backends/core/reference/random_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/core/reference/device.h"
#include "backends/cpu/engine/testing/engine_device.h"

namespace onnxifi::engine {
namespace {

using reference::Family;

// What the first differing element is, if any: the same bits, or NaN both.
std::optional<std::string> FindOtherBits(std::span<const tensor::Tensor> expected,
                                         std::span<const tensor::Tensor> actual) {
  for (size_t b = 0; b < expected.size(); ++b) {
    const std::span<const std::byte> x = expected[b].bytes();
    const std::span<const std::byte> y = actual[b].bytes();
    if (std::equal(x.begin(), x.end(), y.begin(), y.end())) continue;
    if (tensor::IsComplex(expected[b].type())) return "a complex buffer differs";
    for (int64_t k = 0; k < expected[b].element_count(); ++k) {
      const double wanted = expected[b].AsDouble(k);
      const double found = actual[b].AsDouble(k);
      const bool is_same = std::bit_cast<uint64_t>(wanted) == std::bit_cast<uint64_t>(found) ||
                           (std::isnan(wanted) && std::isnan(found));
      if (is_same) continue;
      return "buffer " + std::to_string(b) + " (" + std::string(tensor::Name(expected[b].type())) +
             "), element " + std::to_string(k) + ": " + std::to_string(found) + " instead of " +
             std::to_string(wanted);
    }
  }
  return std::nullopt;
}

// `least_share` of the steps have lanes in the engine; the others are of packed or complex types.
void CompareSteps(Family family, uint64_t first_seed, int64_t count, const Settings& settings,
                  device::Parallel& parallel, double least_share) {
  EngineDevice device(parallel, settings);
  reference::Device reference;
  int64_t compared = 0;
  for (uint64_t seed = first_seed; seed < first_seed + static_cast<uint64_t>(count); ++seed) {
    const reference::RandomStep step = reference::MakeRandomStep(family, seed);
    const auto actual = RunStep(device, step);
    if (!actual.ok()) {
      ASSERT_EQ(static_cast<int>(actual.status().code()) >> 8, 2)  // UNSUPPORTED_*
          << seed << ": " << actual.status().Text();
      continue;
    }
    ++compared;
    const auto expected = RunStep(reference, step);
    ASSERT_TRUE(expected.ok()) << seed << ": " << expected.status().Text();
    const std::optional<std::string> difference = FindOtherBits(*expected, *actual);
    ASSERT_FALSE(difference) << "seed " << seed << ", " << *difference << "\n"
                             << ToString(step.program);
  }
  std::printf("%s: %lld of %lld steps compared, the others refused\n",
              std::string(reference::Name(family)).c_str(), static_cast<long long>(compared),
              static_cast<long long>(count));
  EXPECT_GE(static_cast<double>(compared), least_share * static_cast<double>(count));
}

// Tiles as they are in use: most random steps fit in one.
void CompareWholeTiles(Family family, uint64_t seed, int64_t count, double least_share) {
  device::Serial serial;
  CompareSteps(family, seed, count, {.loops = LoopSet::kReference}, serial, least_share);
}

// Many small tiles, each on its own and in the wrong order, stored past the caches.
void CompareSmallTiles(Family family, uint64_t seed, int64_t count, double least_share) {
  Shredder shredder;
  CompareSteps(family, seed, count,
               {.loops = LoopSet::kReference,
                .tile_lanes = 48,
                .streamed_bytes = 0,
                .streamed_transposed_bytes = 0,
                .worth_a_thread = 0},
               shredder, least_share);
}

TEST(RandomStepTest, MapsAgreeWithTheReference) {
  CompareWholeTiles(Family::kMap, /*seed=*/1, /*count=*/4400, /*least_share=*/0.5);
}

TEST(RandomStepTest, MapsInSmallTilesAgreeWithTheReference) {
  CompareSmallTiles(Family::kMap, /*seed=*/50'000, /*count=*/4400, /*least_share=*/0.5);
}

TEST(RandomStepTest, ReductionsAgreeWithTheReference) {
  CompareWholeTiles(Family::kReduce, /*seed=*/1, /*count=*/4400, /*least_share=*/0.8);
}

TEST(RandomStepTest, ReductionsInSmallTilesAgreeWithTheReference) {
  CompareSmallTiles(Family::kReduce, /*seed=*/50'000, /*count=*/4400, /*least_share=*/0.8);
}

TEST(RandomStepTest, RowsAgreeWithTheReference) {
  CompareWholeTiles(Family::kRow, /*seed=*/1, /*count=*/4400, /*least_share=*/0.7);
}

TEST(RandomStepTest, RowsInSmallTilesAgreeWithTheReference) {
  CompareSmallTiles(Family::kRow, /*seed=*/50'000, /*count=*/4400, /*least_share=*/0.7);
}

}  // namespace
}  // namespace onnxifi::engine
