// SPDX-License-Identifier: Apache-2.0
//
// The reference's memory: aligned blocks, and requests that cannot be met.

#include "backends/core/reference/host_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace onnxifi::reference {
namespace {

TEST(HostMemoryTest, BlocksAreAligned) {
  HostMemory memory;
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{100}, int64_t{20} << 20}) {
    const base::Result<std::unique_ptr<device::Allocation>> block = memory.Allocate(size);
    ASSERT_TRUE(block.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*block)->data()) % 64, 0u);
    EXPECT_EQ((*block)->size_bytes(), size);
  }
}

TEST(HostMemoryTest, RefusesWhatTheSystemHasNot) {
  HostMemory memory;
  for (const int64_t size : {INT64_MAX, int64_t{1} << 50, int64_t{-1}}) {
    const base::Result<std::unique_ptr<device::Allocation>> block = memory.Allocate(size);
    ASSERT_FALSE(block.ok());
    EXPECT_EQ(block.status().code(), base::Code::kNoSystemMemory);
    EXPECT_THAT(std::string(block.status().sentence()), testing::HasSubstr(std::to_string(size)));
  }
}

}  // namespace
}  // namespace onnxifi::reference
