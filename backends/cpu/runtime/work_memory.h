// SPDX-License-Identifier: Apache-2.0
//
// WorkMemory: memory that kernels need for the time of one run, or of one range of it. Lent and
// taken back, so that a plan in its steady state allocates nothing.

#ifndef ONNXIFI_BACKENDS_CPU_RUNTIME_WORK_MEMORY_H_
#define ONNXIFI_BACKENDS_CPU_RUNTIME_WORK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::runtime {

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

  // Blocks hold `size_bytes` or more from now on.
  void Reserve(int64_t size_bytes);
  // At least `size_bytes` and what was reserved, aligned as the device's memory, not cleared; none
  // for 0. NO_SYSTEM_MEMORY.
  base::Result<Lease> Lend(int64_t size_bytes = 0);

 private:
  void TakeBack(std::unique_ptr<device::Allocation> block);

  device::Memory& memory_;
  std::mutex mutex_;
  int64_t reserved_bytes_ = 0;
  std::vector<std::unique_ptr<device::Allocation>> idle_;
};

}  // namespace onnxifi::runtime

#endif  // ONNXIFI_BACKENDS_CPU_RUNTIME_WORK_MEMORY_H_
