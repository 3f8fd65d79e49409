// SPDX-License-Identifier: Apache-2.0
//
// Imports: memory that others made, as the device's: the host's (VK_EXT_external_memory_host), and
// that of other devices and processes behind opaque file descriptors (VK_KHR_external_memory_fd).

#ifndef ONNXIFI_BACKENDS_VULKAN_IMPORTS_H_
#define ONNXIFI_BACKENDS_VULKAN_IMPORTS_H_

#include <onnxifi/sdk.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "backends/vulkan/heap.h"
#include "backends/vulkan/runtime.h"

namespace onnxifi::vulkan {

// Any thread.
class Imports {
 public:
  // What is smaller is copied in less time than it is imported in.
  static constexpr int64_t kMinHostBytes = int64_t{1} << 20;
  // Of every tensor's address.
  static constexpr uint64_t kAlignment = 16;

  // Both outlive it.
  Imports(Runtime& runtime, Heap& heap);

  // The host's memory from `memory` on, in place. Null where it is to be copied: on a device with
  // memory of its own, whose kernels would read the host's through the bus; where the driver takes
  // no such memory, or not this; and for memory that is small, lies at no multiple of kAlignment,
  // or overlaps imported memory and is no part of it. It stays as long as the allocation.
  std::unique_ptr<device::Allocation> ImportHost(std::byte* memory, int64_t size_bytes);

  // INVALID_MEMORY_LOCATION for what does not fit or the driver refuses, UNSUPPORTED_MEMORY_TYPE
  // where the device was opened without such memory, resource codes.
  base::Result<std::unique_ptr<device::Allocation>> ImportFd(const onnxOpaqueFd& told,
                                                             int64_t size_bytes);

 private:
  class HostPart;
  struct HostRange {
    int64_t size_bytes = 0;
    std::unique_ptr<device::Allocation> memory;
    int count = 0;  // of parts that are in use
  };

  std::unique_ptr<device::Allocation> NewHostRange(std::byte* memory, int64_t size_bytes) const;
  // Of the type that such memory is of; false if kernels and host would not see the same in it.
  bool FindHostType(const void* memory, uint32_t& type) const;
  base::Status CheckFd(const onnxOpaqueFd& told, int64_t size_bytes) const;

  Runtime& runtime_;
  Heap& heap_;
  // Null where the device was opened without the extension.
  PFN_vkGetMemoryHostPointerPropertiesEXT host_properties_ = nullptr;
  bool takes_fds_ = false;
  std::mutex mutex_;
  std::map<std::byte*, HostRange> host_;  // guarded by mutex_
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_IMPORTS_H_
