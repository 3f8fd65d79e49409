// SPDX-License-Identifier: Apache-2.0
//
// Validation: mistakes that are made on purpose are reported, each of its kind; so a run with
// ONNXIFI_VULKAN_VALIDATION=1 that passes has none of them. Skipped, with the reason, where there
// is no device or no layer.

#include "backends/vulkan/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "backends/vulkan/driver.h"
#include "backends/vulkan/runtime.h"

namespace onnxifi::vulkan {
namespace {

using testing::HasSubstr;

constexpr VkDeviceSize kBytes = 256;

class ValidationTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto api = LoadApi(kLoaderLibrary);
    if (!api.ok()) GTEST_SKIP() << api.status().Text();
    auto instance = Instance::Create(*api, /*is_validated=*/true);
    if (!instance.ok()) GTEST_SKIP() << instance.status().Text();
    instance_ = *std::move(instance);
    const auto devices = FindDevices(*instance_);
    if (!devices.ok()) GTEST_SKIP() << devices.status().Text();
    if (devices->fit.empty()) GTEST_SKIP() << "No Vulkan device is fit.";
    auto runtime = Runtime::Open(*instance_, devices->fit.front());
    ASSERT_TRUE(runtime.ok()) << runtime.status().Text();
    runtime_ = *std::move(runtime);
    ASSERT_EQ(instance_->validation()->message_count(), 0);
  }

  struct Buffer {
    Handle<VkBuffer> buffer;
    Handle<VkDeviceMemory> memory;
  };
  Buffer MakeBuffer(VkBufferUsageFlags usage) {
    const DeviceApi& api = runtime_->api();
    VkDevice device = runtime_->device();
    VkBufferCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = kBytes;
    info.usage = usage;
    VkBuffer buffer = VK_NULL_HANDLE;
    EXPECT_EQ(api.CreateBuffer(device, &info, nullptr, &buffer), VK_SUCCESS);
    Handle<VkBuffer> owned(device, buffer, api.DestroyBuffer);
    VkMemoryRequirements needs{};
    api.GetBufferMemoryRequirements(device, buffer, &needs);
    VkMemoryAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocate.allocationSize = needs.size;
    for (; (needs.memoryTypeBits >> allocate.memoryTypeIndex & 1) == 0;) ++allocate.memoryTypeIndex;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    EXPECT_EQ(api.AllocateMemory(device, &allocate, nullptr, &memory), VK_SUCCESS);
    Handle<VkDeviceMemory> owned_memory(device, memory, api.FreeMemory);
    EXPECT_EQ(api.BindBufferMemory(device, buffer, memory, 0), VK_SUCCESS);
    return {std::move(owned), std::move(owned_memory)};
  }

  // Copies from the first to the second and from the second to the third, without a barrier if
  // `has_barrier` is false, and is done with it.
  void CopyTwice(const std::array<VkBuffer, 3>& buffers, bool has_barrier) {
    const DeviceApi& api = runtime_->api();
    VkDevice device = runtime_->device();
    VkCommandPoolCreateInfo pool_info{};
    pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool_info.queueFamilyIndex = runtime_->info().queue_family;
    VkCommandPool pool = VK_NULL_HANDLE;
    ASSERT_EQ(api.CreateCommandPool(device, &pool_info, nullptr, &pool), VK_SUCCESS);
    const Handle<VkCommandPool> owned(device, pool, api.DestroyCommandPool);
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = pool;
    allocate.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    ASSERT_EQ(api.AllocateCommandBuffers(device, &allocate, &commands), VK_SUCCESS);
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    ASSERT_EQ(api.BeginCommandBuffer(commands, &begin), VK_SUCCESS);
    const VkBufferCopy region{0, 0, kBytes};
    api.CmdCopyBuffer(commands, buffers[0], buffers[1], 1, &region);
    if (has_barrier) {
      VkMemoryBarrier barrier{};
      barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
      barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
      barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
      api.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                             VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0, nullptr, 0,
                             nullptr);
    }
    api.CmdCopyBuffer(commands, buffers[1], buffers[2], 1, &region);
    ASSERT_EQ(api.EndCommandBuffer(commands), VK_SUCCESS);
  }

  static constexpr VkBufferUsageFlags kBoth =
      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(ValidationTest, WhatIsRightSaysNothing) {
  const Buffer a = MakeBuffer(kBoth);
  const Buffer b = MakeBuffer(kBoth);
  const Buffer c = MakeBuffer(kBoth);
  CopyTwice({a.buffer.get(), b.buffer.get(), c.buffer.get()}, /*has_barrier=*/true);
  EXPECT_EQ(instance_->validation()->message_count(), 0);
  EXPECT_TRUE(instance_->validation()->Check().ok());
}

TEST_F(ValidationTest, AMissingBarrierIsReported) {
  const Buffer a = MakeBuffer(kBoth);
  const Buffer b = MakeBuffer(kBoth);
  const Buffer c = MakeBuffer(kBoth);
  CopyTwice({a.buffer.get(), b.buffer.get(), c.buffer.get()}, /*has_barrier=*/false);
  EXPECT_GT(instance_->validation()->message_count(), 0);
  EXPECT_THAT(instance_->validation()->Check().Text(), HasSubstr("READ_AFTER_WRITE"));
}

TEST_F(ValidationTest, AWrongUsageFlagIsReported) {
  const Buffer a = MakeBuffer(kBoth);
  const Buffer b = MakeBuffer(VK_BUFFER_USAGE_TRANSFER_SRC_BIT);
  const Buffer c = MakeBuffer(kBoth);
  CopyTwice({a.buffer.get(), b.buffer.get(), c.buffer.get()}, /*has_barrier=*/true);
  EXPECT_GT(instance_->validation()->message_count(), 0);
  EXPECT_THAT(instance_->validation()->Check().Text(), HasSubstr("TRANSFER_DST"));
}

TEST_F(ValidationTest, ARunThatFollowsAMessageFailsWithIt) {
  const Buffer a = MakeBuffer(VK_BUFFER_USAGE_TRANSFER_SRC_BIT);
  CopyTwice({a.buffer.get(), a.buffer.get(), a.buffer.get()}, /*has_barrier=*/true);
  const auto submission = runtime_->Submit({});
  ASSERT_FALSE(submission.ok());
  EXPECT_EQ(submission.status().code(), base::Code::kInternalError);
  EXPECT_THAT(submission.status().Text(), HasSubstr("validation layer"));
}

}  // namespace
}  // namespace onnxifi::vulkan
