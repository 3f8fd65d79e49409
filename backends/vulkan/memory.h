// SPDX-License-Identifier: Apache-2.0
//
// Memory: the heap as a device::Memory.

#ifndef ONNXIFI_BACKENDS_VULKAN_MEMORY_H_
#define ONNXIFI_BACKENDS_VULKAN_MEMORY_H_

#include <cstdint>
#include <memory>

#include "backends/core/device/device.h"
#include "backends/vulkan/heap.h"
#include "backends/vulkan/loading.h"

namespace onnxifi::vulkan {

class Memory final : public device::Memory {
 public:
  // Both outlive the memory, which outlives all allocations.
  Memory(Heap& heap, Loading& loading) : heap_(heap), loading_(loading) {}

  base::Result<std::unique_ptr<device::Allocation>> Allocate(int64_t size_bytes) override;
  base::Result<std::unique_ptr<device::Allocation>> Hold(const tensor::Tensor& constant) override;

 private:
  // What loading may keep from being used again.
  static constexpr int64_t kMaxWaitingBytes = int64_t{64} << 20;

  Heap& heap_;
  Loading& loading_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_MEMORY_H_
