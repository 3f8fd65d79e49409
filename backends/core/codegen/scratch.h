// SPDX-License-Identifier: Apache-2.0
//
// Scratch: working memory that all kernels of a device share: what one kernel of a step leaves for
// the next. The device's queues are one order (device.h), so whoever holds the lock while he puts
// his kernels in has it to himself.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_SCRATCH_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_SCRATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::codegen {

class Scratch {
 public:
  // `memory` outlives it.
  explicit Scratch(device::Memory& memory) : memory_(memory) {}

  // Where the next piece may begin behind one of this size.
  static constexpr int64_t Aligned(int64_t size_bytes) {
    constexpr int64_t kAlignment = 256;
    return (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  // Sees to it that there are that many bytes from now on; resource codes, with which the memory
  // stays that kernels bound before rely on. Any thread.
  base::Status Reserve(int64_t size_bytes) {
    const std::lock_guard lock(mutex_);
    if (size_bytes == 0 || (held_ != nullptr && held_->size_bytes() >= size_bytes)) {
      return base::Ok();
    }
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<device::Allocation> larger,
                             memory_.Allocate(size_bytes));
    // What kernels in the queue still use is given to nobody who comes before them; recordings keep
    // what they use.
    held_ = std::move(larger);
    return base::Ok();
  }

  // The memory, for what is put into a queue while the lock is held.
  class Use {
   public:
    Use(Scratch& scratch, device::Queue& queue)
        : lock_(scratch.mutex_), held_(scratch.held_.get()) {
      if (held_ != nullptr) queue.Keep(scratch.held_);
    }
    // Null if nothing was reserved.
    std::byte* at(int64_t offset_bytes) const {
      return held_ == nullptr ? nullptr : held_->data() + offset_bytes;
    }

   private:
    const std::lock_guard<std::mutex> lock_;
    device::Allocation* const held_;
  };

 private:
  friend class Use;
  device::Memory& memory_;
  std::mutex mutex_;
  std::shared_ptr<device::Allocation> held_;  // shared with the queues that it is put into
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_SCRATCH_H_
