// SPDX-License-Identifier: Apache-2.0
//
// MemoryTypes: the best type by a rank per purpose. Of equal ranks the first counts: drivers list
// the faster type first.

#include "backends/vulkan/memory_types.h"

#include <tuple>

namespace onnxifi::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kMapped =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
// Memory of these needs features that the device is not opened with, or has no address.
constexpr VkMemoryPropertyFlags kUnfit =
    VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
    VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

template <typename RankOf>
bool Choose(const VkPhysicalDeviceMemoryProperties& properties, VkMemoryPropertyFlags needed,
            const RankOf& rank_of, MemoryType& best) {
  bool is_found = false;
  for (uint32_t index = 0; index < properties.memoryTypeCount; ++index) {
    const VkMemoryPropertyFlags flags = properties.memoryTypes[index].propertyFlags;
    if ((flags & needed) != needed || (flags & kUnfit) != 0) continue;
    const uint32_t heap = properties.memoryTypes[index].heapIndex;
    const MemoryType type{index, heap, properties.memoryHeaps[heap].size,
                          (flags & kMapped) == kMapped,
                          (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0};
    const bool is_local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
    if (is_found) {
      const VkMemoryPropertyFlags best_flags = properties.memoryTypes[best.index].propertyFlags;
      const bool best_is_local = (best_flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
      if (rank_of(type, is_local) <= rank_of(best, best_is_local)) continue;
    }
    best = type;
    is_found = true;
  }
  return is_found;
}

}  // namespace

bool ChooseMemoryTypes(const VkPhysicalDeviceMemoryProperties& properties, MemoryTypes& types) {
  return Choose(
             properties, 0,
             [](const MemoryType& type, bool is_local) {
               return std::tuple(is_local, type.heap_bytes, type.is_mapped, type.is_cached);
             },
             types.device) &&
         Choose(
             properties, kMapped,
             [](const MemoryType& type, bool is_local) {
               return std::tuple(is_local, type.heap_bytes, type.is_cached);
             },
             types.numbers) &&
         Choose(
             properties, kMapped,
             [](const MemoryType& type, bool is_local) {
               return std::tuple(type.is_cached, !is_local, type.heap_bytes);
             },
             types.staging);
}

}  // namespace onnxifi::vulkan
