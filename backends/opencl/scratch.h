// SPDX-License-Identifier: Apache-2.0
//
// Scratch: working memory that all kernels of a device share: what one kernel of a step leaves for
// the next. There is one command queue and it is in order, so whoever holds the lock while he puts
// his kernels in has it to himself.

#ifndef ONNXIFI_BACKENDS_OPENCL_SCRATCH_H_
#define ONNXIFI_BACKENDS_OPENCL_SCRATCH_H_

#include <memory>
#include <mutex>

#include "backends/opencl/memory.h"

namespace onnxifi::opencl {

class Scratch {
 public:
  explicit Scratch(Memory& memory) : memory_(memory) {}

  // Where the next piece may begin behind one of this size.
  static constexpr int64_t Aligned(int64_t size_bytes) {
    constexpr int64_t kAlignment = 256;
    return (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  // Sees to it that there are that many bytes from now on; resource codes. Any thread.
  base::Status Reserve(int64_t size_bytes) {
    const std::lock_guard lock(mutex_);
    if (size_bytes == 0 || (held_ != nullptr && held_->size_bytes() >= size_bytes)) {
      return base::Ok();
    }
    // What kernels in the queue still use is given to nobody who comes before them.
    held_.reset();
    ONNXIFI_ASSIGN_OR_RETURN(held_, memory_.Allocate(size_bytes));
    return base::Ok();
  }

  // The memory, while the lock is held; null for none.
  class Use {
   public:
    explicit Use(Scratch& scratch) : lock_(scratch.mutex_), held_(scratch.held_.get()) {}
    base::Result<Memory::Place> Find(const Memory& memory) const {
      return memory.Find(held_ == nullptr ? nullptr : held_->data());
    }

   private:
    const std::lock_guard<std::mutex> lock_;
    device::Allocation* const held_;
  };

 private:
  friend class Use;
  Memory& memory_;
  std::mutex mutex_;
  std::unique_ptr<device::Allocation> held_;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_SCRATCH_H_
