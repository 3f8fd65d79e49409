// SPDX-License-Identifier: Apache-2.0
//
// FakeCaller: for tests on the fake driver: a caller's device and queue, and memory for others.

#ifndef ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_CALLER_H_
#define ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_CALLER_H_

#include <onnxifi/sdk.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <mutex>

#include "backends/vulkan/testing/fake_driver.h"

namespace onnxifi::vulkan {

// An integrated GPU that takes memory of others.
inline FakeDevice UnifiedDevice() {
  FakeDevice device;
  device.type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  device.extensions = {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
                       VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
  return device;
}

// A file as memory of the fake driver's devices is behind file descriptors.
inline int MakeFakeMemoryFile(int64_t size_bytes) {
  const int fd = memfd_create("onnxifi", MFD_CLOEXEC);
  if (fd >= 0 && ftruncate(fd, size_bytes) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// As an unchanged FakeDevice has made it, with memory type 0.
inline onnxOpaqueFd TellOfFakeMemory(int fd, uint64_t allocation_bytes, uint64_t offset,
                                     uint64_t size_bytes) {
  const FakeDevice device;
  onnxOpaqueFd told = {};
  told.struct_size = sizeof(told);
  told.fd = fd;
  told.allocation_bytes = allocation_bytes;
  told.offset = offset;
  told.size_bytes = size_bytes;
  std::ranges::copy(device.uuid, std::begin(told.device_uuid));
  std::ranges::copy(device.driver_uuid, std::begin(told.driver_uuid));
  return told;
}

class FakeCaller {
 public:
  // `instance`: of the fake driver, outlives it. Where the driver refuses a device, there is none.
  explicit FakeCaller(VkInstance instance) {
    const Api api = FakeDriver::GetApi();
    const auto find = [&]<typename T>(T& function, const char* name) {
      function = reinterpret_cast<T>(api.GetInstanceProcAddr(instance, name));
    };
    PFN_vkEnumeratePhysicalDevices enumerate = nullptr;
    PFN_vkCreateDevice create = nullptr;
    PFN_vkGetDeviceQueue get_queue = nullptr;
    find(enumerate, "vkEnumeratePhysicalDevices");
    find(create, "vkCreateDevice");
    find(get_queue, "vkGetDeviceQueue");
    find(destroy_, "vkDestroyDevice");
    uint32_t count = 1;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    if (enumerate(instance, &count, &physical) != VK_SUCCESS) return;
    of_1_2_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    of_1_2_.bufferDeviceAddress = of_1_2_.scalarBlockLayout = of_1_2_.timelineSemaphore = VK_TRUE;
    of_1_2_.shaderInt8 = of_1_2_.storageBuffer8BitAccess = VK_TRUE;
    of_1_1_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    of_1_1_.pNext = &of_1_2_;
    of_1_1_.storageBuffer16BitAccess = VK_TRUE;
    features_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features_.pNext = &of_1_1_;
    features_.features.shaderInt64 = features_.features.shaderInt16 = VK_TRUE;
    features_.features.shaderFloat64 = VK_TRUE;
    constexpr float kPriority = 1;
    VkDeviceQueueCreateInfo queue_info{};
    queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &kPriority;
    VkDeviceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &features_;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue_info;
    if (create(physical, &info, nullptr, &device_) != VK_SUCCESS) return;
    VkQueue queue = VK_NULL_HANDLE;
    get_queue(device_, 0, 0, &queue);
    told_.struct_size = sizeof(told_);
    told_.instance = instance;
    told_.physical_device = physical;
    told_.device = device_;
    told_.queue = queue;
    told_.features = &features_;
    told_.lock_queue = [](void* self) { static_cast<FakeCaller*>(self)->mutex_.lock(); };
    told_.unlock_queue = [](void* self) { static_cast<FakeCaller*>(self)->mutex_.unlock(); };
    told_.context = this;
  }
  ~FakeCaller() {
    if (device_ != VK_NULL_HANDLE) destroy_(device_, nullptr);
  }
  FakeCaller(const FakeCaller&) = delete;
  FakeCaller& operator=(const FakeCaller&) = delete;

  bool is_open() const { return device_ != VK_NULL_HANDLE; }
  const onnxVulkanDevice& told() const { return told_; }

 private:
  PFN_vkDestroyDevice destroy_ = nullptr;
  VkDevice device_ = VK_NULL_HANDLE;
  VkPhysicalDeviceVulkan12Features of_1_2_{};
  VkPhysicalDeviceVulkan11Features of_1_1_{};
  VkPhysicalDeviceFeatures2 features_{};
  onnxVulkanDevice told_ = {};
  std::mutex mutex_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_CALLER_H_
