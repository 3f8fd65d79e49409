// SPDX-License-Identifier: Apache-2.0
//
// FakeDevice: what a physical device of the fake driver is, and what it tells of its work.

#ifndef ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_DEVICE_H_
#define ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_DEVICE_H_

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "backends/vulkan/api.h"
#include "backends/vulkan/cooperative_matrices.h"

namespace onnxifi::vulkan {

// A physical device. As it is made: a GPU with all that kernels need, memory of its own that the
// host can write, and 65,535 groups.
struct FakeDevice {
  struct Heap {
    uint64_t size_bytes = 0;
    VkMemoryHeapFlags flags = 0;
    // What VK_EXT_memory_budget tells beside what this process has.
    uint64_t budget_bytes = 0;
    uint64_t others_bytes = 0;
  };

  std::string name = "Fake device";
  uint32_t api_version = VK_API_VERSION_1_2;
  uint32_t driver_version = 7;
  std::string driver_name = "Fake driver";
  std::string driver_info = "1.0";
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  // Features that it has not, as Vulkan names them.
  std::set<std::string> lacks;
  std::set<std::string> extensions;
  std::vector<Heap> heaps = {{uint64_t{256} << 20, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}};
  std::vector<VkMemoryType> memory_types = {{VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                                 VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                                 VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                             0}};
  uint64_t largest_allocation_bytes = uint64_t{1} << 30;
  // Of what GetBufferDeviceAddress tells.
  uint64_t address_alignment = 16;
  std::array<uint32_t, 3> most_groups = {65'535, 65'535, 65'535};
  std::vector<VkQueueFamilyProperties> queue_families = {
      {VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 1, 64, {1, 1, 1}}};
  std::array<uint8_t, VK_UUID_SIZE> uuid = {1, 2, 3};
  std::array<uint8_t, VK_UUID_SIZE> driver_uuid = {4, 5, 6};
  // What VK_EXT_external_memory_host tells, and kinds of handles that no buffer takes.
  uint64_t host_memory_alignment = 4096;
  VkExternalMemoryHandleTypeFlags refused_handle_types = 0;
  // What it tells where it has the extension.
  std::vector<VkCooperativeMatrixPropertiesKHR> cooperative_matrices;
};

// The start of a kernel.
struct FakeStart {
  std::array<uint32_t, 3> groups;
  std::vector<uint64_t> constants;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_DEVICE_H_
