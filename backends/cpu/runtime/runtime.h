// SPDX-License-Identifier: Apache-2.0
//
// Runtime: what the kernels of a CPU device share, whoever made them: its memory, its threads, and
// working memory for the time of a run.

#ifndef ONNXIFI_BACKENDS_CPU_RUNTIME_RUNTIME_H_
#define ONNXIFI_BACKENDS_CPU_RUNTIME_RUNTIME_H_

#include "backends/core/device/device.h"
#include "backends/cpu/runtime/work_memory.h"
#include "backends/cpu/threads/thread_pool.h"

namespace onnxifi::runtime {

// Threads: any. Outlives the kernels.
class Runtime {
 public:
  // `memory` and `pool` outlive it.
  Runtime(device::Memory& memory, threads::ThreadPool& pool)
      : memory_(memory), pool_(pool), work_memory_(memory) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  device::Memory& memory() { return memory_; }
  threads::ThreadPool& pool() const { return pool_; }
  // One stack of blocks for all, since a run needs one at a time.
  WorkMemory& work_memory() { return work_memory_; }

 private:
  device::Memory& memory_;
  threads::ThreadPool& pool_;
  WorkMemory work_memory_;
};

}  // namespace onnxifi::runtime

#endif  // ONNXIFI_BACKENDS_CPU_RUNTIME_RUNTIME_H_
