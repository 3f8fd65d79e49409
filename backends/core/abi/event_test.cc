// SPDX-License-Identifier: Apache-2.0
//
// LocalEvent: callbacks, completion and abandonment.

#include "backends/core/abi/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

namespace onnxifi::abi {
namespace {

using base::Code;
using base::Status;

TEST(LocalEvent, CallsBackOnceWhetherSignalledBeforeOrAfter) {
  LocalEvent event(LocalEvent::Origin::kCaller);
  int calls = 0;
  event.OnSignal([&](const Status& status) { calls += status.ok() ? 1 : 100; });
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(event.Signal().ok());
  EXPECT_EQ(calls, 1);
  event.OnSignal([&](const Status& status) { calls += status.ok() ? 10 : 100; });
  EXPECT_EQ(calls, 11);
  EXPECT_EQ(event.Signal().code(), Code::kInvalidState);
  EXPECT_EQ(calls, 11);
}

TEST(LocalEvent, KeepsTheFirstCompletion) {
  LocalEvent event(LocalEvent::Origin::kRun);
  event.Complete(Status(Code::kNoDeviceMemory, "The device has 0 bytes left."));
  event.Complete(base::Ok(), {.shapes = {{"y", ONNXIFI_DATATYPE_FLOAT32, true, {1}}}});
  EXPECT_EQ(event.Wait().code(), Code::kNoDeviceMemory);
  EXPECT_TRUE(event.OutputShapes()->empty());
}

TEST(LocalEvent, OfACallerFailsItsRunsWhenAbandoned) {
  LocalEvent event(LocalEvent::Origin::kCaller);
  Code seen = Code::kOk;
  event.OnSignal([&](const Status& status) { seen = status.code(); });
  event.Abandon();
  EXPECT_EQ(seen, Code::kInvalidEvent);
  EXPECT_EQ(event.Wait().code(), Code::kInvalidEvent);
}

TEST(LocalEvent, OfARunStaysUsefulWhenAbandoned) {
  LocalEvent event(LocalEvent::Origin::kRun);
  event.Abandon();
  EXPECT_FALSE(*event.IsSignalled());
  event.Complete(base::Ok());
  EXPECT_TRUE(event.Wait().ok());
}

TEST(LocalEvent, WaitForEndsByTimeOrBySignal) {
  LocalEvent event(LocalEvent::Origin::kCaller);
  EXPECT_FALSE(event.WaitFor(std::chrono::milliseconds(1)).has_value());
  std::thread signaller([&] { EXPECT_TRUE(event.Signal().ok()); });
  const std::optional<Status> outcome = event.WaitFor(std::chrono::minutes(1));
  signaller.join();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->ok());
}

TEST(LocalEvent, CallsBackExactlyOnceUnderConcurrentSignals) {
  for (int round = 0; round < 200; ++round) {
    LocalEvent event(LocalEvent::Origin::kCaller);
    std::atomic<int> calls = 0;
    std::atomic<int> successes = 0;
    std::vector<std::thread> threads;
    for (int count = 0; count < 2; ++count) {
      threads.emplace_back([&] { successes += event.Signal().ok() ? 1 : 0; });
      threads.emplace_back([&] { event.OnSignal([&](const Status&) { ++calls; }); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(successes, 1);
    EXPECT_EQ(calls, 2);
  }
}

}  // namespace
}  // namespace onnxifi::abi
