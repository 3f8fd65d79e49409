// SPDX-License-Identifier: Apache-2.0
//
// Medians of times, and ratios of runs that took turns.

#include "apps/onnxifi_run/run_times.h"

#include <gtest/gtest.h>

namespace onnxifi::run {
namespace {

TEST(RunTimesTest, MedianOfEvenAndOddCounts) {
  EXPECT_EQ(MedianOf({5, 1, 3}), 3);
  EXPECT_EQ(MedianOf({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(MedianOf({}), 0);
}

TEST(RunTimesTest, ComparesRunsOfTheSameTurn) {
  // Ratios 0.5, 2 and 1.25: the slow second turn was slow for both.
  EXPECT_EQ(RatioOf({2, 40, 2.5}, {4, 20, 2}), 1.25);
}

}  // namespace
}  // namespace onnxifi::run
