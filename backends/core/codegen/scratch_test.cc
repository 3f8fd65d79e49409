// SPDX-License-Identifier: Apache-2.0
//
// Scratch: memory that grows while queues hold what was there before.

#include "backends/core/codegen/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace onnxifi::codegen {
namespace {

// Counts what it has given and not got back.
class CountedMemory final : public device::Memory {
 public:
  base::Result<std::unique_ptr<device::Allocation>> Allocate(int64_t size_bytes) override {
    if (size_bytes > kMaxBytes) {
      return base::Status(base::Code::kNoDeviceMemory, "There is no memory left.");
    }
    return std::unique_ptr<device::Allocation>(std::make_unique<Counted>(count_, size_bytes));
  }
  int count() const { return count_; }
  static constexpr int64_t kMaxBytes = 10'000;

 private:
  class Counted final : public device::Allocation {
   public:
    Counted(int& count, int64_t size_bytes)
        : count_(count), bytes_(static_cast<size_t>(size_bytes)) {
      ++count_;
    }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() override { --count_; }
    std::byte* data() override { return bytes_.data(); }
    int64_t size_bytes() const override { return static_cast<int64_t>(bytes_.size()); }

   private:
    int& count_;
    std::vector<std::byte> bytes_;
  };

  int count_ = 0;
};

// Keeps all that it is given.
class KeepingQueue final : public device::Queue {
 public:
  base::Status Upload(const std::byte*, std::byte*, int64_t) override { return base::Ok(); }
  base::Status Download(const std::byte*, std::byte*, int64_t) override { return base::Ok(); }
  base::Status Copy(const std::byte*, std::byte*, int64_t) override { return base::Ok(); }
  base::Status Finish() override { return base::Ok(); }
  void Keep(std::shared_ptr<const void> object) override { kept_.push_back(std::move(object)); }

  void Clear() { kept_.clear(); }

 private:
  std::vector<std::shared_ptr<const void>> kept_;
};

TEST(ScratchTest, WhatARecordingNamesStaysWhenTheMemoryGrows) {
  CountedMemory memory;
  {
    Scratch scratch(memory);
    KeepingQueue recording;
    { const Scratch::Use nothing_yet(scratch, recording); }
    ASSERT_TRUE(scratch.Reserve(100).ok());
    std::byte* before = nullptr;
    {
      const Scratch::Use use(scratch, recording);
      before = use.at(0);
    }
    ASSERT_TRUE(scratch.Reserve(1000).ok());
    EXPECT_EQ(memory.count(), 2) << "the recording still names the first";
    *before = std::byte{1};
    KeepingQueue later;
    {
      const Scratch::Use use(scratch, later);
      EXPECT_NE(use.at(0), before);
    }
    recording.Clear();
    EXPECT_EQ(memory.count(), 1);
    ASSERT_TRUE(scratch.Reserve(10).ok());
    EXPECT_EQ(memory.count(), 1);
  }
  EXPECT_EQ(memory.count(), 0);
}

TEST(ScratchTest, MemoryOfKernelsBoundBeforeStaysWhenThereIsNoneToGrow) {
  CountedMemory memory;
  Scratch scratch(memory);
  ASSERT_TRUE(scratch.Reserve(100).ok());
  KeepingQueue queue;
  std::byte* before = nullptr;
  {
    const Scratch::Use use(scratch, queue);
    before = use.at(0);
  }
  EXPECT_EQ(scratch.Reserve(CountedMemory::kMaxBytes + 1).code(), base::Code::kNoDeviceMemory);
  queue.Clear();
  const Scratch::Use use(scratch, queue);
  ASSERT_NE(use.at(0), nullptr);
  EXPECT_EQ(use.at(0), before);
}

}  // namespace
}  // namespace onnxifi::codegen
