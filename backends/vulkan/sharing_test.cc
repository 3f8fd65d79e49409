// SPDX-License-Identifier: Apache-2.0
//
// Callers who use Vulkan themselves: their device, buffers, semaphores and queue, through the
// exported interface, of the plugin and of libonnxifi in front of it. Expected values are those of
// the reference plugin. Skipped where there is no device.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <onnxifi/onnxifi.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/vulkan/testing/digits_caller.h"

namespace onnxifi::vulkan {
namespace {

using testing::HasSubstr;

TEST_P(VulkanSharingTest, QueriesTellWhatIsTaken) {
  EXPECT_EQ(*device_->NumberInfo(ONNXIFI_BACKEND_MEMORY_TYPES) & ~ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD,
            ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER);
  EXPECT_EQ(*device_->NumberInfo(ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES),
            uint64_t{ONNXIFI_SYNCHRONIZATION_IMPLICIT});
  EXPECT_EQ(*device_->NumberInfo(ONNXIFI_BACKEND_INIT_PROPERTIES),
            ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE);
  EXPECT_EQ(device_->TextInfo(ONNXIFI_SDK_BACKEND_DEVICE_UUID)->size(), 32U);
}

TEST_P(VulkanSharingTest, BuffersAreReadAndWrittenWithoutACopy) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  const auto images = MakeBuffer(kImageBytes, /*offset=*/48);
  // Longer than needed: the rest is to stay as it is.
  const auto scores = MakeBuffer(kScoreBytes + 5 * sizeof(float), /*offset=*/16);
  std::ranges::fill(scores->floats(), 77.0F);
  const auto bound =
      graph->SetIO(std::vector{ImageTensor(images->told)}, std::vector{ScoreTensor(scores->told)});
  ASSERT_TRUE(bound.ok()) << bound.error().Text();
  onnxGraphCounters first = {};
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const std::vector<float> values = Images(seed);
    std::ranges::copy(values, images->floats().begin());
    const auto ran = graph->RunAndWait();
    ASSERT_TRUE(ran.ok()) << ran.error().Text();
    EXPECT_THAT(Copy(scores->floats().first(kBatch * kClasses)), IsCloseTo(Expected(values)));
    if (seed == 1) first = *graph->Counters();
  }
  EXPECT_EQ(Copy(scores->floats().last(5)), std::vector<float>(5, 77));
  const onnxGraphCounters last = *graph->Counters();
  EXPECT_EQ(last.copies, 0U);
  EXPECT_EQ(last.waits, 0U);
  EXPECT_EQ(last.allocations, first.allocations);
  EXPECT_GE(caller_->lock_count(), 4);
}

TEST_P(VulkanSharingTest, OneBufferHoldsBothTensors) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const auto both = MakeBuffer(kImageBytes + kScoreBytes);
  onnxVulkanBuffer images = both->told;
  images.size_bytes = kImageBytes;
  onnxVulkanBuffer scores = both->told;
  scores.offset = kImageBytes;
  scores.size_bytes = kScoreBytes;
  std::vector<float> results(kBatch * kClasses);
  const std::vector<float> values = Images(5);
  std::ranges::copy(values, both->floats().begin());
  ASSERT_TRUE(
      graph->SetIO(std::vector{ImageTensor(images)}, std::vector{ScoreTensor(scores)}).ok());
  // The one is bound anew while the other stays as it was.
  ASSERT_TRUE(
      graph->SetIO(std::vector{ImageTensor(images)}, std::vector{ScoreTensor(results.data())})
          .ok());
  ASSERT_TRUE(graph->RunAndWait().ok());
  EXPECT_THAT(results, IsCloseTo(Expected(values)));
  ASSERT_TRUE(
      graph->SetIO(std::vector{ImageTensor(images)}, std::vector{ScoreTensor(scores)}).ok());
  ASSERT_TRUE(graph->RunAndWait().ok());
  EXPECT_THAT(Copy(both->floats().last(kBatch * kClasses)), IsCloseTo(Expected(values)));
}

TEST_P(VulkanSharingTest, UnfitBuffersAreRefusedWithTheReason) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const auto images = MakeBuffer(kImageBytes, /*offset=*/16);
  const auto scores = MakeBuffer(kScoreBytes);
  const auto expect = [&](auto change, const std::vector<std::string>& words) {
    onnxVulkanBuffer changed = images->told;
    change(changed);
    const auto bound =
        graph->SetIO(std::vector{ImageTensor(changed)}, std::vector{ScoreTensor(scores->told)});
    ASSERT_FALSE(bound.ok()) << words[0];
    EXPECT_EQ(bound.error().status, ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
    for (const std::string& word : words) EXPECT_THAT(bound.error().sentence, HasSubstr(word));
  };
  expect([](onnxVulkanBuffer& told) { told.size_bytes -= 4; }, {"764 bytes", "needs 768", "image"});
  expect([](onnxVulkanBuffer& told) { told.size_bytes += 1 << 20; }, {"at most"});
  expect([](onnxVulkanBuffer& told) { told.offset = ~uint64_t{15}; }, {"at most"});
  expect([](onnxVulkanBuffer& told) { told.offset = 4; }, {"byte 4", "multiple of 16"});
  expect([](onnxVulkanBuffer& told) { told.buffer = 0; }, {"NULL"});
  expect([](onnxVulkanBuffer& told) { told.device = nullptr; }, {"another device"});
  expect([](onnxVulkanBuffer& told) { told.usage &= ~VK_BUFFER_USAGE_STORAGE_BUFFER_BIT; },
         {"STORAGE_BUFFER"});
  expect([](onnxVulkanBuffer& told) { told.usage &= ~VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT; },
         {"SHADER_DEVICE_ADDRESS"});
  expect([](onnxVulkanBuffer& told) { told.struct_size = 8; }, {"8 bytes"});
  // What was refused is forgotten, and what fits still runs.
  EXPECT_FALSE(graph->RunAndWait().ok());
  ASSERT_TRUE(
      graph->SetIO(std::vector{ImageTensor(images->told)}, std::vector{ScoreTensor(scores->told)})
          .ok());
  const std::vector<float> values = Images(7);
  std::ranges::copy(values, images->floats().begin());
  ASSERT_TRUE(graph->RunAndWait().ok());
  EXPECT_THAT(Copy(scores->floats()), IsCloseTo(Expected(values)));
}

TEST_P(VulkanSharingTest, WithoutTheCallersDeviceItsObjectsAreOfAnother) {
  const Backend backend = *device_->InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const auto images = MakeBuffer(kImageBytes);
  std::vector<float> results(kBatch * kClasses);
  const auto bound = graph->SetIO(std::vector{ImageTensor(images->told)},
                                  std::vector{ScoreTensor(results.data())});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().status, ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  EXPECT_THAT(bound.error().sentence, HasSubstr("ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE"));
  const auto semaphore = *caller_->MakeSemaphore();
  const auto imported = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_VULKAN,
                                            reinterpret_cast<uintptr_t>(semaphore.get()), 1);
  ASSERT_FALSE(imported.ok());
  EXPECT_EQ(imported.error().status, ONNXIFI_STATUS_INVALID_EVENT);
  const auto exported = backend.NewEvent()->Export(ONNXIFI_SDK_NATIVE_EVENT_VULKAN);
  ASSERT_FALSE(exported.ok());
  EXPECT_EQ(exported.error().status, ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE);
}

TEST_P(VulkanSharingTest, UnfitDevicesAreRefusedWithTheReason) {
  const auto expect = [&](auto change, const char* word) {
    onnxVulkanDevice told = caller_->Told();
    change(told);
    const auto backend = TryBackend(told);
    ASSERT_FALSE(backend.ok()) << word;
    EXPECT_EQ(backend.error().status, ONNXIFI_STATUS_INVALID_PROPERTY) << word;
    EXPECT_THAT(backend.error().sentence, HasSubstr(word));
  };
  expect([](onnxVulkanDevice& told) { told.instance = nullptr; }, "instance to share is NULL");
  expect([](onnxVulkanDevice& told) { told.device = nullptr; }, "device to share is NULL");
  expect([](onnxVulkanDevice& told) { told.queue = nullptr; }, "queue to share is NULL");
  expect([](onnxVulkanDevice& told) { told.struct_size = 8; }, "NULL");
  expect([](onnxVulkanDevice& told) { told.physical_device = &told; }, "none of its");
  expect([](onnxVulkanDevice& told) { told.queue_family = 99; }, "queue family 99");
  expect([](onnxVulkanDevice& told) { told.unlock_queue = nullptr; }, "one is NULL");
  VkPhysicalDeviceFeatures2 none{};
  none.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  expect([&](onnxVulkanDevice& told) { told.features = &none; }, "without bufferDeviceAddress");
  // Older structures say the same.
  VkPhysicalDeviceBufferDeviceAddressFeatures address{};
  address.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES;
  address.bufferDeviceAddress = VK_TRUE;
  none.pNext = &address;
  expect([&](onnxVulkanDevice& told) { told.features = &none; }, "without scalarBlockLayout");
  const uint64_t null[] = {ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE, 0};
  const auto refused = device_->InitBackend(null);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().status, ONNXIFI_STATUS_INVALID_PROPERTY);
  EXPECT_TRUE(TryBackend(caller_->Told()).ok());
}

TEST_P(VulkanSharingTest, RunsInASharedQueueAreOrderedByIt) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const auto images = MakeBuffer(kImageBytes);
  const auto scores = MakeBuffer(kScoreBytes);
  ASSERT_TRUE(
      graph->SetIO(std::vector{ImageTensor(images->told)}, std::vector{ScoreTensor(scores->told)})
          .ok());
  constexpr uint32_t kRuns = 4;
  std::vector<std::unique_ptr<Caller::Buffer>> sources;
  std::vector<std::unique_ptr<Caller::Buffer>> results;
  for (uint32_t run = 0; run < kRuns; ++run) {
    sources.push_back(MakeBuffer(kImageBytes));
    results.push_back(MakeBuffer(kScoreBytes));
    std::ranges::copy(Images(20 + run), sources[run]->floats().begin());
    ASSERT_TRUE(
        caller_->SubmitCopy(sources[run]->buffer.get(), images->buffer.get(), kImageBytes).ok());
    const auto queued = graph->RunInSharedQueue();
    ASSERT_TRUE(queued.ok()) << queued.error().Text();
    ASSERT_TRUE(
        caller_->SubmitCopy(scores->buffer.get(), results[run]->buffer.get(), kScoreBytes).ok());
  }
  caller_->Finish();
  for (uint32_t run = 0; run < kRuns; ++run) {
    EXPECT_THAT(Copy(results[run]->floats()), IsCloseTo(Expected(Images(20 + run)))) << run;
  }
  EXPECT_EQ(graph->Counters()->copies, 0U);
}

// The queue does not get to the run before the caller acts.
TEST_P(VulkanSharingTest, RunsInASharedQueueDoNotWaitForIt) {
  const auto semaphore = *caller_->MakeSemaphore();
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const auto images = MakeBuffer(kImageBytes);
  const auto scores = MakeBuffer(kScoreBytes);
  const auto source = MakeBuffer(kImageBytes);
  const auto result = MakeBuffer(kScoreBytes);
  ASSERT_TRUE(
      graph->SetIO(std::vector{ImageTensor(images->told)}, std::vector{ScoreTensor(scores->told)})
          .ok());
  // Recorded in between; the last time with inputs that the host brings.
  for (uint64_t value = 1; value <= 5; ++value) {
    const std::vector<float> values = Images(static_cast<uint32_t>(70 + value));
    const bool is_hosts = value == 5;
    if (is_hosts) {
      ASSERT_TRUE(graph
                      ->SetIO(std::vector{ImageTensor(const_cast<float*>(values.data()))},
                              std::vector{ScoreTensor(scores->told)})
                      .ok());
    }
    std::ranges::copy(values, source->floats().begin());
    ASSERT_TRUE(caller_
                    ->SubmitCopy(source->buffer.get(), images->buffer.get(), kImageBytes,
                                 semaphore.get(), value)
                    .ok());
    // Whoever waits is told so at last.
    std::atomic<bool> has_returned = false;
    std::thread rescuer([&] {
      for (int k = 0; k < 3000 && !has_returned; ++k) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      if (!has_returned) caller_->Signal(semaphore.get(), value);
    });
    const auto queued = graph->RunInSharedQueue();
    const bool is_held = caller_->ValueOf(semaphore.get()) < value;
    has_returned = true;
    rescuer.join();
    ASSERT_TRUE(queued.ok()) << queued.error().Text();
    ASSERT_TRUE(is_held) << "onnxRunGraph waits for the queue.";
    ASSERT_TRUE(caller_->SubmitCopy(scores->buffer.get(), result->buffer.get(), kScoreBytes).ok());
    caller_->Signal(semaphore.get(), value);
    caller_->Finish();
    EXPECT_THAT(Copy(result->floats()), IsCloseTo(Expected(values))) << value;
  }
  EXPECT_EQ(graph->Counters()->waits, 0U);
}

// Many runs are under way at a time, of several graphs, and one graph goes before they are done.
TEST_P(VulkanSharingTest, ManyRunsAreInASharedQueueAtATime) {
  const Backend backend = InitBackend();
  const auto images = MakeBuffer(kImageBytes);
  const auto scores = MakeBuffer(kScoreBytes);
  const std::vector<float> values = Images(90);
  std::ranges::copy(values, images->floats().begin());
  for (int round = 0; round < 2; ++round) {
    const auto graph = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(graph.ok());
    ASSERT_TRUE(
        graph->SetIO(std::vector{ImageTensor(images->told)}, std::vector{ScoreTensor(scores->told)})
            .ok());
    for (int run = 0; run < 200; ++run) ASSERT_TRUE(graph->RunInSharedQueue().ok());
    const onnxGraphCounters counters = *graph->Counters();
    EXPECT_EQ(counters.submissions, 200U);
    EXPECT_EQ(counters.recordings, 1U);
  }
  caller_->Finish();
  EXPECT_THAT(Copy(scores->floats()), IsCloseTo(Expected(values)));
}

// Outputs in the host's memory are there when the call returns.
TEST_P(VulkanSharingTest, RunsInASharedQueueWaitForOutputsOfTheHosts) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  std::vector<float> values = Images(80);
  std::vector<float> results(kBatch * kClasses);
  ASSERT_TRUE(
      graph
          ->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(results.data())})
          .ok());
  for (uint32_t run = 0; run < 4; ++run) {
    std::ranges::copy(Images(80 + run), values.begin());  // where they are bound
    ASSERT_TRUE(graph->RunInSharedQueue().ok());
    EXPECT_THAT(results, IsCloseTo(Expected(values))) << run;
  }
}

TEST_P(VulkanSharingTest, RunsWaitForSemaphoresOfTheCallers) {
  // What the backend waits for outlives it.
  const auto semaphore = *caller_->MakeSemaphore();
  const auto other = *caller_->MakeSemaphore();
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  std::vector<float> values(kBatch * kPixels);
  std::vector<float> results(kBatch * kClasses);
  ASSERT_TRUE(
      graph
          ->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(results.data())})
          .ok());
  // One that never comes is no hindrance.
  const auto never = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_VULKAN,
                                         reinterpret_cast<uintptr_t>(other.get()), 1);
  ASSERT_TRUE(never.ok());
  for (uint64_t value = 3; value < 9; value += 2) {
    const auto imported = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_VULKAN,
                                              reinterpret_cast<uintptr_t>(semaphore.get()), value);
    ASSERT_TRUE(imported.ok()) << imported.error().Text();
    const auto output = graph->Run(*imported);
    ASSERT_TRUE(output.ok());
    caller_->Signal(semaphore.get(), value - 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(*output->IsSignalled());
    const std::vector<float> images = Images(static_cast<uint32_t>(40 + value));
    std::ranges::copy(images, values.begin());
    caller_->Signal(semaphore.get(), value);
    ASSERT_TRUE(output->Wait().ok());
    EXPECT_THAT(results, IsCloseTo(Expected(images)));
  }
  EXPECT_FALSE(*never->IsSignalled());
  // What is reached already is complete.
  const auto late = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_VULKAN,
                                        reinterpret_cast<uintptr_t>(semaphore.get()), 2);
  EXPECT_TRUE(late->Wait().ok());
}

// The caller releases the backend, then its semaphore, then what is left.
TEST_P(VulkanSharingTest, RunsWhoseSemaphoreNeverComesEndWithTheBackend) {
  std::vector<float> values(kBatch * kPixels);
  std::vector<float> results(kBatch * kClasses, -1);
  auto semaphore = *caller_->MakeSemaphore();
  const Backend backend = InitBackend();
  std::optional<Graph> graph = *backend.InitGraph(DigitsModel());
  ASSERT_TRUE(
      graph
          ->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(results.data())})
          .ok());
  std::optional<Event> imported = *backend.ImportEvent(
      ONNXIFI_SDK_NATIVE_EVENT_VULKAN, reinterpret_cast<uintptr_t>(semaphore.get()), 1);
  const auto first = graph->Run(*imported);
  ASSERT_TRUE(first.ok());
  // A run needs the driver's event, not our handle of it; another waits behind it.
  const auto second = graph->Run(*imported);
  ASSERT_TRUE(second.ok());
  imported.reset();
  std::vector<Error> told(2);
  std::vector<std::thread> waiting;
  for (size_t k = 0; k < 2; ++k) {
    waiting.emplace_back([&, k] {
      const Outcome outcome = (k == 0 ? first : second)->Wait();
      if (!outcome.ok()) told[k] = outcome.error();
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(*first->IsSignalled());
  // The wrapper releases a backend behind its graphs.
  void* const library = dlopen(GetParam(), RTLD_NOW | RTLD_NOLOAD);
  const auto release =
      reinterpret_cast<onnxReleaseBackendFunction>(dlsym(library, "onnxReleaseBackend"));
  ASSERT_NE(release, nullptr);
  EXPECT_EQ(release(backend.handle()), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(release(backend.handle()), ONNXIFI_STATUS_INVALID_BACKEND);
  dlclose(library);
  semaphore = {};
  for (std::thread& thread : waiting) thread.join();
  for (const Error& error : told) {
    EXPECT_EQ(error.status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
    EXPECT_THAT(error.sentence, HasSubstr("released before the semaphore reached its value"));
  }
  EXPECT_THAT(results, testing::Each(-1));
  // Blocks until its runs have finished.
  graph.reset();
  // Nothing of it is left in the caller's device, in which another backend works.
  const Backend another = InitBackend();
  const auto again = another.InitGraph(DigitsModel());
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE(
      again
          ->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(results.data())})
          .ok());
  ASSERT_TRUE(again->RunAndWait().ok());
  EXPECT_THAT(results, IsCloseTo(Expected(values)));
}

TEST_P(VulkanSharingTest, WorkOfTheCallersWaitsForRuns) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  std::vector<float> values = Images(50);
  const auto scores = MakeBuffer(kScoreBytes);
  const auto results = MakeBuffer(kScoreBytes);
  ASSERT_TRUE(
      graph->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(scores->told)})
          .ok());
  const auto input = backend.NewEvent();
  const auto output = graph->Run(*input);
  ASSERT_TRUE(output.ok());
  const auto exported = output->Export(ONNXIFI_SDK_NATIVE_EVENT_VULKAN);
  ASSERT_TRUE(exported.ok()) << exported.error().Text();
  const Handle<VkSemaphore> semaphore(
      caller_->device(), reinterpret_cast<VkSemaphore>(static_cast<uintptr_t>(*exported)),
      caller_->api().DestroySemaphore);
  EXPECT_EQ(caller_->ValueOf(semaphore.get()), 0U);
  ASSERT_TRUE(input->Signal().ok());
  ASSERT_TRUE(output->Wait().ok());
  ASSERT_TRUE(
      caller_
          ->SubmitCopy(scores->buffer.get(), results->buffer.get(), kScoreBytes, semaphore.get(), 1)
          .ok());
  caller_->Finish();
  EXPECT_EQ(caller_->ValueOf(semaphore.get()), 1U);
  EXPECT_THAT(Copy(results->floats()), IsCloseTo(Expected(values)));
}

TEST_P(VulkanSharingTest, TheExportedSemaphoreOfARunThatFailsReachesTwo) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  std::vector<float> values(kBatch * kPixels);
  std::vector<float> results(kBatch * kClasses);
  ASSERT_TRUE(
      graph
          ->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(results.data())})
          .ok());
  Handle<VkSemaphore> semaphore;
  {
    const auto input = backend.NewEvent();
    const auto output = graph->Run(*input);
    ASSERT_TRUE(output.ok());
    const auto exported = output->Export(ONNXIFI_SDK_NATIVE_EVENT_VULKAN);
    ASSERT_TRUE(exported.ok());
    semaphore = {caller_->device(),
                 reinterpret_cast<VkSemaphore>(static_cast<uintptr_t>(*exported)),
                 caller_->api().DestroySemaphore};
    // The input event goes unsignalled.
  }
  for (int k = 0; k < 1000 && caller_->ValueOf(semaphore.get()) == 0; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(caller_->ValueOf(semaphore.get()), 2U);
}

TEST_P(VulkanSharingTest, SharedMemoryIsTheHostsAndTheDevicesWithoutACopy) {
  for (const bool is_callers : {false, true}) {
    const Backend backend = is_callers ? InitBackend() : *device_->InitBackend();
    const auto images = backend.AllocateSharedMemory(kImageBytes);
    ASSERT_TRUE(images.ok()) << images.error().Text();
    const auto scores = backend.AllocateSharedMemory(kScoreBytes);
    ASSERT_TRUE(scores.ok()) << scores.error().Text();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(images->data()) % 64, 0U);
    const auto graph = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(graph.ok()) << graph.error().Text();
    const Outcome bound = graph->SetIO(
        std::vector{images->MakeTensor("image", ONNXIFI_DATATYPE_FLOAT32, {kBatch, 1, 8, 8})},
        std::vector{scores->MakeTensor("scores", ONNXIFI_DATATYPE_FLOAT32, {kBatch, kClasses})});
    ASSERT_TRUE(bound.ok()) << bound.error().Text();
    for (uint32_t seed = 31; seed <= 34; ++seed) {
      const std::vector<float> values = Images(seed);
      std::ranges::copy(values, static_cast<float*>(images->data()));
      const auto ran = graph->RunAndWait();
      ASSERT_TRUE(ran.ok()) << ran.error().Text();
      const auto* results = static_cast<const float*>(scores->data());
      EXPECT_THAT(Copy({results, kBatch * kClasses}), IsCloseTo(Expected(values)));
    }
    EXPECT_EQ(graph->Counters()->copies, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, VulkanSharingTest,
                         testing::Values(ONNXIFI_TEST_PLUGIN, ONNXIFI_TEST_LIBRARY),
                         [](const testing::TestParamInfo<const char*>& library) {
                           return library.param == std::string(ONNXIFI_TEST_PLUGIN)
                                      ? "Plugin"
                                      : "BehindLibonnxifi";
                         });

}  // namespace
}  // namespace onnxifi::vulkan
