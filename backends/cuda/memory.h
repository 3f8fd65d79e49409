// SPDX-License-Identifier: Apache-2.0
//
// Memory: memory of the device from core/device/memory_pool.h, under the device's own addresses.

#ifndef ONNXIFI_BACKENDS_CUDA_MEMORY_H_
#define ONNXIFI_BACKENDS_CUDA_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "backends/core/device/device.h"
#include "backends/core/device/memory_pool.h"
#include "backends/core/device/staging.h"
#include "backends/cuda/gates.h"
#include "backends/cuda/runtime.h"

namespace onnxifi::cuda {

// Memory that is not freed with the allocation.
std::unique_ptr<device::Allocation> CallersMemory(CUdeviceptr address, int64_t size_bytes);

class Memory final : public device::Memory {
 public:
  // The references outlive the memory, which outlives all allocations.
  Memory(const Runtime& runtime, device::StagingPool& staging, std::shared_ptr<Gates> gates)
      : runtime_(runtime), staging_(staging), gates_(std::move(gates)) {}

  base::Result<std::unique_ptr<device::Allocation>> Allocate(int64_t size_bytes) override;
  base::Result<std::unique_ptr<device::Allocation>> Hold(const tensor::Tensor& constant) override;

  // Pieces of memory asked of the driver so far, for tests.
  int64_t piece_count() const { return pool_.made_count(); }

 private:
  base::Result<std::unique_ptr<device::Allocation>> NewPiece(int64_t size_bytes);

  const Runtime& runtime_;
  device::StagingPool& staging_;
  const std::shared_ptr<Gates> gates_;
  device::MemoryPool pool_{[this](int64_t size_bytes) { return NewPiece(size_bytes); }};
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_MEMORY_H_
