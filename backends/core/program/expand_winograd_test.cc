// SPDX-License-Identifier: Apache-2.0
//
// ExpandWinograd: the three steps compute what the convolution does, on the reference; what they
// cannot say stays a convolution.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/convolution.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;
using testing::Convolution;
using testing::MakeConvolution;

bool Always(const Program&, const Step&) { return true; }

// How many steps there are after the expansion, which computes the same.
size_t StepsAfter(const Convolution& of) {
  ProgramMaker plain, expanded;
  MakeConvolution(of, plain);
  MakeConvolution(of, expanded);
  EXPECT_TRUE(ExpandWinograd(expanded.program, Always).ok());
  RemoveDeadSteps(expanded.program);
  const base::Status verdict = Verify(expanded.program);
  EXPECT_TRUE(verdict.ok()) << verdict.Text();
  const auto expected = RunOnNumbers(plain.program);
  const auto actual = RunOnNumbers(expanded.program);
  EXPECT_EQ(expected[0].size(), actual[0].size());
  for (size_t k = 0; k < expected[0].size(); ++k) {
    // Sums of up to a hundred; the transforms multiply them by up to sixty-four on the way.
    EXPECT_NEAR(actual[0][k], expected[0][k], 2e-4) << k;
    if (std::abs(actual[0][k] - expected[0][k]) > 2e-4) break;
  }
  return expanded.program.steps.size();
}

TEST(ExpandWinograd, ComputesWhatTheConvolutionDoes) { EXPECT_EQ(StepsAfter({}), 4U); }

TEST(ExpandWinograd, TakesAnyPaddingAndExtent) {
  EXPECT_EQ(
      StepsAfter({.images = 1, .pad_above = 0, .pad_left = 2, .pad_below = 2, .pad_right = 0}), 4U);
  EXPECT_EQ(StepsAfter({.in_channels = 1, .out_channels = 1, .height = 4, .width = 4}), 4U);
  EXPECT_EQ(StepsAfter({.images = 3, .in_channels = 7, .height = 4, .width = 20}), 4U);
}

TEST(ExpandWinograd, TakesTilesThatTheEdgesCut) {
  // The last row of tiles, the last column of tiles, and both with their corner.
  EXPECT_EQ(StepsAfter({.height = 7}), 5U);
  EXPECT_EQ(StepsAfter({.width = 10}), 5U);
  EXPECT_EQ(StepsAfter({.height = 14, .width = 7}), 7U);
  EXPECT_EQ(StepsAfter({.images = 2, .height = 9, .width = 11, .pad_above = 0, .pad_left = 2}), 7U);
  // No tile is whole.
  EXPECT_EQ(StepsAfter({.in_channels = 2, .height = 3, .width = 2}), 4U);
  EXPECT_EQ(StepsAfter({.height = 1, .width = 5}), 5U);
}

TEST(ExpandWinograd, LeavesWhatItHasNoTilesFor) {
  EXPECT_EQ(StepsAfter({.kernel = 5}), 2U);
  EXPECT_EQ(StepsAfter({.stride = 2}), 2U);
  EXPECT_EQ(StepsAfter({.has_constant_kernels = false}), 2U);
}

TEST(ExpandWinograd, AsksTheDevice) {
  ProgramMaker maker;
  MakeConvolution({}, maker);
  int asked = 0;
  const auto never = [&](const Program&, const Step& step) {
    asked += step.As<Contract>() != nullptr ? 1 : 0;
    return false;
  };
  EXPECT_TRUE(ExpandWinograd(maker.program, never).ok());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(maker.program.steps.size(), 2U);
}

TEST(ExpandWinograd, ForgetsTheKernelsAsTheyWere) {
  ProgramMaker maker;
  MakeConvolution({}, maker);
  EXPECT_TRUE(ExpandWinograd(maker.program, Always).ok());
  RemoveDeadSteps(maker.program);
  ASSERT_EQ(maker.program.constants.size(), 2U);
  EXPECT_EQ(maker.program.constants[0].type(), ElementType::kUndefined);
  EXPECT_THAT(maker.program.constants[1].extents(), ::testing::ElementsAre(36, 5, 3));
}

}  // namespace
}  // namespace onnxifi::program
