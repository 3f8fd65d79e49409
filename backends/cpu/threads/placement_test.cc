// SPDX-License-Identifier: Apache-2.0
//
// MoveFrom: a thread leaves a processor, and may be on the same ones as before.

#include "backends/cpu/threads/placement.h"

#include <gtest/gtest.h>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace onnxifi::threads {
namespace {

cpu_set_t AllowedTo(pthread_t thread) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(pthread_getaffinity_np(thread, sizeof(allowed), &allowed), 0);
  return allowed;
}

TEST(PlacementTest, MovesAThreadThatWaitsForTheProcessorOfItsCaller) {
  const cpu_set_t allowed = AllowedTo(pthread_self());
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "There is one processor.";
  std::atomic<bool> is_over = false;
  std::atomic<int> at = -1;
  std::thread spinning([&] {
    while (!is_over.load()) at.store(sched_getcpu());
  });
  // Both on one processor.
  const int here = CurrentProcessor();
  ASSERT_GE(here, 0);
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(here, &only);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(only), &only), 0);
  ASSERT_EQ(pthread_setaffinity_np(spinning.native_handle(), sizeof(only), &only), 0);
  ASSERT_EQ(pthread_setaffinity_np(spinning.native_handle(), sizeof(allowed), &allowed), 0);
  MoveFrom(here, spinning.native_handle());
  const cpu_set_t after = AllowedTo(spinning.native_handle());
  EXPECT_TRUE(CPU_EQUAL(&after, &allowed));
  // It says where it is as soon as it runs; the system may move it back later.
  bool has_left = false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!has_left && std::chrono::steady_clock::now() < end) has_left = at.load() != here;
  EXPECT_TRUE(has_left);
  is_over = true;
  spinning.join();
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed), 0);
}

TEST(PlacementTest, LeavesAThreadThatMayBeOnOneProcessorOnly) {
  const cpu_set_t allowed = AllowedTo(pthread_self());
  const int here = CurrentProcessor();
  ASSERT_GE(here, 0);
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(here, &only);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(only), &only), 0);
  MoveFrom(here, pthread_self());
  const cpu_set_t after = AllowedTo(pthread_self());
  EXPECT_TRUE(CPU_EQUAL(&after, &only));
  EXPECT_EQ(CurrentProcessor(), here);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed), 0);
}

}  // namespace
}  // namespace onnxifi::threads

#endif
