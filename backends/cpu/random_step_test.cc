// SPDX-License-Identifier: Apache-2.0
//
// Random contractions and windows on the CPU device, compared with the reference's loops. Prints
// how many of the bindings that were selected for oneDNN really ran on it: a device that always
// falls back would agree with the reference too.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "backends/core/reference/testing/step_comparison.h"
#include "backends/cpu/device.h"

namespace onnxifi::cpu {
namespace {

using reference::Family;

// At least `least_share` of the steps have to run on oneDNN: the generator draws every accumulator
// type, of which float32 is the one that oneDNN gets.
void CompareSteps(Family family, uint64_t seed, int64_t count, double least_share) {
  base::Result<std::unique_ptr<Device>> device =
      Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log(base::LogLevel::kWarning));
  ASSERT_TRUE(device.ok()) << device.status().Text();
  const reference::Comparison comparison =
      reference::CompareWithReference(**device, family, seed, count);
  const onednn::BindingCounts& bound = (*device)->binding_counts();
  std::printf(
      "%s: %lld steps compared, %lld refused, %lld different; %lld on oneDNN alone, %lld on oneDNN "
      "between loops, %lld selected for oneDNN but left to loops\n",
      std::string(reference::Name(family)).c_str(), static_cast<long long>(comparison.compared),
      static_cast<long long>(comparison.refused), static_cast<long long>(comparison.different),
      static_cast<long long>(bound.alone), static_cast<long long>(bound.between_loops),
      static_cast<long long>(bound.reference));
  EXPECT_EQ(comparison.different, 0) << comparison.first_difference;
  EXPECT_EQ(comparison.refused, 0);
  EXPECT_EQ(comparison.compared, count);
  EXPECT_GE(static_cast<double>(bound.alone + bound.between_loops),
            least_share * static_cast<double>(count));
  EXPECT_GT(bound.alone, 0);
}

TEST(RandomStepTest, ContractsAgreeWithTheReference) {
  CompareSteps(Family::kContract, /*seed=*/1, /*count=*/3000, /*least_share=*/0.15);
}

TEST(RandomStepTest, WindowsAgreeWithTheReference) {
  CompareSteps(Family::kWindow, /*seed=*/1, /*count=*/3000, /*least_share=*/0.1);
}

// All but those of packed and complex types, of which the CPU has kernels.
TEST(RandomStepTest, IndexStepsAgreeWithTheReference) {
  base::Result<std::unique_ptr<Device>> device =
      Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log(base::LogLevel::kWarning));
  ASSERT_TRUE(device.ok()) << device.status().Text();
  constexpr int64_t kCount = 3000;
  const reference::Comparison comparison =
      reference::CompareWithReference(**device, Family::kIndex, /*seed=*/1, kCount);
  EXPECT_EQ(comparison.different, 0) << comparison.first_difference;
  EXPECT_EQ(comparison.compared, kCount);
}

// Of which the CPU has a kernel for float32.
TEST(RandomStepTest, RecurrentStepsAgreeWithTheReference) {
  for (const int thread_count : {1, 2, 3}) {
    base::Result<std::unique_ptr<Device>> device = Device::Create(
        std::make_shared<threads::ThreadPool>(thread_count), base::Log(base::LogLevel::kWarning));
    ASSERT_TRUE(device.ok()) << device.status().Text();
    constexpr int64_t kCount = 1000;
    const reference::Comparison comparison =
        reference::CompareWithReference(**device, Family::kRecurrent, /*seed=*/1, kCount);
    EXPECT_EQ(comparison.different, 0) << comparison.first_difference;
    EXPECT_EQ(comparison.compared, kCount);
  }
}

// All of which the CPU has kernels for.
void CompareAttention(uint64_t seed, int64_t count) {
  base::Result<std::unique_ptr<Device>> device =
      Device::Create(std::make_shared<threads::ThreadPool>(2), base::Log(base::LogLevel::kWarning));
  ASSERT_TRUE(device.ok()) << device.status().Text();
  for (uint64_t k = 0; k < 100; ++k) {
    const reference::RandomStep step = reference::MakeRandomStep(Family::kAttention, seed + k);
    const auto selection = (*device)->Select({step.program, step.program.steps[0]});
    ASSERT_TRUE(selection.ok()) << selection.status().Text();
    ASSERT_EQ(selection->recipe->implementation(), "attention");
  }
  const reference::Comparison comparison =
      reference::CompareWithReference(**device, Family::kAttention, seed, count);
  EXPECT_EQ(comparison.different, 0) << comparison.first_difference;
  EXPECT_EQ(comparison.compared, count);
}

TEST(RandomStepTest, AttentionAgreesWithTheReference) {
  CompareAttention(/*seed=*/1, /*count=*/3000);
}

// For tools/test --full, by --gtest_also_run_disabled_tests.
TEST(RandomStepTest, DISABLED_ThirtyThousandContractsAgree) {
  CompareSteps(Family::kContract, /*seed=*/1'000'000, /*count=*/30'000, /*least_share=*/0.15);
}

TEST(RandomStepTest, DISABLED_ThirtyThousandStepsOfAttentionAgree) {
  CompareAttention(/*seed=*/1'000'000, /*count=*/30'000);
}

TEST(RandomStepTest, DISABLED_ThirtyThousandWindowsAgree) {
  CompareSteps(Family::kWindow, /*seed=*/1'000'000, /*count=*/30'000, /*least_share=*/0.1);
}

}  // namespace
}  // namespace onnxifi::cpu
