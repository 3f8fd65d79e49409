// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by Winograd's algorithm: which the device wants so, and that it computes the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "backends/core/execution/executor.h"
#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/plan/plan.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/convolution.h"
#include "backends/opencl/step_fixture.h"

namespace onnxifi::opencl {
namespace {

using program::ProgramMaker;
using program::testing::Convolution;

class WinogradTest : public StepTest {
 protected:
  bool IsPreferred(const Convolution& of) {
    ProgramMaker maker;
    program::testing::MakeConvolution(of, maker);
    return device_->PrefersWinograd({maker.program, maker.program.steps.back()});
  }
  program::PrefersWinograd Preference() {
    return [this](const program::Program& of, const program::Step& step) {
      return device_->PrefersWinograd({of, step});
    };
  }
  base::Result<std::vector<float>> Run(const program::Program& program) {
    plan::Counters counters;
    ONNXIFI_ASSIGN_OR_RETURN(const auto plan, plan::Plan::Create(program, *device_, counters));
    execution::Executor executor(*plan);
    ONNXIFI_ASSIGN_OR_RETURN(const auto boundary, execution::HostBoundary::Create(executor));
    execution::TensorPlaces places(program);
    const std::vector<tensor::Tensor> inputs = execution::MakeNumbers(program);
    ONNXIFI_RETURN_IF_ERROR(
        boundary->Run(execution::AsInputs(inputs), places, /*profile=*/nullptr));
    const std::span<const float> values = places.tensors[0].values<float>();
    return std::vector<float>(values.begin(), values.end());
  }
};

TEST_F(WinogradTest, IsForManyChannelsAndTiles) {
  EXPECT_TRUE(IsPreferred({.in_channels = 64, .out_channels = 64, .height = 56, .width = 56}));
  EXPECT_TRUE(IsPreferred({.in_channels = 128, .out_channels = 96, .height = 28, .width = 28}));
  // The transforms take longer than the products.
  EXPECT_FALSE(IsPreferred({.in_channels = 8, .out_channels = 8, .height = 56, .width = 56}));
  // Four times the kernels come from memory for four tiles.
  EXPECT_FALSE(
      IsPreferred({.images = 1, .in_channels = 512, .out_channels = 512, .height = 8, .width = 8}));
  // Gigabytes of transformed tiles.
  EXPECT_FALSE(IsPreferred(
      {.images = 64, .in_channels = 64, .out_channels = 64, .height = 224, .width = 224}));
}

TEST_F(WinogradTest, ComputesWhatTheReferenceDoes) {
  const Convolution of{.in_channels = 64, .out_channels = 70, .height = 16, .width = 20};
  ProgramMaker plain, expanded;
  program::testing::MakeConvolution(of, plain);
  program::testing::MakeConvolution(of, expanded);
  ASSERT_TRUE(program::ExpandWinograd(expanded.program, Preference()).ok());
  ASSERT_EQ(expanded.program.steps.size(), plain.program.steps.size() + 2);
  program::RemoveDeadSteps(expanded.program);
  const std::vector<float> expected = execution::RunOnNumbers(plain.program)[0];
  const auto actual = Run(expanded.program);
  ASSERT_TRUE(actual.ok()) << actual.status().Text();
  ASSERT_EQ(actual->size(), expected.size());
  double squares = 0;
  for (const float value : expected) squares += static_cast<double>(value) * value;
  const double rms = std::sqrt(squares / static_cast<double>(expected.size()));
  double worst = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    const double difference = std::abs(static_cast<double>((*actual)[k]) - expected[k]);
    worst = std::max(worst, std::isnan(difference) ? 1e9 : difference);
  }
  EXPECT_LT(worst, 2e-5 * rms);
  EXPECT_GT(worst, 0) << "It was computed as it is defined.";
}

}  // namespace
}  // namespace onnxifi::opencl
