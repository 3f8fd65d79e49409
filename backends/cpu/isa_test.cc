// SPDX-License-Identifier: Apache-2.0
//
// What reports say about the instructions in use: those of this processor, and no more than a
// limit.

#include "backends/cpu/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace onnxifi::cpu {
namespace {

using testing::StartsWith;

TEST(IsaTest, NamesBothOfTheBestHere) {
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  EXPECT_THAT(IsaInUse(),
              StartsWith(std::string(hwy::TargetName(targets & -targets)) + ", oneDNN "));
}

#if HWY_ARCH_X86
// In a process of its own: a limit holds for the rest of it.
TEST(IsaDeathTest, NamesNoMoreThanTheLimit) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto limited = [](threads::Isa isa, const std::string& expected) {
    LimitIsa(isa);
    if (IsaInUse() != expected) std::fprintf(stderr, "%s\n", IsaInUse().c_str());
    std::exit(IsaInUse() == expected ? 0 : 1);
  };
  EXPECT_EXIT(limited(threads::Isa::kSse4, "SSE4, oneDNN SSE4.1"), testing::ExitedWithCode(0), "");
  if ((hwy::SupportedTargets() & HWY_AVX2) == 0) return;
  EXPECT_EXIT(limited(threads::Isa::kAvx2, "AVX2, oneDNN AVX2"), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace onnxifi::cpu
