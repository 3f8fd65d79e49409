// SPDX-License-Identifier: Apache-2.0
//
// Runtime: an opened device: its one queue, which any thread submits to, and the timeline semaphore
// that counts what is done. Submissions are one order: each begins with a barrier on all before it.

#ifndef ONNXIFI_BACKENDS_VULKAN_RUNTIME_H_
#define ONNXIFI_BACKENDS_VULKAN_RUNTIME_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "backends/vulkan/api.h"
#include "backends/vulkan/callers_device.h"
#include "backends/vulkan/driver.h"
#include "backends/vulkan/retirement.h"

namespace onnxifi::vulkan {

class Runtime {
 public:
  // BACKEND_UNAVAILABLE or a resource code. `instance` outlives it.
  static base::Result<std::unique_ptr<Runtime>> Open(const Instance& instance,
                                                     const DeviceInfo& info);
  // On a device and in a queue of the caller's, which outlive it.
  static base::Result<std::unique_ptr<Runtime>> Share(const Instance& instance,
                                                      const CallersDevice& callers);
  // Waits for all work of its own.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const DeviceApi& api() const { return functions_; }
  const InstanceApi& instance_api() const {
    return callers_ ? callers_->instance_api : instance_.api();
  }
  bool has_callers_device() const { return callers_.has_value(); }
  const DeviceInfo& info() const { return info_; }
  VkDevice device() const { return device_; }
  // Of every kernel: kPushBytes of push constants and nothing else.
  VkPipelineLayout layout() const { return layout_.get(); }
  static constexpr uint32_t kPushBytes = 128;
  Retirement& retirement() { return retirement_; }

  // A timeline semaphore at 0, the receiver's to destroy.
  base::Result<VkSemaphore> NewSemaphore() const;

  // As api.h; remembers that the device is lost.
  base::Status Check(VkResult result, std::string_view doing) const;
  // Puts recorded commands behind all that was submitted before. The number to wait for.
  // BACKEND_UNAVAILABLE once the device is lost; resource codes. Any thread.
  base::Result<uint64_t> Submit(std::span<const VkCommandBuffer> commands);
  // Once it returns the device is done with it, or lost.
  base::Status Wait(uint64_t submission);
  // Whether the device is known to be done with it, or lost. Does not wait.
  bool IsDone(uint64_t submission) const;

  // Bytes of a heap that this process may still get: the driver's budget where it tells one, else
  // the heap's size less what this device has of it.
  uint64_t AvailableBytes(const MemoryType& type) const;
  // What allocations of the type have come to, or less by.
  void CountBytes(const MemoryType& type, int64_t more_bytes) {
    own_bytes_[type.heap] += static_cast<uint64_t>(more_bytes);
  }

 private:
  Runtime(const Instance& instance, const DeviceInfo& info) : instance_(instance), info_(info) {}
  base::Status OpenDevice();
  base::Status MakeObjects();
  VkResult WaitFor(uint64_t submission, uint64_t timeout_ns) const;

  const Instance& instance_;
  const DeviceInfo info_;
  std::optional<CallersDevice> callers_;
  VkDevice device_ = VK_NULL_HANDLE;
  DeviceApi functions_;
  VkQueue queue_ = VK_NULL_HANDLE;
  Handle<VkPipelineLayout> layout_;
  Handle<VkSemaphore> timeline_;
  mutable std::atomic<bool> is_lost_ = false;
  std::mutex queue_mutex_;
  uint64_t submissions_ = 0;  // guarded by queue_mutex_
  std::array<std::atomic<uint64_t>, VK_MAX_MEMORY_HEAPS> own_bytes_{};
  Retirement retirement_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_RUNTIME_H_
