// SPDX-License-Identifier: Apache-2.0
//
// Sharing: the caller's buffers, memory, semaphores and queue as the kit sees them.

#ifndef ONNXIFI_BACKENDS_VULKAN_SHARING_H_
#define ONNXIFI_BACKENDS_VULKAN_SHARING_H_

#include <onnxifi/sdk.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "backends/core/device/sharing.h"
#include "backends/vulkan/heap.h"
#include "backends/vulkan/imports.h"
#include "backends/vulkan/runtime.h"
#include "backends/vulkan/semaphores.h"

namespace onnxifi::vulkan {

class Sharing final : public device::Sharing {
 public:
  // Both outlive it.
  Sharing(Runtime& runtime, Heap& heap)
      : runtime_(runtime), heap_(heap), imports_(runtime, heap), semaphores_(runtime) {}

  // `handle` is the address of an onnxVulkanBuffer.
  base::Result<std::unique_ptr<device::Allocation>> ImportMemory(uint64_t handle,
                                                                 int64_t size_bytes,
                                                                 Access access) override;
  base::Result<std::unique_ptr<device::Allocation>> ImportOpaqueFd(uint64_t handle,
                                                                   int64_t size_bytes) override;
  std::unique_ptr<device::Allocation> ImportHostMemory(std::byte* memory,
                                                       int64_t size_bytes) override {
    return imports_.ImportHost(memory, size_bytes);
  }
  base::Result<SharedMemory> AllocateShared(int64_t size_bytes) override;
  // The handle is a VkSemaphore.
  void EndWaits() override { semaphores_.End(); }
  base::Status WhenComplete(const NativeEvent& event, OnDone done) override;
  base::Result<NewEvent> MakeEvent() override;
  bool has_callers_queue() const override { return runtime_.has_callers_device(); }

 private:
  // Memory of AllocateShared and what tells of it.
  struct SharedBlock {
    std::unique_ptr<device::Allocation> piece;
    onnxVulkanBuffer told = {};
  };

  base::Status CheckBuffer(const onnxVulkanBuffer& buffer, int64_t size_bytes) const;
  // Null if there is none.
  const SharedBlock* FindShared(uint64_t handle) const;

  Runtime& runtime_;
  Heap& heap_;
  Imports imports_;
  Semaphores semaphores_;
  mutable std::mutex mutex_;
  // By the address of what tells of it. Guarded by mutex_.
  std::map<uint64_t, const SharedBlock*> shared_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_SHARING_H_
