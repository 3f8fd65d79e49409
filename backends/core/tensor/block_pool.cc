// SPDX-License-Identifier: Apache-2.0
//
// BlockPool: one list of free ranges per chunk; chunks and pages come from mmap and madvise.

#include "backends/core/tensor/block_pool.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cassert>
#include <cstdint>
#include <iterator>
#include <new>
#include <utility>

namespace onnxifi::tensor {
namespace {

constexpr size_t RoundUp(size_t size_bytes, size_t unit) {
  return (size_bytes + unit - 1) / unit * unit;
}

// What a block of this size takes.
size_t Taken(size_t size_bytes) {
  return RoundUp(size_bytes == 0 ? 1 : size_bytes, BlockPool::kAlignment);
}

#if defined(__linux__)
// At a multiple of kPageBytes; what lies before and behind goes back at once.
std::byte* MapAligned(size_t size_bytes) {
  constexpr size_t kPage = BlockPool::kPageBytes;
  void* const base = mmap(nullptr, size_bytes + kPage, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
  if (base == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(base);
  const size_t before = (kPage - reinterpret_cast<uintptr_t>(first) % kPage) % kPage;
  if (before > 0) munmap(first, before);
  if (before < kPage) munmap(first + before + size_bytes, kPage - before);
  return first + before;
}

// Wishes: where they fail, nothing but memory is lost.
void WantHugePages(std::byte* data, size_t size_bytes) {
  (void)madvise(data, size_bytes, MADV_HUGEPAGE);
}
void GiveBack(std::byte* data, size_t size_bytes) {
  (void)madvise(data, size_bytes, MADV_DONTNEED);
}

void UnmapRange(std::byte* data, size_t size_bytes) { munmap(data, size_bytes); }
#else
std::byte* MapAligned(size_t) { return nullptr; }
void WantHugePages(std::byte*, size_t) {}
void GiveBack(std::byte*, size_t) {}
void UnmapRange(std::byte*, size_t) {}
#endif

}  // namespace

BlockPool::~BlockPool() {
  while (!chunks_.empty()) Unmap(chunks_.begin());
}

std::byte* BlockPool::TakeFrom(std::byte* base, Chunk& chunk, size_t size_bytes) {
  if (chunk.size_bytes - chunk.used_bytes < size_bytes) return nullptr;
  for (auto range = chunk.free.begin(); range != chunk.free.end(); ++range) {
    const auto [offset, free_bytes] = *range;
    if (free_bytes < size_bytes) continue;
    if (free_bytes > size_bytes) chunk.free.emplace(offset + size_bytes, free_bytes - size_bytes);
    auto node = chunk.free.extract(range);
    node.mapped() = size_bytes;
    chunk.blocks.insert(std::move(node));
    chunk.used_bytes += size_bytes;
    const size_t last = offset + size_bytes - 1;
    for (size_t page = offset / kPageBytes; page <= last / kPageBytes; ++page) {
      chunk.touched.set(page);
    }
    return base + offset;
  }
  return nullptr;
}

BlockPool::Chunks::iterator BlockPool::AddChunk() {
  const bool is_first = chunks_.empty();
  const size_t size_bytes = is_first ? kFirstChunkBytes : kChunkBytes;
  Chunk chunk{.size_bytes = size_bytes};
  chunk.free.emplace(0, size_bytes);
  std::byte* const base = MapAligned(size_bytes);
  if (base == nullptr) return chunks_.end();
  if (!is_first) WantHugePages(base, size_bytes);
  try {
    return chunks_.emplace(base, std::move(chunk)).first;
  } catch (const std::bad_alloc&) {
    UnmapRange(base, size_bytes);
    throw;
  }
}

std::byte* BlockPool::Allocate(size_t size_bytes) {
  assert(size_bytes <= kMaxBlockBytes);
  const size_t taken = Taken(size_bytes);
  const std::lock_guard lock(mutex_);
  try {
    for (auto& [base, chunk] : chunks_) {
      if (std::byte* const data = TakeFrom(base, chunk, taken); data != nullptr) return data;
    }
    const auto added = AddChunk();
    return added == chunks_.end() ? nullptr : TakeFrom(added->first, added->second, taken);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void BlockPool::Release(std::byte* data) {
  const std::lock_guard lock(mutex_);
  const auto found = std::prev(chunks_.upper_bound(data));
  auto& [base, chunk] = *found;
  auto range = chunk.blocks.extract(static_cast<size_t>(data - base));
  assert(!range.empty());
  chunk.used_bytes -= range.mapped();
  // One range with its neighbours.
  const auto next = chunk.free.lower_bound(range.key());
  if (next != chunk.free.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == range.key()) {
      const size_t size_bytes = previous->second + range.mapped();
      range = chunk.free.extract(previous);
      range.mapped() = size_bytes;
    }
  }
  if (next != chunk.free.end() && range.key() + range.mapped() == next->first) {
    range.mapped() += next->second;
    chunk.free.erase(next);
  }
  const size_t free_bytes = range.mapped();
  chunk.free.insert(std::move(range));
  if (free_bytes >= kPageBytes) Trim(base, chunk);
  // Address space costs nothing, but a chunk that nobody needs is looked through at every call.
  if (chunk.used_bytes == 0 && chunk.touched.none()) Unmap(found);
}

void BlockPool::Trim(std::byte* base, Chunk& chunk) {
  size_t idle_bytes = IdleBytes();
  for (const auto& [offset, free_bytes] : chunk.free) {
    const size_t first = RoundUp(offset, kPageBytes) / kPageBytes;
    const size_t end = (offset + free_bytes) / kPageBytes;
    for (size_t page = first; page < end && idle_bytes > kMaxIdleBytes; ++page) {
      if (!chunk.touched.test(page)) continue;
      chunk.touched.reset(page);
      GiveBack(base + page * kPageBytes, kPageBytes);
      idle_bytes -= kPageBytes;
    }
  }
}

size_t BlockPool::IdleBytes() const {
  size_t idle_bytes = 0;
  for (const auto& [base, chunk] : chunks_) {
    for (const auto& [offset, free_bytes] : chunk.free) {
      const size_t end = (offset + free_bytes) / kPageBytes;
      for (size_t page = RoundUp(offset, kPageBytes) / kPageBytes; page < end; ++page) {
        idle_bytes += chunk.touched.test(page) ? kPageBytes : 0;
      }
    }
  }
  return idle_bytes;
}

void BlockPool::Unmap(Chunks::iterator chunk) {
  UnmapRange(chunk->first, chunk->second.size_bytes);
  chunks_.erase(chunk);
}

void BlockPool::ReleaseIdle() {
  const std::lock_guard lock(mutex_);
  for (auto chunk = chunks_.begin(); chunk != chunks_.end();) {
    const auto next = std::next(chunk);
    if (chunk->second.used_bytes == 0) Unmap(chunk);
    chunk = next;
  }
}

size_t BlockPool::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const auto& [base, chunk] : chunks_) bytes += chunk.size_bytes;
  return bytes;
}

size_t BlockPool::idle_bytes() const {
  const std::lock_guard lock(mutex_);
  return IdleBytes();
}

BlockPool& SharedBlockPool() {
  // Never destroyed, as blocks may be released after this library's other objects are; what is idle
  // by then goes with the library.
  alignas(BlockPool) static std::byte storage[sizeof(BlockPool)];
  static BlockPool* const pool = new (storage) BlockPool;
  static const struct Closer {
    ~Closer() { pool->ReleaseIdle(); }
  } closer;
  return *pool;
}

}  // namespace onnxifi::tensor
