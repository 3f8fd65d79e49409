// SPDX-License-Identifier: Apache-2.0
//
// Working memory is lent again before more is allocated, and grows to the largest need.

#include "backends/cpu/runtime/work_memory.h"

#include <gtest/gtest.h>

#include <memory>

#include "backends/core/reference/host_memory.h"

namespace onnxifi::runtime {
namespace {

// Counts allocations; fails above a limit.
class CountedMemory final : public device::Memory {
 public:
  base::Result<std::unique_ptr<device::Allocation>> Allocate(int64_t size_bytes) override {
    if (size_bytes > 1000) return base::Status(base::Code::kNoSystemMemory, "Too much.");
    ++count;
    return memory_.Allocate(size_bytes);
  }
  int count = 0;

 private:
  reference::HostMemory memory_;
};

TEST(WorkMemoryTest, LendsABlockAgain) {
  CountedMemory memory;
  WorkMemory work(memory);
  const std::byte* first = work.Lend(100)->data();
  EXPECT_EQ(work.Lend(60)->data(), first);
  EXPECT_EQ(memory.count, 1);
}

TEST(WorkMemoryTest, LendsAsManyBlocksAsAreHeldAtOnce) {
  CountedMemory memory;
  WorkMemory work(memory);
  for (int round = 0; round < 3; ++round) {
    const base::Result<WorkMemory::Lease> one = work.Lend(100);
    const base::Result<WorkMemory::Lease> other = work.Lend(100);
    EXPECT_NE(one->data(), other->data());
  }
  EXPECT_EQ(memory.count, 2);
}

TEST(WorkMemoryTest, ReplacesABlockThatIsTooSmallOnce) {
  CountedMemory memory;
  WorkMemory work(memory);
  for (const int64_t size : {10, 200, 10, 200}) EXPECT_TRUE(work.Lend(size).ok());
  EXPECT_EQ(memory.count, 2);
}

TEST(WorkMemoryTest, LendsWhatIsReserved) {
  CountedMemory memory;
  WorkMemory work(memory);
  EXPECT_EQ(work.Lend()->data(), nullptr);
  work.Reserve(300);
  work.Reserve(20);
  EXPECT_NE(work.Lend()->data(), nullptr);
  EXPECT_TRUE(work.Lend(300).ok());
  EXPECT_EQ(memory.count, 1);
}

TEST(WorkMemoryTest, SaysWhenThereIsNoMemory) {
  CountedMemory memory;
  WorkMemory work(memory);
  EXPECT_EQ(work.Lend(1001).status().code(), base::Code::kNoSystemMemory);
  EXPECT_TRUE(work.Lend(1000).ok());
}

}  // namespace
}  // namespace onnxifi::runtime
