// SPDX-License-Identifier: Apache-2.0
//
// KeptMemory: leaks are told from caches.

#include "conformance/suites/kept_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace onnxifi::suites {
namespace {

using ::testing::HasSubstr;

// A sanitizer's malloc counts nothing; it finds leaks itself.
bool CountsMemory() {
  std::vector<std::unique_ptr<char[]>> kept;
  bool is_measured = false;
  const base::Status status = CheckKeptMemory(
      [&] {
        kept.push_back(std::make_unique<char[]>(10000));
        return base::Ok();
      },
      is_measured);
  return !status.ok();
}

TEST(KeptMemoryTest, WhatEveryRunKeepsIsFound) {
  if (!CountsMemory()) GTEST_SKIP() << "malloc does not count here";
  std::vector<std::unique_ptr<char[]>> kept;
  kept.reserve(10000);
  bool is_measured = false;
  const base::Status status = CheckKeptMemory(
      [&] {
        kept.push_back(std::make_unique<char[]>(100));
        return base::Ok();
      },
      is_measured);
  EXPECT_TRUE(is_measured);
  EXPECT_THAT(status.Text(), HasSubstr("Each run leaves 1"));
}

TEST(KeptMemoryTest, MemoryThatIsFreedOrKeptOnceIsNone) {
  std::unique_ptr<char[]> cache;
  bool is_measured = false;
  const base::Status status = CheckKeptMemory(
      [&] {
        if (cache == nullptr) cache = std::make_unique<char[]>(100000);
        const auto freed = std::make_unique<char[]>(1000);
        freed[0] = cache[0];
        return base::Ok();
      },
      is_measured);
  EXPECT_TRUE(is_measured);
  EXPECT_EQ(status.Text(), "");
}

TEST(KeptMemoryTest, SlowRunsAreNotRepeated) {
  int count = 0;
  bool is_measured = true;
  EXPECT_TRUE(CheckKeptMemory(
                  [&] {
                    ++count;
                    std::this_thread::sleep_for(std::chrono::milliseconds(25));
                    return base::Ok();
                  },
                  is_measured)
                  .ok());
  EXPECT_FALSE(is_measured);
  EXPECT_EQ(count, 4);
}

TEST(KeptMemoryTest, ARunThatFailsEndsIt) {
  bool is_measured = false;
  EXPECT_THAT(CheckKeptMemory([] { return base::Status(base::Code::kInternalError, "It fails."); },
                              is_measured)
                  .Text(),
              HasSubstr("It fails."));
}

}  // namespace
}  // namespace onnxifi::suites
