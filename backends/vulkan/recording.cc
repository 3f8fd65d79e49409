// SPDX-License-Identifier: Apache-2.0
//
// Recording: may be under way several times at once, of several queues.

#include "backends/vulkan/recording.h"

#include <string_view>

namespace onnxifi::vulkan {

base::Result<std::shared_ptr<Recording>> Recording::Begin(const Runtime& runtime) {
  constexpr std::string_view kDoing = "begin a recording";
  const DeviceApi& api = runtime.api();
  VkDevice device = runtime.device();
  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.queueFamilyIndex = runtime.info().queue_family;
  VkCommandPool created = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(
      runtime.Check(api.CreateCommandPool(device, &pool_info, nullptr, &created), kDoing));
  Handle<VkCommandPool> pool(device, created, api.DestroyCommandPool);
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = created;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(
      runtime.Check(api.AllocateCommandBuffers(device, &info, &commands), kDoing));
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  ONNXIFI_RETURN_IF_ERROR(runtime.Check(api.BeginCommandBuffer(commands, &begin), kDoing));
  return std::shared_ptr<Recording>(new Recording(std::move(pool), commands));
}

}  // namespace onnxifi::vulkan
