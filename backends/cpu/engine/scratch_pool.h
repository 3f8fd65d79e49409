// SPDX-License-Identifier: Apache-2.0
//
// ScratchPool: tile registers for the time of one range of a run. Lent and taken back, so that
// kernels in their steady state allocate nothing.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_SCRATCH_POOL_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_SCRATCH_POOL_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/core/reference/scratch.h"

namespace onnxifi::engine {

// As many blocks as there ever were ranges at the same time, all of the largest size that any
// kernel asked for. Threads: any.
class ScratchPool {
 public:
  struct Block {
    int64_t size_bytes = 0;
    reference::Scratch memory;
  };
  // A block until it is destroyed; the pool outlives it.
  class Lease {
   public:
    Lease(ScratchPool& pool, Block block) : pool_(pool), block_(std::move(block)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool_.TakeBack(std::move(block_)); }
    std::byte* data() const { return block_.memory.data(); }

   private:
    ScratchPool& pool_;
    Block block_;
  };

  // Blocks hold `size_bytes` or more from now on.
  void Reserve(int64_t size_bytes);
  // A block of at least what was reserved. Throws std::bad_alloc where none is idle and no memory
  // is left.
  Lease Lend();

 private:
  void TakeBack(Block block);

  std::mutex mutex_;
  int64_t size_bytes_ = 0;
  std::vector<Block> idle_;
};

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_SCRATCH_POOL_H_
