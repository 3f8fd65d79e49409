// SPDX-License-Identifier: Apache-2.0
//
// Memory on devices of every kind: blocks and pieces, limits, budgets; on the fake driver.

#include "backends/vulkan/heap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backends/vulkan/testing/fake_driver.h"
#include "backends/vulkan/testing/story.h"

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;
using testing::HasSubstr;
using testing::MatchesRegex;

using Allocated = Result<std::unique_ptr<device::Allocation>>;
constexpr int64_t kMiB = int64_t{1} << 20;

class HeapTest : public FakeDriverTest {
 protected:
  void Open(const FakeDevice& device) {
    FakeDriver::SetDevices({device});
    auto instance = Instance::Create(FakeDriver::GetApi(), false);
    ASSERT_TRUE(instance.ok()) << instance.status().Text();
    instance_ = *std::move(instance);
    const Result<FoundDevices> found = FindDevices(*instance_);
    ASSERT_TRUE(found.ok()) << found.status().Text();
    ASSERT_EQ(found->fit.size(), 1U);
    auto runtime = Runtime::Open(*instance_, found->fit[0]);
    ASSERT_TRUE(runtime.ok()) << runtime.status().Text();
    runtime_ = *std::move(runtime);
    heap_ = std::make_unique<Heap>(*runtime_);
  }
  void TearDown() override {
    heap_.reset();
    runtime_.reset();
    instance_.reset();
    FakeDriverTest::TearDown();
  }
  static FakeDevice Large() {
    FakeDevice device;
    device.heaps[0].size_bytes = uint64_t{8} << 30;
    return device;
  }

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Heap> heap_;
};

TEST_F(HeapTest, ManyTensorsAreFewAllocations) {
  Open(Large());
  std::mt19937 random(1);
  std::vector<std::unique_ptr<device::Allocation>> tensors;
  int64_t total_bytes = 0;
  while (tensors.size() < 10'000) {
    const int64_t size = 1 + static_cast<int64_t>(random() % 200'000);
    Allocated made = heap_->Allocate(Purpose::kTensor, size);
    ASSERT_TRUE(made.ok()) << made.status().Text();
    total_bytes += (*made)->size_bytes();
    tensors.push_back(*std::move(made));
  }
  EXPECT_GT(total_bytes, 900 * kMiB);
  EXPECT_LT(FakeDriver::MostAllocations(), 100);
  EXPECT_EQ(heap_->block_count(), FakeDriver::LiveAllocations());
}

TEST_F(HeapTest, PiecesLieApartAtRoundAddresses) {
  for (const uint64_t alignment : {4, 64, 4096}) {
    FakeDevice device = Large();
    device.address_alignment = alignment;
    Open(device);
    std::vector<std::unique_ptr<device::Allocation>> pieces;
    std::set<std::pair<uint64_t, uint64_t>> places;
    for (const int64_t size : {1, 255, 256, 257, 5000, 40 << 20, 1, 70 << 20, 300}) {
      for (const Purpose purpose : {Purpose::kTensor, Purpose::kNumbers, Purpose::kLastStaging}) {
        Allocated made = heap_->Allocate(purpose, size);
        ASSERT_TRUE(made.ok()) << made.status().Text();
        const auto begin = reinterpret_cast<uintptr_t>((*made)->data());
        EXPECT_EQ(begin % 256, 0U);
        EXPECT_GE((*made)->size_bytes(), size);
        for (const auto& [other_begin, other_end] : places) {
          EXPECT_TRUE(begin >= other_end || begin + static_cast<uint64_t>(size) <= other_begin);
        }
        places.emplace(begin, begin + static_cast<uint64_t>(size));
        pieces.push_back(*std::move(made));
      }
    }
    // What was written in one place is read there, and nowhere else.
    for (size_t k = 0; k < pieces.size(); ++k) {
      const auto place = heap_->Find(pieces[k]->data());
      ASSERT_TRUE(place.ok());
      std::fill_n(place->mapped, pieces[k]->size_bytes(), std::byte(k));
    }
    for (size_t k = 0; k < pieces.size(); ++k) {
      const auto place = heap_->Find(pieces[k]->data() + pieces[k]->size_bytes() - 1);
      ASSERT_TRUE(place.ok());
      EXPECT_EQ(*place->mapped, std::byte(k));
      EXPECT_EQ(place->rest_bytes, 1);
    }
    pieces.clear();
    heap_.reset();
    runtime_.reset();
    instance_.reset();
  }
}

TEST_F(HeapTest, ALargeTensorIsAnAllocationOfItsOwn) {
  Open(Large());
  Allocated small = heap_->Allocate(Purpose::kTensor, 100);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(FakeDriver::LiveAllocations(), 1);
  Allocated large = heap_->Allocate(Purpose::kTensor, 33 * kMiB);
  Allocated larger = heap_->Allocate(Purpose::kTensor, 411 * kMiB);
  ASSERT_TRUE(large.ok() && larger.ok());
  EXPECT_EQ(FakeDriver::LiveAllocations(), 3);
  EXPECT_LT(heap_->Find((*large)->data())->rest_bytes, 40 * kMiB);
}

TEST_F(HeapTest, ExhaustedMemoryIsToldWithSizeAndLimit) {
  Open(FakeDevice{});
  const Status status = heap_->Allocate(Purpose::kTensor, 300 * kMiB).status();
  EXPECT_EQ(status.code(), Code::kNoDeviceMemory);
  EXPECT_THAT(std::string(status.sentence()),
              MatchesRegex("An allocation of 314572800 bytes exceeds the 2684[0-9]+ bytes that Fake"
                           " device has for one\\."));
  // Bit by bit, the same; and once some is given back there is some.
  std::vector<std::unique_ptr<device::Allocation>> all;
  Allocated next = heap_->Allocate(Purpose::kTensor, 10 * kMiB);
  while (next.ok()) {
    all.push_back(*std::move(next));
    next = heap_->Allocate(Purpose::kTensor, 10 * kMiB);
  }
  EXPECT_EQ(next.status().code(), Code::kNoDeviceMemory);
  EXPECT_THAT(next.status().Text(), HasSubstr("An allocation of 10485760 bytes exceeds the "));
  EXPECT_GE(all.size(), 22U);
  all.pop_back();
  EXPECT_TRUE(heap_->Allocate(Purpose::kTensor, 10 * kMiB).ok());
}

TEST_F(HeapTest, WhatIsSpareIsGivenUpBeforeMemoryRunsOut) {
  Open(FakeDevice{});
  { const Allocated gone = heap_->Allocate(Purpose::kTensor, 10 * kMiB); }
  EXPECT_EQ(FakeDriver::LiveAllocations(), 1);
  const Allocated made = heap_->Allocate(Purpose::kTensor, 240 * kMiB);
  EXPECT_TRUE(made.ok()) << made.status().Text();
  EXPECT_EQ(FakeDriver::LiveAllocations(), 1);
}

TEST_F(HeapTest, TheLargestAllocationIsALimit) {
  FakeDevice device = Large();
  device.largest_allocation_bytes = 100 * kMiB;
  Open(device);
  EXPECT_TRUE(heap_->Allocate(Purpose::kTensor, 99 * kMiB).ok());
  const Status status = heap_->Allocate(Purpose::kTensor, 101 * kMiB).status();
  EXPECT_EQ(status.code(), Code::kNoDeviceMemory);
  EXPECT_THAT(status.Text(), HasSubstr("bytes that Fake device has for one."));
}

TEST_F(HeapTest, TheBudgetIsObeyed) {
  FakeDevice device = Large();
  device.extensions = {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME};
  device.heaps[0].budget_bytes = 200 * kMiB;
  device.heaps[0].others_bytes = 50 * kMiB;
  Open(device);
  Status status = heap_->Allocate(Purpose::kTensor, 160 * kMiB).status();
  EXPECT_EQ(status.code(), Code::kNoDeviceMemory);
  EXPECT_THAT(std::string(status.sentence()),
              MatchesRegex("An allocation of 167772160 bytes exceeds the 1572[0-9]+ bytes that Fake"
                           " device has for one\\."));
  Allocated made = heap_->Allocate(Purpose::kTensor, 140 * kMiB);
  ASSERT_TRUE(made.ok()) << made.status().Text();
  EXPECT_EQ(heap_->Allocate(Purpose::kTensor, 20 * kMiB).status().code(), Code::kNoDeviceMemory);
  // A block of less than the usual size where that is all.
  Allocated rest = heap_->Allocate(Purpose::kTensor, 5 * kMiB);
  EXPECT_TRUE(rest.ok()) << rest.status().Text();
  // The budget is asked anew each time.
  FakeDriver::SetBudget(0, 0, uint64_t{500} << 20, 0);
  EXPECT_TRUE(heap_->Allocate(Purpose::kTensor, 160 * kMiB).ok());
  FakeDriver::SetBudget(0, 0, 1, uint64_t{700} << 20);
  status = heap_->Allocate(Purpose::kTensor, 300 * kMiB).status();
  EXPECT_EQ(status.code(), Code::kNoDeviceMemory);
  EXPECT_THAT(status.Text(), HasSubstr("exceeds the 0 bytes"));
}

TEST_F(HeapTest, WhereOthersHaveMemoryThatNobodyTellsOfASmallBlockServes) {
  FakeDevice device;
  device.heaps[0].others_bytes = 250 * kMiB;
  Open(device);
  Allocated made = heap_->Allocate(Purpose::kTensor, kMiB);
  EXPECT_TRUE(made.ok()) << made.status().Text();
  const Status status = heap_->Allocate(Purpose::kTensor, 20 * kMiB).status();
  EXPECT_EQ(status.code(), Code::kNoDeviceMemory);
  EXPECT_THAT(std::string(status.sentence()),
              MatchesRegex("Vulkan cannot allocate [0-9]+ bytes: out of device memory\\."));
}

TEST_F(HeapTest, EachPurposeHasItsType) {
  Open(DeviceWithMemoryOfItsOwn());
  Allocated tensor = heap_->Allocate(Purpose::kTensor, 100);
  Allocated numbers = heap_->Allocate(Purpose::kNumbers, 100);
  Allocated staging = heap_->Allocate(Purpose::kStaging, 100);
  ASSERT_TRUE(tensor.ok() && numbers.ok() && staging.ok());
  EXPECT_EQ(FakeDriver::AllocatedTypes(), (std::vector<uint32_t>{0, 3, 2}));
  EXPECT_EQ(heap_->Find((*tensor)->data())->mapped, nullptr);
  EXPECT_NE(heap_->Find((*numbers)->data())->mapped, nullptr);
  EXPECT_NE(heap_->Find((*staging)->data())->mapped, nullptr);
}

TEST_F(HeapTest, NumbersLieInTheHostsMemoryWhereTheWindowIsFull) {
  Open(DeviceWithMemoryOfItsOwn());
  std::vector<std::unique_ptr<device::Allocation>> numbers;
  while (FakeDriver::AllocatedTypes().empty() || FakeDriver::AllocatedTypes().back() == 3) {
    Allocated made = heap_->Allocate(Purpose::kNumbers, kMiB);
    ASSERT_TRUE(made.ok()) << made.status().Text();
    EXPECT_NE(heap_->Find((*made)->data())->mapped, nullptr);
    numbers.push_back(*std::move(made));
  }
  EXPECT_EQ(FakeDriver::AllocatedTypes().back(), 2U);
  EXPECT_GE(numbers.size(), 30U);
}

TEST_F(HeapTest, PurposesOfOneTypeShareBlocks) {
  Open(FakeDevice{});
  Allocated tensor = heap_->Allocate(Purpose::kTensor, 100);
  Allocated numbers = heap_->Allocate(Purpose::kNumbers, 100);
  Allocated staging = heap_->Allocate(Purpose::kStaging, 100);
  EXPECT_EQ(FakeDriver::LiveAllocations(), 1);
}

TEST_F(HeapTest, HeapsAreCountedOverTypes) {
  // Two types of one heap, and nobody who tells a budget.
  FakeDevice device;
  device.heaps[0].size_bytes = 256 << 20;
  constexpr VkMemoryPropertyFlags kMapped =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  device.heaps.push_back({uint64_t{1} << 20, 0});
  device.memory_types = {{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | kMapped, 0},
                         {kMapped | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 0}};
  Open(device);
  Allocated staging = heap_->Allocate(Purpose::kLastStaging, 100 * kMiB);
  ASSERT_TRUE(staging.ok());
  const Status status = heap_->Allocate(Purpose::kTensor, 200 * kMiB).status();
  EXPECT_EQ(status.code(), Code::kNoDeviceMemory);
  EXPECT_THAT(std::string(status.sentence()),
              MatchesRegex("An allocation of 209715200 bytes exceeds the 163577344 bytes that Fake"
                           " device has for one\\."));
}

TEST_F(HeapTest, AddressesOfNobodyAreNotFound) {
  Open(FakeDevice{});
  EXPECT_EQ(heap_->Find(nullptr).status().code(), Code::kInternalError);
  Allocated made = heap_->Allocate(Purpose::kTensor, 256);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(heap_->Find((*made)->data() + 256).status().code(), Code::kInternalError);
  EXPECT_EQ(heap_->Find((*made)->data() - 1).status().code(), Code::kInternalError);
}

TEST_F(HeapTest, MemoryWaitsForTheRecordingsThatMayNameIt) {
  Open(Large());
  Allocated first = heap_->Allocate(Purpose::kTensor, 40 * kMiB);
  ASSERT_TRUE(first.ok());
  const std::byte* const address = (*first)->data();
  const uint64_t recording = runtime_->retirement().Begin();
  *first = nullptr;
  EXPECT_EQ(heap_->waiting_bytes(), 40 * kMiB);
  {
    Allocated second = heap_->Allocate(Purpose::kTensor, 40 * kMiB);
    ASSERT_TRUE(second.ok());
    EXPECT_NE((*second)->data(), address);
  }
  runtime_->retirement().End(recording);
  heap_->Sweep();
  EXPECT_EQ(heap_->waiting_bytes(), 0);
}

TEST_F(HeapTest, SeveralThreadsAllocateAtATime) {
  Open(Large());
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      std::vector<std::unique_ptr<device::Allocation>> mine(20);
      for (int round = 0; round < 500; ++round) {
        const uint64_t recording = runtime_->retirement().Begin();
        const auto purpose = static_cast<Purpose>(random() % 3);
        // All that is kept for staging at a time stays within its limit.
        const unsigned most = purpose == Purpose::kStaging ? 600'000 : 3'000'000;
        Allocated made = heap_->Allocate(purpose, 1 + static_cast<int64_t>(random() % most));
        ASSERT_TRUE(made.ok()) << made.status().Text();
        ASSERT_TRUE(heap_->Find((*made)->data()).ok());
        mine[random() % mine.size()] = *std::move(made);
        runtime_->retirement().End(recording);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  heap_->Sweep();
  EXPECT_EQ(heap_->waiting_bytes(), 0);
}

}  // namespace
}  // namespace onnxifi::vulkan
