// SPDX-License-Identifier: Apache-2.0
//
// What is known of the processor follows the instructions that kernels may use.

#include "backends/cpu/processor/processor.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <utility>

#include "backends/cpu/processor/testing/stated_caches.h"

namespace onnxifi::processor {
namespace {

TEST(ProcessorTest, HasCachesOfPlausibleSizes) {
  EXPECT_GE(L1Floats(), int64_t{1} << 11);
  EXPECT_LE(L1Floats(), int64_t{1} << 17);
  EXPECT_GT(L2Floats(), L1Floats());
  EXPECT_LE(L2Floats(), int64_t{1} << 26);
}

TEST(ProcessorTest, GoesByTheCachesThatATestStates) {
  const int64_t own = L2Floats();
  {
    const StatedCaches stated(kSmallCaches);
    EXPECT_EQ(L1Floats(), 32 * 256);
    EXPECT_EQ(L2Floats(), 256 * 256);
  }
  EXPECT_EQ(L2Floats(), own);
}

#if HWY_ARCH_X86
TEST(ProcessorTest, MultipliesAsManyAsTheVectorsInUseHold) {
  const std::pair<int64_t, double> expected[] = {{HWY_SSE4, 4}, {HWY_AVX2, 16}, {HWY_AVX3, 32}};
  for (const auto& [target, multiply_adds] : expected) {
    if ((hwy::SupportedTargets() & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(MultiplyAddsPerCycle(), multiply_adds) << hwy::TargetName(target);
    EXPECT_STREQ(VectorName(), hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}
#endif

}  // namespace
}  // namespace onnxifi::processor
