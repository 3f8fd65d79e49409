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

// Spins, and says where it is.
class Spinning {
 public:
  ~Spinning() {
    is_over_ = true;
    thread_.join();
  }
  pthread_t handle() { return thread_.native_handle(); }
  // Whether it is, or is not, on a processor before 20 s are over.
  bool ComesTo(int processor) {
    return Waits([&] { return at_.load() == processor; });
  }
  bool Leaves(int processor) {
    return Waits([&] { return at_.load() != processor; });
  }

 private:
  template <typename Condition>
  static bool Waits(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

  std::atomic<bool> is_over_ = false;
  std::atomic<int> at_ = -1;
  std::thread thread_{[this] {
    while (!is_over_.load()) at_.store(sched_getcpu());
  }};
};

cpu_set_t Only(int processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  return only;
}

TEST(PlacementTest, MovesAThreadFromAProcessor) {
  const cpu_set_t allowed = AllowedTo(pthread_self());
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "There is one processor.";
  Spinning spinning;
  // Where nothing but itself makes it leave.
  int there = 0;
  while (!CPU_ISSET(there, &allowed) || there == CurrentProcessor()) ++there;
  const cpu_set_t only = Only(there);
  ASSERT_EQ(pthread_setaffinity_np(spinning.handle(), sizeof(only), &only), 0);
  ASSERT_TRUE(spinning.ComesTo(there));
  ASSERT_EQ(pthread_setaffinity_np(spinning.handle(), sizeof(allowed), &allowed), 0);
  MoveFrom(there, spinning.handle());
  EXPECT_TRUE(spinning.Leaves(there));
  const cpu_set_t after = AllowedTo(spinning.handle());
  EXPECT_TRUE(CPU_EQUAL(&after, &allowed));
}

TEST(PlacementTest, LeavesAThreadThatMayBeOnOneProcessorOnly) {
  const cpu_set_t allowed = AllowedTo(pthread_self());
  const int here = CurrentProcessor();
  ASSERT_GE(here, 0);
  const cpu_set_t only = Only(here);
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
