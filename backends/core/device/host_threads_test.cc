// SPDX-License-Identifier: Apache-2.0
//
// HostThreads: every index once, in ranges that are long enough, on more threads than one.

#include "backends/core/device/host_threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "backends/core/device/usable_cpus.h"

namespace onnxifi::device {
namespace {

TEST(HostThreadsTest, EveryIndexIsDoneOnce) {
  HostThreads threads;
  for (const int64_t count : {0, 1, 2, 7, 16, 17, 1000, 1003}) {
    for (const int64_t grain : {1, 3, 500}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(count));
      std::atomic<int> short_ranges = 0;
      threads.For(count, grain, [&](int64_t begin, int64_t end) {
        if (end - begin < grain) ++short_ranges;
        for (int64_t k = begin; k < end; ++k) ++done[static_cast<size_t>(k)];
      });
      EXPECT_TRUE(std::ranges::all_of(done, [](const auto& times) { return times == 1; })) << count;
      EXPECT_LE(short_ranges, 1) << count << ", " << grain;
    }
  }
}

TEST(HostThreadsTest, WorkIsSharedByAllThreads) {
  const auto cpus = std::min<int64_t>(CountUsableCpus(), HostThreads::kMaxThreads);
  HostThreads threads;
  std::mutex mutex;
  std::set<std::thread::id> seen;
  threads.For(1000, 1, [&](int64_t, int64_t) {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(static_cast<int64_t>(seen.size()), cpus);
  EXPECT_TRUE(seen.contains(std::this_thread::get_id()));
}

TEST(HostThreadsTest, WhatIsThrownArrivesAtTheCaller) {
  HostThreads threads;
  std::vector<int> items(100);
  EXPECT_THROW(ForEach(threads, std::span<int>(items), [](int) { throw std::runtime_error("no"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace onnxifi::device
