// SPDX-License-Identifier: Apache-2.0
//
// Heap: the device's memory by address: pieces of blocks (blocks.h), pooled by the kit
// (core/device/memory_pool.h), given to another owner once no open recording can name them
// (retirement.h). A piece's address is the one that kernels use.

#ifndef ONNXIFI_BACKENDS_VULKAN_HEAP_H_
#define ONNXIFI_BACKENDS_VULKAN_HEAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "backends/core/device/address_space.h"
#include "backends/core/device/device.h"
#include "backends/core/device/memory_pool.h"
#include "backends/vulkan/blocks.h"
#include "backends/vulkan/runtime.h"

namespace onnxifi::vulkan {

// What memory is for; each purpose has the type that memory_types.h says.
enum class Purpose : uint8_t {
  kTensor,
  kNumbers,
  kStaging,
  kLastStaging,  // the one piece of who has no other and finds all staging memory in use
};

// Any thread.
class Heap {
 public:
  // `runtime` outlives it.
  explicit Heap(Runtime& runtime);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // All pieces of kStaging together; what is left of 64 MiB is for kLastStaging.
  static constexpr int64_t kMaxStagingBytes = int64_t{56} << 20;

  // The heap outlives it. Staging memory may be used anew at once when it is given back.
  // NO_DEVICE_MEMORY with size and limit, NO_SYSTEM_MEMORY; NO_DEVICE_RESOURCES if staging memory
  // is used up.
  base::Result<std::unique_ptr<device::Allocation>> Allocate(Purpose purpose, int64_t size_bytes);

  // A caller's buffer of `buffer_bytes` at `address`, and in it `size_bytes` > 0 from
  // `offset_bytes` on. INVALID_MEMORY_LOCATION if another buffer is imported at that address. The
  // buffer outlives the allocation, as the heap does.
  base::Result<std::unique_ptr<device::Allocation>> Import(VkBuffer buffer, uint64_t address,
                                                           int64_t buffer_bytes,
                                                           int64_t offset_bytes,
                                                           int64_t size_bytes);

  // The block as memory of the device's, and in it `size_bytes` > 0 from `offset_bytes` on. It goes
  // with the allocation, which nothing that is under way may use by then.
  std::unique_ptr<device::Allocation> Adopt(std::unique_ptr<Block> block, int64_t offset_bytes,
                                            int64_t size_bytes);

  // Where an address lies.
  struct Location {
    VkBuffer buffer = VK_NULL_HANDLE;
    int64_t offset_bytes = 0;
    std::byte* mapped = nullptr;  // null where the host cannot write
    int64_t rest_bytes = 0;       // up to the end of the piece
  };
  // INTERNAL_ERROR for an address that this heap never gave.
  base::Result<Location> Find(const std::byte* address) const;

  // Bytes that wait for recordings to be done.
  int64_t waiting_bytes() const;
  // Hands on what no recording can name any more.
  void Sweep();

  // Pieces made so far, bytes of staging memory and allocations of the driver's that exist: for
  // tests.
  int64_t piece_count() const;
  int64_t staging_bytes() const { return staging_bytes_; }
  int64_t block_count() const;

 private:
  class Mapped;
  class Owned;
  class Imported;
  class Adopted;
  struct Entry {
    VkBuffer buffer = VK_NULL_HANDLE;
    int64_t offset_bytes = 0;
    std::byte* mapped = nullptr;
    int64_t size_bytes = 0;
  };
  struct ImportedBuffer {
    VkBuffer buffer = VK_NULL_HANDLE;
    int count = 0;  // of allocations
  };
  struct Waiting {
    uint64_t moment;
    std::unique_ptr<device::Allocation> piece;
  };

  // The blocks of a purpose: purposes of one type share them.
  Blocks& BlocksOf(Purpose purpose);
  base::Result<std::unique_ptr<device::Allocation>> NewPiece(Purpose purpose, int64_t size_bytes);
  void Release(std::unique_ptr<device::Allocation> piece);

  Runtime& runtime_;
  Blocks tensor_blocks_;
  Blocks number_blocks_;
  Blocks staging_blocks_;
  device::AddressMap<Entry> places_;
  std::mutex staging_mutex_;                // of who adds to it
  std::atomic<int64_t> staging_bytes_ = 0;  // in use or idle
  device::MemoryPool tensors_;
  device::MemoryPool numbers_;
  device::MemoryPool staging_;
  mutable std::mutex mutex_;
  std::deque<Waiting> waiting_;  // by moment
  int64_t waiting_bytes_ = 0;
  std::map<const std::byte*, ImportedBuffer> imported_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_HEAP_H_
