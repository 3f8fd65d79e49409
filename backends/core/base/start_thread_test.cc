// SPDX-License-Identifier: Apache-2.0
//
// StartThread, in a process that may have no more threads.

#include "backends/core/base/start_thread.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace {

std::atomic<bool> has_threads_left = true;

}  // namespace

// In the place of the system's.
extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  if (!has_threads_left) return EAGAIN;
  static const auto create =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, start, argument);
}

namespace onnxifi::base {
namespace {

TEST(StartThread, RunsTheBody) {
  int number = 0;
  Result<std::thread> thread = StartThread("counts", [&] { ++number; });
  ASSERT_TRUE(thread.ok());
  thread->join();
  EXPECT_EQ(number, 1);
}

TEST(StartThread, SaysThatTheSystemHasNoMore) {
  has_threads_left = false;
  const Result<std::thread> thread = StartThread("counts", [] {});
  has_threads_left = true;
  ASSERT_FALSE(thread.ok());
  EXPECT_EQ(thread.status().code(), Code::kNoSystemResources);
  EXPECT_TRUE(thread.status().sentence().starts_with("The thread that counts cannot be started: "))
      << thread.status().Text();
}

}  // namespace
}  // namespace onnxifi::base
