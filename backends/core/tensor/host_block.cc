// SPDX-License-Identifier: Apache-2.0
//
// HostBlock: small blocks from the C++ heap, those of middle size from the pool, large ones mapped.

#include "backends/core/tensor/host_block.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

#include "backends/core/tensor/block_pool.h"

namespace onnxifi::tensor {
namespace {

// AddressSanitizer watches the bounds of blocks from the heap only.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
constexpr bool kMapsLargeBlocks = true;
#else
constexpr bool kMapsLargeBlocks = false;
#endif

enum class Source : uint8_t { kHeap, kPool, kSystem };

constexpr Source SourceOf(size_t size_bytes) {
  // The heap reuses smaller ones, and loses less to holes.
  constexpr size_t kMiddleBlock = size_t{1} << 14;
  if (!kMapsLargeBlocks || size_bytes < kMiddleBlock) return Source::kHeap;
  return size_bytes < kHugePageBytes ? Source::kPool : Source::kSystem;
}

constexpr size_t AlignmentOf(size_t size_bytes) {
  return size_bytes >= kHugePageBytes ? kHugePageBytes : kBlockAlignment;
}
static_assert(kHugePageBytes == BlockPool::kMaxBlockBytes &&
              kBlockAlignment == BlockPool::kAlignment);

#if defined(__linux__)
size_t PageBytes() {
  static const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page_bytes;
}

size_t RoundUp(size_t size_bytes, size_t unit) { return (size_bytes + unit - 1) / unit * unit; }

// Whole pages; what lies before and behind the aligned part goes back at once.
std::byte* Map(size_t size_bytes) {
  const size_t page = PageBytes();
  const size_t length = RoundUp(size_bytes, page);
  const size_t slack = kHugePageBytes - page;
  void* base = mmap(nullptr, length + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    /*fd=*/-1, /*offset=*/0);
  if (base == MAP_FAILED) return nullptr;
  auto* first = static_cast<std::byte*>(base);
  const size_t before =
      (kHugePageBytes - reinterpret_cast<uintptr_t>(first) % kHugePageBytes) % kHugePageBytes;
  if (before > 0) munmap(first, before);
  if (slack > before) munmap(first + before + length, slack - before);
  // A wish: where huge pages are switched off, nothing changes.
  (void)madvise(first + before, size_bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
  return first + before;
}

void Unmap(std::byte* data, size_t size_bytes) { munmap(data, RoundUp(size_bytes, PageBytes())); }
#else
std::byte* Map(size_t) { return nullptr; }
void Unmap(std::byte*, size_t) {}
#endif

}  // namespace

void HostBlockDeleter::operator()(std::byte* data) const {
  switch (SourceOf(size_bytes)) {
    case Source::kHeap:
      ::operator delete (data, std::align_val_t{AlignmentOf(size_bytes)});
      break;
    case Source::kPool:
      SharedBlockPool().Release(data);
      break;
    case Source::kSystem:
      Unmap(data, size_bytes);
  }
}

HostBlock AllocateHostBlock(size_t size_bytes, Fill fill) {
  // Room for alignment and whole pages, and no more than a pointer can span.
  if (size_bytes >
      static_cast<size_t>(std::numeric_limits<ptrdiff_t>::max()) - 2 * kHugePageBytes) {
    return nullptr;
  }
  std::byte* data = nullptr;
  const Source source = SourceOf(size_bytes);
  switch (source) {
    case Source::kHeap:
      data = static_cast<std::byte*>(::operator new (std::max<size_t>(1, size_bytes),
                                                     std::align_val_t{AlignmentOf(size_bytes)},
                                                     std::nothrow));
      break;
    case Source::kPool:
      data = SharedBlockPool().Allocate(size_bytes);
      break;
    case Source::kSystem:
      data = Map(size_bytes);  // zeros
  }
  if (data != nullptr && fill == Fill::kZeros && source != Source::kSystem) {
    std::memset(data, 0, size_bytes);
  }
  return HostBlock(data, HostBlockDeleter{size_bytes});
}

}  // namespace onnxifi::tensor
