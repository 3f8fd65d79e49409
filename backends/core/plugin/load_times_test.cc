// SPDX-License-Identifier: Apache-2.0
//
// LoadTimes: a stage that runs twice is one, and what a stage returns passes through.

#include "backends/core/plugin/load_times.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace onnxifi::plugin {
namespace {

TEST(LoadTimesTest, AddsUpStagesInTheOrderInWhichTheyFirstEnded) {
  LoadTimes times;
  times.Add("import", std::chrono::microseconds(3140));
  times.Add("folding", std::chrono::microseconds(1500));
  times.Add("import", std::chrono::microseconds(2000));
  ASSERT_EQ(times.stages().size(), 2u);
  EXPECT_EQ(times.stages()[0].name, "import");
  EXPECT_EQ(times.stages()[0].count, 2u);
  EXPECT_EQ(times.stages()[0].duration, std::chrono::microseconds(5140));
  EXPECT_EQ(times.stages()[1].count, 1u);
}

TEST(LoadTimesTest, PassesOnWhatAStageReturns) {
  LoadTimes times;
  const std::unique_ptr<int> made = times.Time("make", [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return std::make_unique<int>(7);
  });
  EXPECT_EQ(*made, 7);
  ASSERT_EQ(times.stages().size(), 1u);
  EXPECT_GE(times.stages()[0].duration, std::chrono::milliseconds(2));
}

}  // namespace
}  // namespace onnxifi::plugin
