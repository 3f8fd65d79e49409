// SPDX-License-Identifier: Apache-2.0
//
// CallersDevice: a device and a queue of the caller's, as far as they can be checked: Vulkan tells
// neither which features a device was made with nor whose a handle is.

#ifndef ONNXIFI_BACKENDS_VULKAN_CALLERS_DEVICE_H_
#define ONNXIFI_BACKENDS_VULKAN_CALLERS_DEVICE_H_

#include <onnxifi/sdk.h>

#include <cstdint>

#include "backends/vulkan/api.h"
#include "backends/vulkan/driver.h"

namespace onnxifi::vulkan {

struct CallersDevice {
  InstanceApi instance_api;
  DeviceApi functions;
  // As the plugin found the device, with the caller's handle and queue family.
  DeviceInfo info;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  onnxQueueLockFunction lock_queue = nullptr;
  onnxQueueLockFunction unlock_queue = nullptr;
  void* context = nullptr;
};

// `given`: address of an onnxVulkanDevice; `info`: the device that it should be. INVALID_PROPERTY
// with what does not fit; resource codes.
base::Result<CallersDevice> CheckCallersDevice(const Api& api, uint64_t given,
                                               const DeviceInfo& info);

// Has the queue as long as it lives.
class QueueLock {
 public:
  // Null: there is nobody to lock out.
  explicit QueueLock(const CallersDevice* callers)
      : callers_(callers == nullptr || callers->lock_queue == nullptr ? nullptr : callers) {
    if (callers_ != nullptr) callers_->lock_queue(callers_->context);
  }
  ~QueueLock() {
    if (callers_ != nullptr) callers_->unlock_queue(callers_->context);
  }
  QueueLock(const QueueLock&) = delete;
  QueueLock& operator=(const QueueLock&) = delete;

 private:
  const CallersDevice* const callers_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_CALLERS_DEVICE_H_
