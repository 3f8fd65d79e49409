// SPDX-License-Identifier: Apache-2.0
//
// WorkMemory: a stack of idle blocks.

#include "backends/cpu/onednn/work_memory.h"

namespace onnxifi::onednn {

base::Result<WorkMemory::Lease> WorkMemory::Lend(int64_t size_bytes) {
  if (size_bytes == 0) return Lease();
  std::unique_ptr<device::Allocation> block;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      block = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (block == nullptr || block->size_bytes() < size_bytes) {
    block.reset();  // before the larger one is asked for
    ONNXIFI_ASSIGN_OR_RETURN(block, memory_.Allocate(size_bytes));
  }
  return Lease(this, std::move(block));
}

void WorkMemory::TakeBack(std::unique_ptr<device::Allocation> block) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(block));
}

}  // namespace onnxifi::onednn
