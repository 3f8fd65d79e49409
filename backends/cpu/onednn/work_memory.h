// SPDX-License-Identifier: Apache-2.0
//
// WorkMemory: memory that kernels need for the time of one run. Lent and taken back, so that a plan
// in its steady state allocates nothing.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_WORK_MEMORY_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_WORK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::onednn {

// As many blocks as there ever were runs at the same time, each grown to the largest need it met.
// Threads: any.
class WorkMemory {
 public:
  // A block until it is destroyed; the WorkMemory outlives it.
  class Lease {
   public:
    Lease() = default;
    Lease(WorkMemory* lender, std::unique_ptr<device::Allocation> block)
        : lender_(lender), block_(std::move(block)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (block_ != nullptr) lender_->TakeBack(std::move(block_));
    }
    std::byte* data() const { return block_ == nullptr ? nullptr : block_->data(); }

   private:
    WorkMemory* lender_ = nullptr;
    std::unique_ptr<device::Allocation> block_;
  };

  // `memory` outlives this.
  explicit WorkMemory(device::Memory& memory) : memory_(memory) {}

  // At least `size_bytes`, aligned as the device's memory, not cleared; none for 0.
  // NO_SYSTEM_MEMORY.
  base::Result<Lease> Lend(int64_t size_bytes);

 private:
  void TakeBack(std::unique_ptr<device::Allocation> block);

  device::Memory& memory_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<device::Allocation>> idle_;
};

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_WORK_MEMORY_H_
