// SPDX-License-Identifier: Apache-2.0
//
// BlockPool: blocks of middle size, cut out of huge pages. To touch a small page for the first time
// takes longer than to fill it: a fifth of the time in which a network of many small weights is
// made ready.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_BLOCK_POOL_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_BLOCK_POOL_H_

#include <bitset>
#include <cstddef>
#include <map>
#include <mutex>

namespace onnxifi::tensor {

// Blocks lie in chunks of address space, each at the lowest place that is free. Pages that hold no
// block go back to the system but for a few, which what comes next finds warm. Threads: any.
class BlockPool {
 public:
  static constexpr size_t kPageBytes = size_t{1} << 21;  // a huge page
  static constexpr size_t kChunkBytes = 4 * kPageBytes;
  // The first chunk of a process has small pages, as there may never be more than a few blocks.
  static constexpr size_t kFirstChunkBytes = kPageBytes;
  static constexpr size_t kMaxBlockBytes = kFirstChunkBytes;
  static constexpr size_t kAlignment = 64;
  // Of pages that hold no block and have been touched.
  static constexpr size_t kMaxIdleBytes = 2 * kPageBytes;

  BlockPool() = default;
  // All blocks are released.
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // At most kMaxBlockBytes, aligned to kAlignment, not cleared. Null if the system has no more.
  std::byte* Allocate(size_t size_bytes);
  void Release(std::byte* data);
  // Gives chunks without blocks back to the system.
  void ReleaseIdle();

  // Of address space.
  size_t mapped_bytes() const;
  // Of pages that were touched and hold no block.
  size_t idle_bytes() const;

 private:
  struct Chunk {
    size_t size_bytes = 0;
    size_t used_bytes = 0;
    // From its offset to the size of each range. A block's node goes from one to the other and
    // back, so that to release it needs no memory.
    std::map<size_t, size_t> free, blocks;
    std::bitset<kChunkBytes / kPageBytes> touched;  // pages that may be in memory
  };
  using Chunks = std::map<std::byte*, Chunk>;

  static std::byte* TakeFrom(std::byte* base, Chunk& chunk, size_t size_bytes);
  Chunks::iterator AddChunk();
  void Unmap(Chunks::iterator chunk);
  // Gives back pages of the chunk that hold no block, while too many are idle.
  void Trim(std::byte* base, Chunk& chunk);
  size_t IdleBytes() const;

  mutable std::mutex mutex_;
  Chunks chunks_;  // by address
};

// That of the process; in it ever since the first block, and for as long as there is one.
BlockPool& SharedBlockPool();

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_BLOCK_POOL_H_
