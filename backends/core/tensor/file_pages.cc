// SPDX-License-Identifier: Apache-2.0
//
// FilePages: whole pages by madvise.

#include "backends/core/tensor/file_pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace onnxifi::tensor {

#if defined(__linux__)
void GiveBackPages(std::span<const std::byte> bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin >= end) return;
  const auto before = static_cast<size_t>(begin - reinterpret_cast<uintptr_t>(bytes.data()));
  // A wish: where it fails, the pages stay.
  (void)madvise(const_cast<std::byte*>(bytes.data() + before), end - begin, MADV_DONTNEED);
}
#else
void GiveBackPages(std::span<const std::byte>) {}
#endif

void CopyAndGiveBack(std::byte* target, std::span<const std::byte> source) {
  // Large beside a page, whose remains at both ends of a piece stay in memory, and small beside the
  // weights of a model that is worth the trouble.
  constexpr size_t kPieceBytes = size_t{4} << 20;
  for (size_t done = 0; done < source.size();) {
    const auto piece = source.subspan(done, std::min(kPieceBytes, source.size() - done));
    std::memcpy(target + done, piece.data(), piece.size());
    GiveBackPages(piece);
    done += piece.size();
  }
}

}  // namespace onnxifi::tensor
