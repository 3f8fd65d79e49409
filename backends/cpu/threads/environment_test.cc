// SPDX-License-Identifier: Apache-2.0
//
// Tests of what ONNXIFI_NUM_THREADS, ONNXIFI_CPU_ISA and ONNXIFI_CPU_WITHOUT may say.

#include "backends/cpu/threads/environment.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

namespace onnxifi::threads {
namespace {

TEST(EnvironmentTest, TakesWholeNumbersInRange) {
  EXPECT_EQ(ParseThreadCount("1"), 1);
  EXPECT_EQ(ParseThreadCount("12"), 12);
  EXPECT_EQ(ParseThreadCount(std::to_string(kMaxThreads).c_str()), kMaxThreads);
}

TEST(EnvironmentTest, RefusesEverythingElse) {
  for (const char* text : {"", "0", "-1", "two", "2x", " 2", "2.0", "99999999999999999999"}) {
    EXPECT_EQ(ParseThreadCount(text), std::nullopt) << "'" << text << "'";
  }
  EXPECT_EQ(ParseThreadCount(std::to_string(kMaxThreads + 1).c_str()), std::nullopt);
}

TEST(EnvironmentTest, KnowsThreeSetsOfInstructions) {
  EXPECT_EQ(ParseIsa("sse4"), Isa::kSse4);
  EXPECT_EQ(ParseIsa("avx2"), Isa::kAvx2);
  EXPECT_EQ(ParseIsa("avx512"), Isa::kAvx512);
  for (const char* text : {"", "AVX2", "avx", "avx512f", " avx2"}) {
    EXPECT_EQ(ParseIsa(text), std::nullopt) << "'" << text << "'";
  }
}

// Each fault is told by itself: who reads the number of threads says nothing of instructions.
TEST(EnvironmentTest, SaysWhatIsIgnored) {
  setenv("ONNXIFI_NUM_THREADS", "many", /*overwrite=*/1);
  setenv("ONNXIFI_CPU_ISA", "sse9", /*overwrite=*/1);
  testing::internal::CaptureStderr();
  const Environment environment = ReadEnvironment();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(environment.thread_count_fault,
            "ONNXIFI_NUM_THREADS ('many') is ignored; it is not a number from 1 to 1024.");
  EXPECT_EQ(environment.isa_fault,
            "ONNXIFI_CPU_ISA ('sse9') is ignored; it is none of sse4, avx2 and avx512.");
  setenv("ONNXIFI_NUM_THREADS", "2", /*overwrite=*/1);
  unsetenv("ONNXIFI_CPU_ISA");
  EXPECT_EQ(ReadEnvironment().thread_count_fault, "");
  EXPECT_EQ(ReadEnvironment().isa_fault, "");
  unsetenv("ONNXIFI_NUM_THREADS");
}

TEST(EnvironmentTest, NamesStandBetweenCommas) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(ParseNames("few channels"), Names({"few channels"}));
  EXPECT_EQ(ParseNames(" a, few channels ,,b,"), Names({"a", "few channels", "b"}));
  EXPECT_EQ(ParseNames(""), Names());
  EXPECT_EQ(ParseNames(" , "), Names());
}

}  // namespace
}  // namespace onnxifi::threads
