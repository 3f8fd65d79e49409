// SPDX-License-Identifier: Apache-2.0
//
// Blocks: memory of one type, asked of the driver in blocks of 64 MiB and given out in pieces:
// drivers make memory slowly and count how often. Each block has one buffer over all of it.

#ifndef ONNXIFI_BACKENDS_VULKAN_BLOCKS_H_
#define ONNXIFI_BACKENDS_VULKAN_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/vulkan/runtime.h"

namespace onnxifi::vulkan {

// An allocation of the driver's.
struct Block {
  Handle<VkDeviceMemory> memory;
  Handle<VkBuffer> buffer;  // goes before its memory
  uint64_t address = 0;     // of the buffer, for kernels
  std::byte* mapped = nullptr;
  int64_t size_bytes = 0;
  std::map<int64_t, int64_t> free;  // size by offset; neighbours are joined
};

struct BlockRequest {
  int64_t size_bytes = 0;  // of the buffer
  uint32_t memory_type = 0;
  bool is_mapped = false;
  // Of memory that others made: how it is imported, and its size; 0 for as much as is needed.
  VkExternalMemoryHandleTypeFlagBits handle_type{};
  const void* import = nullptr;
  int64_t allocation_bytes = 0;
  int* taken_fd = nullptr;  // -1 once the driver has it
};
// Without a free place. Resource codes, INVALID_MEMORY_LOCATION for what cannot be imported.
base::Result<std::unique_ptr<Block>> MakeBlock(const Runtime& runtime, const BlockRequest& request);

// Any thread.
class Blocks {
 public:
  static constexpr int64_t kBlockBytes = int64_t{64} << 20;
  // Larger pieces are blocks of their own.
  static constexpr int64_t kMaxPieceBytes = kBlockBytes / 2;
  // Of every piece's address and size.
  static constexpr int64_t kAlignment = 256;

  // `runtime` outlives it.
  Blocks(Runtime& runtime, const MemoryType& type) : runtime_(runtime), type_(type) {}

  struct Piece {
    Block* block = nullptr;
    int64_t offset_bytes = 0;
    int64_t size_bytes = 0;
  };
  // At least `size_bytes` > 0. NO_DEVICE_MEMORY with size and limit, NO_SYSTEM_MEMORY.
  base::Result<Piece> Allocate(int64_t size_bytes);
  void Free(const Piece& piece);

  // Allocations of the driver's that exist, for tests.
  int64_t block_count() const;

 private:
  // One that has room for `wanted` bytes, which serve `size_bytes`.
  base::Result<std::unique_ptr<Block>> NewBlockFor(int64_t wanted, int64_t size_bytes);
  base::Result<std::unique_ptr<Block>> NewBlock(int64_t size_bytes);
  // Gives up what is spare. False: there is nothing.
  bool GiveUpEmptyBlocks();
  // The bytes that a block may have now.
  int64_t AvailableBytes() const;
  static bool IsEmpty(const Block& block);
  static bool Take(Block& block, int64_t size_bytes, Piece& piece);

  Runtime& runtime_;
  const MemoryType type_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_BLOCKS_H_
