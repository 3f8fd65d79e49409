// SPDX-License-Identifier: Apache-2.0
//
// WorkMemory: a stack of idle blocks. One that is too small by now is replaced when it is lent.

#include "backends/cpu/runtime/work_memory.h"

#include <algorithm>

namespace onnxifi::runtime {

void WorkMemory::Reserve(int64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  reserved_bytes_ = std::max(reserved_bytes_, size_bytes);
}

base::Result<WorkMemory::Lease> WorkMemory::Lend(int64_t size_bytes) {
  std::unique_ptr<device::Allocation> block;
  {
    const std::lock_guard lock(mutex_);
    size_bytes = std::max(size_bytes, reserved_bytes_);
    if (size_bytes == 0) return Lease();
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

}  // namespace onnxifi::runtime
