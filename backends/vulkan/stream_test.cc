// SPDX-License-Identifier: Apache-2.0
//
// What a queue's commands come to: barriers, rows of groups, transfers by way of staging memory; on
// the fake driver.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/vulkan/compiler.h"
#include "backends/vulkan/queue.h"
#include "backends/vulkan/testing/fake_driver.h"
#include "backends/vulkan/testing/story.h"

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;

class StreamTest : public FakeDriverTest {
 protected:
  void Open(const FakeDevice& device) {
    FakeDriver::SetDevices({device});
    auto instance = Instance::Create(FakeDriver::GetApi(), false);
    ASSERT_TRUE(instance.ok()) << instance.status().Text();
    instance_ = *std::move(instance);
    const Result<FoundDevices> found = FindDevices(*instance_);
    ASSERT_TRUE(found.ok()) << found.status().Text();
    auto opened = Device::Open(*instance_, found->fit.front(), folder_);
    ASSERT_TRUE(opened.ok()) << opened.status().Text();
    device_ = *std::move(opened);
    auto queue = device_->NewQueue();
    ASSERT_TRUE(queue.ok()) << queue.status().Text();
    queue_ = *std::move(queue);
  }
  void TearDown() override {
    Close();
    FakeDriverTest::TearDown();
  }
  void Close() {
    kept_.clear();
    queue_.reset();
    device_.reset();
    instance_.reset();
  }
  std::byte* Allocate(int64_t size_bytes) {
    auto made = device_->memory().Allocate(size_bytes);
    EXPECT_TRUE(made.ok()) << made.status().Text();
    kept_.push_back(*std::move(made));
    return kept_.back()->data();
  }
  // Of the copies from one buffer to another, by index.
  int BarriersOf(const std::vector<std::pair<size_t, size_t>>& copies) {
    std::vector<std::byte*> buffers;
    for (int k = 0; k < 40; ++k) buffers.push_back(Allocate(256));
    FakeDriver::Recover();
    for (const auto& [from, to] : copies) {
      EXPECT_TRUE(queue_->Copy(buffers[from], buffers[to], 256).ok());
    }
    EXPECT_TRUE(queue_->Finish().ok());
    EXPECT_EQ(FakeDriver::CopyCount(), static_cast<int>(copies.size()));
    return FakeDriver::BarrierCount();
  }

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<device::Queue> queue_;
  std::vector<std::unique_ptr<device::Allocation>> kept_;
};

TEST_F(StreamTest, BarriersStandOnlyWhereOneIsNeeded) {
  Open(FakeDevice{});
  // Those at a run's begin and end.
  const int least = BarriersOf({{0, 1}});
  EXPECT_LE(least, 2);
  std::vector<std::pair<size_t, size_t>> independent;
  std::vector<std::pair<size_t, size_t>> chain;
  for (size_t k = 0; k < 30; ++k) {
    independent.emplace_back(0, k + 1);
    chain.emplace_back(k, k + 1);
  }
  EXPECT_EQ(BarriersOf(independent), least);
  EXPECT_EQ(BarriersOf(chain), least + 29);
  // Overwritten what was read, and what was written.
  EXPECT_EQ(BarriersOf({{0, 1}, {2, 0}}), least + 1);
  EXPECT_EQ(BarriersOf({{0, 1}, {2, 1}}), least + 1);
}

TEST_F(StreamTest, WhatGoesInComesOutAgain) {
  for (const bool is_mapped : {true, false}) {
    Open(is_mapped ? FakeDevice{} : DeviceWithMemoryOfItsOwn());
    // More than a piece of staging memory, and more than all of it.
    for (const int64_t size : {1, 1000, (8 << 20) + 5, 70 << 20}) {
      std::vector<std::byte> in(static_cast<size_t>(size));
      for (size_t k = 0; k < in.size(); ++k) in[k] = std::byte((k * 7 + k / 251) & 255);
      std::vector<std::byte> out(in.size());
      std::byte* const first = Allocate(size);
      std::byte* const second = Allocate(size);
      ASSERT_TRUE(queue_->Upload(in.data(), first, size).ok());
      ASSERT_TRUE(queue_->Copy(first, second, size).ok());
      ASSERT_TRUE(queue_->Download(second, out.data(), size).ok());
      ASSERT_TRUE(queue_->Finish().ok());
      EXPECT_TRUE(in == out) << size;
      kept_.clear();
    }
    Close();
  }
}

// Streams that find all of it with others go on with little, and wait for nobody.
TEST_F(StreamTest, StagingMemoryOfAllStreamsIsLimited) {
  Open(DeviceWithMemoryOfItsOwn());
  constexpr int64_t kBytes = 20 << 20;
  constexpr int64_t kMaxBytes = 64 << 20;
  constexpr size_t kStreams = 8;
  std::vector<std::unique_ptr<device::Queue>> queues;
  std::vector<std::byte*> places;
  std::vector<std::vector<std::byte>> in;
  int64_t most_bytes = 0;
  const auto look = [&] { most_bytes = std::max(most_bytes, device_->staging_bytes()); };
  for (size_t k = 0; k < kStreams; ++k) {
    queues.push_back(*device_->NewQueue());
    places.push_back(Allocate(kBytes));
    in.emplace_back(kBytes, std::byte(k + 1));
    in.back()[kBytes - 1] = std::byte(100 + k);
    ASSERT_TRUE(queues[k]->Upload(in[k].data(), places[k], kBytes).ok());
    look();
  }
  // Pieces of all streams are in use until here.
  for (const auto& queue : queues) ASSERT_TRUE(queue->Finish().ok());
  std::vector<std::vector<std::byte>> out(kStreams, std::vector<std::byte>(kBytes));
  for (size_t k = 0; k < kStreams; ++k) {
    ASSERT_TRUE(queues[k]->Download(places[k], out[k].data(), kBytes).ok());
    look();
  }
  for (const auto& queue : queues) ASSERT_TRUE(queue->Finish().ok());
  for (size_t k = 0; k < kStreams; ++k) EXPECT_TRUE(in[k] == out[k]) << k;
  EXPECT_LE(most_bytes, kMaxBytes);
  EXPECT_GT(most_bytes, kMaxBytes / 2);
}

// Memory that the host reads where it lies is not overwritten by what comes behind the read.
TEST_F(StreamTest, WhatIsReadIsWhatWasThereThen) {
  FakeDevice cached;
  cached.memory_types[0].propertyFlags |= VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  for (const FakeDevice& device : {cached, FakeDevice{}, DeviceWithMemoryOfItsOwn()}) {
    Open(device);
    std::byte* const place = Allocate(4);
    std::byte* const other = Allocate(4);
    const std::vector<std::vector<std::byte>> values(3, std::vector<std::byte>(4));
    std::vector<std::byte> ones(4, std::byte{1});
    std::vector<std::byte> twos(4, std::byte{2});
    std::vector<std::byte> first(4);
    std::vector<std::byte> second(4);
    ASSERT_TRUE(queue_->Upload(ones.data(), place, 4).ok());
    ASSERT_TRUE(queue_->Upload(twos.data(), other, 4).ok());
    ASSERT_TRUE(queue_->Download(place, first.data(), 4).ok());
    ASSERT_TRUE(queue_->Copy(other, place, 4).ok());
    ASSERT_TRUE(queue_->Download(place, second.data(), 4).ok());
    ASSERT_TRUE(queue_->Upload(ones.data(), place, 4).ok());
    ASSERT_TRUE(queue_->Finish().ok());
    EXPECT_EQ(first, ones);
    EXPECT_EQ(second, twos);
    Close();
  }
}

// A command that has to wait for those before it keeps what is its own meanwhile.
TEST_F(StreamTest, StagedMemoryIsNobodyElsesBeforeItIsCopied) {
  FakeDevice cached;
  cached.memory_types[0].propertyFlags |= VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  Open(cached);
  auto other_queue = device_->NewQueue();
  ASSERT_TRUE(other_queue.ok());
  std::byte* const place = Allocate(4);
  std::byte* const other = Allocate(4);
  const std::vector<std::byte> ones(4, std::byte{1});
  const std::vector<std::byte> twos(4, std::byte{2});
  const std::vector<std::byte> threes(4, std::byte{3});
  std::vector<std::byte> first(4);
  std::vector<std::byte> second(4);
  ASSERT_TRUE(queue_->Upload(ones.data(), place, 4).ok());
  ASSERT_TRUE(queue_->Download(place, first.data(), 4).ok());
  ASSERT_TRUE(queue_->Upload(twos.data(), place, 4).ok());
  // Another run stages as much, once before and once behind a command of its own.
  ASSERT_TRUE((*other_queue)->Download(other, second.data(), 4).ok());
  ASSERT_TRUE((*other_queue)->Upload(threes.data(), other, 4).ok());
  ASSERT_TRUE((*other_queue)->Finish().ok());
  ASSERT_TRUE(queue_->Download(place, second.data(), 4).ok());
  ASSERT_TRUE(queue_->Finish().ok());
  EXPECT_EQ(first, ones);
  EXPECT_EQ(second, twos);
  other_queue->reset();
}

// As many kernels as fill several pools of queries, in intervals of one to five.
TEST_F(StreamTest, KernelsAreTimedHoweverMany) {
  Open(FakeDevice{});
  const Result<FoundDevices> found = FindDevices(*instance_);
  ASSERT_TRUE(found.ok());
  auto runtime = Runtime::Open(*instance_, found->fit.front());
  ASSERT_TRUE(runtime.ok()) << runtime.status().Text();
  const DeviceApi& api = (*runtime)->api();
  VkDevice device = (*runtime)->device();
  const auto words = CompileGlsl("#version 460\nlayout(local_size_x = 1) in;\nvoid main() {}\n");
  ASSERT_TRUE(words.ok());
  VkShaderModuleCreateInfo module_info{};
  module_info.codeSize = words->size() * sizeof(uint32_t);
  module_info.pCode = words->data();
  VkShaderModule module = VK_NULL_HANDLE;
  ASSERT_EQ(api.CreateShaderModule(device, &module_info, nullptr, &module), VK_SUCCESS);
  VkComputePipelineCreateInfo pipeline_info{};
  pipeline_info.stage.module = module;
  pipeline_info.layout = (*runtime)->layout();
  VkPipeline pipeline = VK_NULL_HANDLE;
  ASSERT_EQ(
      api.CreateComputePipelines(device, VK_NULL_HANDLE, 1, &pipeline_info, nullptr, &pipeline),
      VK_SUCCESS);
  {
    Heap heap(**runtime);
    Loading loading(**runtime, heap);
    Queue queue(**runtime, heap, loading);
    const std::vector<uint64_t> constants = {1, 2};
    const Dispatch dispatch{pipeline, constants, 1, {}};
    for (int turn = 0; turn < 2; ++turn) {
      const Result<bool> is_timed = queue.StartTiming();
      ASSERT_TRUE(is_timed.ok() && *is_timed);
      for (int k = 0; k < 500; ++k) {
        queue.OpenInterval();
        for (int kernel = 0; kernel <= k % 5; ++kernel) ASSERT_TRUE(queue.Start(dispatch).ok());
        queue.CloseInterval();
        ASSERT_TRUE(queue.Start(dispatch).ok());
      }
      const auto intervals = queue.TakeIntervals();
      ASSERT_TRUE(intervals.ok()) << intervals.status().Text();
      ASSERT_EQ(intervals->size(), 500U);
      for (int k = 0; k < 500; ++k) {
        // Every mark of the fake driver is 100 ticks of 10 ns behind the one before.
        const auto& interval = (*intervals)[static_cast<size_t>(k)];
        EXPECT_EQ(interval.duration, std::chrono::microseconds(k % 5 + 1)) << k;
        if (k == 0) continue;
        EXPECT_GT(interval.start, (*intervals)[static_cast<size_t>(k - 1)].start);
      }
    }
  }
  api.DestroyPipeline(device, pipeline, nullptr);
  api.DestroyShaderModule(device, module, nullptr);
}

// The groups of what a story's last run started.
std::vector<FakeStart> StartsOf(const FakeDevice& device, int64_t rows, Status& status) {
  FakeDriver::SetDevices({device});
  Story story({});
  status = story.Open();
  if (!status.ok()) return {};
  FakeDriver::Recover();
  status = story.Run(rows);
  return FakeDriver::Starts();
}

TEST_F(StreamTest, MoreGroupsThanTheDeviceHasInALineAreRows) {
  Status status;
  const std::vector<FakeStart> plain = StartsOf(FakeDevice{}, 5000, status);
  ASSERT_TRUE(status.ok()) << status.Text();
  FakeDevice narrow;
  narrow.most_groups = {7, 65'535, 1};
  const std::vector<FakeStart> rows = StartsOf(narrow, 5000, status);
  ASSERT_TRUE(status.ok()) << status.Text();
  ASSERT_EQ(plain.size(), rows.size());
  uint32_t most = 0;
  for (size_t k = 0; k < plain.size(); ++k) {
    const uint32_t groups = plain[k].groups[0];
    EXPECT_EQ(plain[k].groups[1], 1U);
    EXPECT_LE(rows[k].groups[0], 7U);
    EXPECT_GE(rows[k].groups[0] * rows[k].groups[1], groups);
    // Fewer groups than a row are left over.
    EXPECT_LT(rows[k].groups[0] * rows[k].groups[1] - groups, rows[k].groups[1]);
    most = std::max(most, groups);
  }
  EXPECT_GT(most, 7U);
}

TEST_F(StreamTest, MoreGroupsThanAllRowsAreRefused) {
  FakeDevice tiny;
  tiny.most_groups = {2, 3, 1};
  Status status;
  StartsOf(tiny, 5000, status);
  EXPECT_EQ(status.code(), Code::kNoDeviceResources);
  EXPECT_THAT(std::string(status.sentence()),
              testing::MatchesRegex("A kernel of [0-9]+ groups exceeds the 6 that Fake device"
                                    " starts at a time\\."));
}

// What is submitted is in the device's order when the call returns, and nobody has waited.
TEST_F(StreamTest, SubmitsWithoutWaiting) {
  for (const bool is_mapped : {true, false}) {
    Open(is_mapped ? FakeDevice{} : DeviceWithMemoryOfItsOwn());
    std::byte* const place = Allocate(256);
    std::byte* const next = Allocate(256);
    std::vector<std::byte> in(256);
    FakeDriver::Recover();
    constexpr int kRuns = 5;
    for (int run = 0; run < kRuns; ++run) {
      std::ranges::fill(in, std::byte(run + 1));
      // What an earlier run reads is not overwritten before it has.
      ASSERT_TRUE(queue_->Upload(in.data(), place, 256).ok());
      ASSERT_TRUE(queue_->Copy(place, next, 256).ok());
      auto kept = std::make_shared<int>(run);
      const std::weak_ptr<int> watched = kept;
      queue_->Keep(std::move(kept));
      ASSERT_TRUE(queue_->Copy(next, Allocate(256), 256).ok());
      ASSERT_TRUE(queue_->Submit().ok());
      // The fake driver does nothing before somebody waits; who looks does not.
      if (run == 0) {
        EXPECT_FALSE(watched.expired());
      }
    }
    EXPECT_EQ(queue_->submission_count(), kRuns);
    EXPECT_EQ(FakeDriver::CallCount("QueueSubmit"), kRuns);
    EXPECT_EQ(FakeDriver::CallCount("DeviceWaitIdle"), 0);
    ASSERT_TRUE(queue_->Finish().ok());
    for (int run = 0; run < kRuns; ++run) {
      std::vector<std::byte> out(256);
      ASSERT_TRUE(
          queue_->Download(kept_[static_cast<size_t>(run) + 2]->data(), out.data(), 256).ok());
      ASSERT_TRUE(queue_->Finish().ok());
      EXPECT_EQ(out.front(), std::byte(run + 1));
    }
    Close();
  }
}

// Behind work that waits for somebody who has to act first.
TEST_F(StreamTest, SubmitsBehindWorkThatIsHeldBack) {
  Open(FakeDevice{});
  std::byte* const from = Allocate(64);
  std::byte* const to = Allocate(64);
  std::vector<std::byte> in(64, std::byte{9});
  ASSERT_TRUE(queue_->Upload(in.data(), from, 64).ok());
  FakeDriver::HoldQueues(true);
  for (int run = 0; run < 3; ++run) {
    auto kept = std::make_shared<int>(run);
    const std::weak_ptr<int> watched = kept;
    queue_->Keep(std::move(kept));
    ASSERT_TRUE(queue_->Copy(from, to, 64).ok());
    ASSERT_TRUE(queue_->Submit().ok());
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_EQ(FakeDriver::CopyCount(), 0);
  FakeDriver::HoldQueues(false);
  ASSERT_TRUE(queue_->Finish().ok());
  EXPECT_EQ(FakeDriver::CopyCount(), 3);
}

// Memory of a run that is under way has no other owner.
TEST_F(StreamTest, MemoryWaitsForRunsThatWereSubmitted) {
  Open(FakeDevice{});
  std::byte* const from = Allocate(1000);
  std::byte* const to = Allocate(1000);
  FakeDriver::HoldQueues(true);
  ASSERT_TRUE(queue_->Copy(from, to, 1000).ok());
  ASSERT_TRUE(queue_->Submit().ok());
  const int64_t before = device_->buffer_count();
  kept_.clear();
  const std::byte* const other = Allocate(1000);
  EXPECT_NE(other, from);
  EXPECT_NE(other, to);
  EXPECT_GT(device_->buffer_count(), before);
  FakeDriver::HoldQueues(false);
  ASSERT_TRUE(queue_->Finish().ok());
  const int64_t after = device_->buffer_count();
  Allocate(1000);
  EXPECT_EQ(device_->buffer_count(), after);
}

TEST_F(StreamTest, FaultsOfRunsThatWereSubmittedLeaveNothing) {
  for (const VkResult result : {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_DEVICE_LOST}) {
    for (const char* const function : {"QueueSubmit", "WaitSemaphores", "EndCommandBuffer"}) {
      for (int call = 0; call < 3; ++call) {
        Open(FakeDevice{});
        std::byte* const from = Allocate(64);
        std::byte* const to = Allocate(64);
        FakeDriver::Fail(function, result, call, 1);
        for (int run = 0; run < 3; ++run) {
          if (queue_->Copy(from, to, 64).ok()) static_cast<void>(queue_->Submit());
        }
        static_cast<void>(queue_->Finish());
        Close();
        EXPECT_EQ(FakeDriver::LiveObjects(), 0) << function << " " << call;
        FakeDriver::Recover();
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::vulkan
