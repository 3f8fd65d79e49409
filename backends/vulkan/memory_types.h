// SPDX-License-Identifier: Apache-2.0
//
// MemoryTypes: which of a device's types of memory serve which purpose.

#ifndef ONNXIFI_BACKENDS_VULKAN_MEMORY_TYPES_H_
#define ONNXIFI_BACKENDS_VULKAN_MEMORY_TYPES_H_

#include <cstdint>

#include "backends/vulkan/api.h"

namespace onnxifi::vulkan {

// Of every buffer that kernels and copies use.
inline constexpr VkBufferUsageFlags kBufferUsage =
    VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

struct MemoryType {
  uint32_t index = 0;
  uint32_t heap = 0;
  uint64_t heap_bytes = 0;
  // The host writes it through a mapping, and what it writes is seen by later submissions.
  bool is_mapped = false;
  // The host reads the mapping at the speed of its own memory.
  bool is_cached = false;
};

struct MemoryTypes {
  MemoryType
      device;  // tensors: the largest heap of the device's own, mapped where all of it can be
  MemoryType
      numbers;  // what the host writes and kernels read: mapped, the device's own if possible
  MemoryType staging;  // what the host writes and reads: mapped, cached if possible
};

// False if the host can write none of the types.
bool ChooseMemoryTypes(const VkPhysicalDeviceMemoryProperties& properties, MemoryTypes& types);

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_MEMORY_TYPES_H_
