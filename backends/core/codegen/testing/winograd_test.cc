// SPDX-License-Identifier: Apache-2.0
//
// Convolutions by Winograd's algorithm: which the device wants so, and that it computes the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/step_fixture.h"
#include "backends/core/execution/executor.h"
#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/plan/plan.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/convolution.h"

namespace onnxifi::codegen {
namespace {

using program::ProgramMaker;
using program::testing::Convolution;

struct Layer;

class WinogradTest : public StepTest {
 protected:
  void ExpectWithinFactor(const Layer& layer, tensor::Precision precision);
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
  base::Result<std::vector<float>> Run(const program::Program& program,
                                       const std::vector<tensor::Tensor>& inputs) {
    plan::Counters counters;
    ONNXIFI_ASSIGN_OR_RETURN(const auto plan, plan::Plan::Create(program, *device_, counters));
    execution::Executor executor(*plan);
    ONNXIFI_ASSIGN_OR_RETURN(const auto boundary, execution::HostBoundary::Create(executor));
    execution::TensorOutputs places(program);
    ONNXIFI_RETURN_IF_ERROR(
        boundary->Run(execution::AsInputs(inputs), places, /*profile=*/nullptr));
    const std::span<const float> values = places.tensors[0].values<float>();
    return std::vector<float>(values.begin(), values.end());
  }
  // The convolution as `added` more steps computes what the reference does.
  void ExpectSame(const Convolution& of, size_t added) {
    ProgramMaker plain, expanded;
    program::testing::MakeConvolution(of, plain);
    program::testing::MakeConvolution(of, expanded);
    ASSERT_TRUE(program::ExpandWinograd(expanded.program, Preference()).ok());
    ASSERT_EQ(expanded.program.steps.size(), plain.program.steps.size() + added);
    program::RemoveDeadSteps(expanded.program);
    const std::vector<float> expected = execution::RunOnNumbers(plain.program)[0];
    const auto actual = Run(expanded.program, execution::MakeNumbers(expanded.program));
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
  ExpectSame({.in_channels = 64, .out_channels = 70, .height = 16, .width = 20}, /*added=*/2);
}

TEST_F(WinogradTest, ComputesTilesThatTheEdgesCut) {
  ExpectSame({.in_channels = 64, .out_channels = 70, .height = 18, .width = 20}, /*added=*/3);
  ExpectSame({.in_channels = 64, .out_channels = 70, .height = 27, .width = 21}, /*added=*/5);
}

// A layer of a network, padding 1, with seeded numbers: activations as after a Relu, weights scaled
// after He.
struct Layer {
  int64_t in, out, side;
  std::vector<float> image, kernels;

  Layer(int64_t in_channels, int64_t out_channels, int64_t pixels, uint32_t seed)
      : in(in_channels), out(out_channels), side(pixels) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 1);
    image.resize(static_cast<size_t>(in * side * side));
    for (float& value : image) value = std::max(normal(random), 0.0F);
    kernels.resize(static_cast<size_t>(out * in * 9));
    for (float& value : kernels)
      value = normal(random) * std::sqrt(2.0F / static_cast<float>(9 * in));
  }

  ProgramMaker Make() const {
    ProgramMaker maker;
    const program::Operand x = maker.Input({1, in, side, side});
    const program::Operand w =
        maker.Constant(tensor::Tensor::FromValues<float>(kFloat, {out, in, 3, 3}, kernels));
    program::Contract contract;
    contract.form = program::Contract::Form::kConv;
    contract.inner = {in, 3, 3};
    contract.a_spatial = {side, side};
    contract.strides = contract.dilations = {1, 1};
    contract.pads_begin = {1, 1};
    contract.a_prologue = Load(maker.program.exprs, kFloat, 0).id();
    contract.b_prologue = Load(maker.program.exprs, kFloat, 1).id();
    contract.roots = {Accumulator(maker.program.exprs, kFloat).id()};
    const program::Operand y = maker.Temporary({1, out, side, side});
    maker.AddStep({y.shape, {x.view, w.view}, {y.view}, std::move(contract)});
    maker.Output(y);
    return maker;
  }

  // The largest difference from the sums in float64.
  double ErrorOf(const std::vector<float>& result) const {
    double worst = 0;
    for (int64_t channel = 0; channel < out; ++channel) {
      for (int64_t y = 0; y < side; ++y) {
        for (int64_t x = 0; x < side; ++x) {
          double sum = 0;
          for (int64_t from = 0; from < in; ++from) {
            for (int64_t tap = 0; tap < 9; ++tap) {
              const int64_t row = y + tap / 3 - 1;
              const int64_t column = x + tap % 3 - 1;
              if (row < 0 || row >= side || column < 0 || column >= side) continue;
              sum += static_cast<double>(
                         image[static_cast<size_t>((from * side + row) * side + column)]) *
                     static_cast<double>(
                         kernels[static_cast<size_t>((channel * in + from) * 9 + tap)]);
            }
          }
          const auto at = static_cast<size_t>((channel * side + y) * side + x);
          worst = std::max(worst, std::abs(static_cast<double>(result[at]) - sum));
        }
      }
    }
    return worst;
  }
};

void WinogradTest::ExpectWithinFactor(const Layer& layer, tensor::Precision precision) {
  constexpr double kMaxError = 8;
  ProgramMaker plain = layer.Make();
  ProgramMaker expanded = layer.Make();
  ASSERT_TRUE(program::ExpandWinograd(expanded.program, Preference()).ok());
  ASSERT_GE(expanded.program.steps.size(), 3U);
  program::RemoveDeadSteps(expanded.program);
  plain.program.precision = expanded.program.precision = precision;
  const std::vector<tensor::Tensor> inputs = {tensor::Tensor::FromValues<float>(
      kFloat, {1, layer.in, layer.side, layer.side}, layer.image)};
  const auto direct = Run(plain.program, inputs);
  const auto transformed = Run(expanded.program, inputs);
  ASSERT_TRUE(direct.ok()) << direct.status().Text();
  ASSERT_TRUE(transformed.ok()) << transformed.status().Text();
  const double direct_error = layer.ErrorOf(*direct);
  const double error = layer.ErrorOf(*transformed);
  std::printf("%d to %d channels, %s: %.2g, direct %.2g, factor %.2f\n", static_cast<int>(layer.in),
              static_cast<int>(layer.out), std::string(Name(precision)).c_str(), error,
              direct_error, error / direct_error);
  EXPECT_NE(error, direct_error);
  EXPECT_LT(error, kMaxError * direct_error);
  if (precision != tensor::Precision::kFloat32) {
    EXPECT_GT(direct_error, 1e-4) << "Nothing was rounded.";
  }
}

// What the interface promises of fast algorithms (ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS).
TEST_F(WinogradTest, IsWithinTheStatedFactorOfTheDirectKernel) {
  for (const Layer& layer : {Layer(64, 64, 28, 1), Layer(128, 96, 20, 2), Layer(96, 64, 27, 3)}) {
    ExpectWithinFactor(layer, tensor::Precision::kFloat32);
  }
}

// The same where operands are rounded, which groups of a GPU do.
class RoundedWinogradTest : public WinogradTest {
 protected:
  void SetUp() override {
    const char* const before = std::getenv(kTuning);
    const std::string kept = before == nullptr ? "" : before;
    setenv(kTuning, "gpu", 1);
    WinogradTest::SetUp();
    before != nullptr ? setenv(kTuning, kept.c_str(), 1) : unsetenv(kTuning);
  }

 private:
  static constexpr char kTuning[] = "ONNXIFI_TUNING";
};

TEST_F(RoundedWinogradTest, IsWithinTheStatedFactorOfTheDirectKernel) {
  ExpectWithinFactor(Layer(64, 64, 28, 1), tensor::Precision::kFloat16);
}

}  // namespace
}  // namespace onnxifi::codegen
