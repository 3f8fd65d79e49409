// SPDX-License-Identifier: Apache-2.0
//
// Caller: a program with a Vulkan device, queue and buffers of its own, for tests of sharing. Its
// buffers are mapped, so that tests read and write them where they lie.

#ifndef ONNXIFI_BACKENDS_VULKAN_TESTING_CALLER_H_
#define ONNXIFI_BACKENDS_VULKAN_TESTING_CALLER_H_

#include <onnxifi/sdk.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/vulkan/api.h"
#include "backends/vulkan/driver.h"
#include "backends/vulkan/memory_types.h"
#include "backends/vulkan/semaphores.h"

namespace onnxifi::vulkan {

class Caller {
 public:
  // On the first physical device with this UUID, as the query writes it; with the extensions for
  // memory that others use, as far as it has them, or without.
  enum class Extensions : uint8_t { kMemory, kNone };
  static base::Result<std::unique_ptr<Caller>> Create(const std::string& uuid,
                                                      Extensions extensions = Extensions::kMemory);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // What validation said of the device, where it is on.
  base::Status CheckMessages() const;
  // As the backend property takes it; tests change parts of it.
  onnxVulkanDevice Told();
  const DeviceApi& api() const { return functions_; }
  VkDevice device() const { return device_; }
  // How often the queue was locked.
  int lock_count() const { return lock_count_; }

  struct Buffer {
    Handle<VkDeviceMemory> memory;
    Handle<VkBuffer> buffer;
    std::byte* mapped = nullptr;
    onnxVulkanBuffer told = {};

    std::span<float> floats() const {
      return {reinterpret_cast<float*>(mapped + told.offset), told.size_bytes / sizeof(float)};
    }
  };
  // `size_bytes` for the tensor behind `offset`.
  base::Result<std::unique_ptr<Buffer>> MakeBuffer(uint64_t size_bytes, uint64_t offset = 0);

  // Memory for others, mapped here.
  struct Exported {
    ~Exported();
    Handle<VkDeviceMemory> memory;
    std::byte* mapped = nullptr;
    onnxOpaqueFd told = {};

    std::span<float> floats() const {
      return {reinterpret_cast<float*>(mapped + told.offset), told.size_bytes / sizeof(float)};
    }
  };
  base::Result<std::unique_ptr<Exported>> ExportMemory(uint64_t size_bytes, uint64_t offset = 0);

  // A timeline semaphore at 0.
  base::Result<Handle<VkSemaphore>> MakeSemaphore();
  void Signal(VkSemaphore semaphore, uint64_t value);
  uint64_t ValueOf(VkSemaphore semaphore);
  // Copies within one submission that waits for the semaphore first, and does not wait for the end.
  base::Status SubmitCopy(VkBuffer from, VkBuffer to, uint64_t size_bytes,
                          VkSemaphore after = VK_NULL_HANDLE, uint64_t value = 0);
  void Finish();

 private:
  Caller() = default;
  base::Status OpenDevice(Extensions extensions);

  std::unique_ptr<Instance> instance_;
  DeviceInfo info_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  DeviceApi functions_;
  SemaphoreApi semaphore_api_;
  Handle<VkCommandPool> pool_;
  VkPhysicalDeviceVulkan12Features of_1_2_{};
  VkPhysicalDeviceVulkan11Features of_1_1_{};
  VkPhysicalDeviceFeatures2 features_{};
  std::mutex queue_mutex_;
  std::atomic<int> lock_count_ = 0;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_TESTING_CALLER_H_
