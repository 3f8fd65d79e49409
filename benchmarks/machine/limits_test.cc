// SPDX-License-Identifier: Apache-2.0
//
// Limits: what is looked up for which size and number of threads, and the file in the cache.

#include "benchmarks/machine/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace onnxifi::machine {
namespace {

using testing::HasSubstr;

Limits MakeLimits() {
  Limits limits;
  limits.processor = "Some \"processor\"";
  limits.instructions = "AVX2";
  limits.by_threads = {{1, 100.5, 0, 25, {{1000, 50}, {100000, 20}}},
                       {4, 390.25, 1500, 40.5, {{1000, 210}, {100000, 30}}}};
  return limits;
}

// Sets the cache to a fresh folder of its own, since tests run at the same time, and puts things
// back.
class LimitsCacheTest : public testing::Test {
 public:
  LimitsCacheTest() : folder_(testing::TempDir() + "onnxifi-limits-" + std::to_string(getpid())) {
    std::filesystem::remove_all(folder_);
    if (const char* before = std::getenv("ONNXIFI_CACHE_HOME")) before_ = before;
    setenv("ONNXIFI_CACHE_HOME", folder_.c_str(), 1);
  }
  ~LimitsCacheTest() override {
    std::filesystem::remove_all(folder_);
    if (before_.empty()) {
      unsetenv("ONNXIFI_CACHE_HOME");
    } else {
      setenv("ONNXIFI_CACHE_HOME", before_.c_str(), 1);
    }
  }

 protected:
  std::string folder_;
  std::string before_;
};

TEST(LimitsTest, BandwidthIsThatOfTheSmallestCopyThatMovesAsMuch) {
  const ThreadLimits limits = MakeLimits().by_threads[1];
  EXPECT_EQ(limits.BandwidthFor(0), 210);
  // A copy of 1000 bytes moves 2000.
  EXPECT_EQ(limits.BandwidthFor(2000), 210);
  EXPECT_EQ(limits.BandwidthFor(2001), 30);
  EXPECT_EQ(limits.BandwidthFor(int64_t{1} << 40), 30);
  EXPECT_EQ(ThreadLimits().BandwidthFor(1), 0);
}

TEST(LimitsTest, ThreadsNotMeasuredTakeTheNextFewer) {
  const Limits limits = MakeLimits();
  EXPECT_EQ(limits.For(1)->threads, 1);
  EXPECT_EQ(limits.For(3)->threads, 1);
  EXPECT_EQ(limits.For(4)->threads, 4);
  EXPECT_EQ(limits.For(64)->threads, 4);
  EXPECT_EQ(Limits().For(1), nullptr);
}

TEST_F(LimitsCacheTest, KeepsEveryNumber) {
  EXPECT_EQ(ReadCached().status().code(), base::Code::kInvalidName);
  ASSERT_TRUE(WriteCached(MakeLimits()).ok());
  const auto read = ReadCached();
  ASSERT_TRUE(read.ok()) << read.status().Text();
  EXPECT_EQ(ToJson(*read), ToJson(MakeLimits()));
  EXPECT_EQ(read->by_threads[1].float32_gflops, 390.25);
  EXPECT_EQ(read->by_threads[1].int8_gops, 1500);
  EXPECT_EQ(read->by_threads[1].read_gigabytes_per_s, 40.5);
  EXPECT_EQ(read->by_threads[0].copies[1].gigabytes_per_s, 20);
}

TEST_F(LimitsCacheTest, RefusesFilesOfAnotherFormatAndDamagedOnes) {
  ASSERT_TRUE(WriteCached(MakeLimits()).ok());
  for (const char* text : {"{\"format\": 1}", "{\"format\": 2}", "nothing", ""}) {
    std::ofstream(CachePath()) << text;
    const auto read = ReadCached();
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.status().code(), base::Code::kInvalidState);
    EXPECT_THAT(read.status().Text(), HasSubstr("machine/"));
  }
}

TEST(LimitsTest, ThreadsInUseObeyTheVariableWhereItIsANumber) {
  const char* const before = std::getenv("ONNXIFI_NUM_THREADS");
  const std::string kept = before != nullptr ? before : "";
  setenv("ONNXIFI_NUM_THREADS", "7", 1);
  EXPECT_EQ(ThreadsInUse(), 7);
  for (const char* text : {"0", "-1", "2x", ""}) {
    setenv("ONNXIFI_NUM_THREADS", text, 1);
    EXPECT_EQ(ThreadsInUse(), UsableProcessors()) << text;
  }
  if (before != nullptr) {
    setenv("ONNXIFI_NUM_THREADS", kept.c_str(), 1);
  } else {
    unsetenv("ONNXIFI_NUM_THREADS");
  }
}

}  // namespace
}  // namespace onnxifi::machine
