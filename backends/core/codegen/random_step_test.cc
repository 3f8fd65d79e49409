// SPDX-License-Identifier: Apache-2.0
//
// Random steps of every family on the tested device, compared with the reference. Skipped, with the
// reason, where there is none.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "backends/core/codegen/testing/tested_device.h"
#include "backends/core/reference/testing/step_comparison.h"

namespace onnxifi::codegen {
namespace {

using reference::Family;

class RandomStepTest : public testing::TestWithParam<Family> {};

TEST_P(RandomStepTest, AgreesWithTheReference) {
  const auto tested = OpenTestedDevice(/*cache_folder=*/{});
  if (!tested.ok()) GTEST_SKIP() << tested.status().Text();
  if (GetParam() == Family::kRecurrent) {
    const reference::RandomStep step = reference::MakeRandomStep(GetParam(), /*seed=*/1);
    if (!(*tested)->device().PrefersRecurrent({step.program, step.program.steps[0]})) {
      GTEST_SKIP() << "The device prefers a scan over time.";
    }
  }
  // Compiling takes most of the time: a kernel per step.
  constexpr int64_t kCount = 12;
  const reference::Comparison comparison =
      reference::CompareWithReference((*tested)->device(), GetParam(), /*seed=*/1, kCount);
  std::printf("%s: %lld steps compared, %lld different, %lld kernels built\n",
              std::string(Name(GetParam())).c_str(), static_cast<long long>(comparison.compared),
              static_cast<long long>(comparison.different),
              static_cast<long long>((*tested)->kernel_count()));
  EXPECT_EQ(comparison.different, 0) << comparison.first_difference;
  EXPECT_EQ(comparison.refused, 0);
  EXPECT_EQ(comparison.compared, kCount);
}

INSTANTIATE_TEST_SUITE_P(Families, RandomStepTest, testing::ValuesIn(reference::kFamilies),
                         [](const testing::TestParamInfo<Family>& family) {
                           return std::string(Name(family.param));
                         });

}  // namespace
}  // namespace onnxifi::codegen
