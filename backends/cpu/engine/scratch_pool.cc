// SPDX-License-Identifier: Apache-2.0
//
// ScratchPool: a stack of idle blocks. One that is smaller than what is reserved by now is replaced
// when it is lent.

#include "backends/cpu/engine/scratch_pool.h"

#include <algorithm>

namespace onnxifi::engine {

void ScratchPool::Reserve(int64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  size_bytes_ = std::max(size_bytes_, size_bytes);
}

ScratchPool::Lease ScratchPool::Lend() {
  Block block;
  int64_t size_bytes;
  {
    const std::lock_guard lock(mutex_);
    size_bytes = size_bytes_;
    if (!idle_.empty()) {
      block = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (block.size_bytes < size_bytes) {
    block = Block();  // before the larger one is asked for
    block = Block{size_bytes, reference::Scratch(size_bytes)};
  }
  return {*this, std::move(block)};
}

void ScratchPool::TakeBack(Block block) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(block));
}

}  // namespace onnxifi::engine
