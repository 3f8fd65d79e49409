// SPDX-License-Identifier: Apache-2.0
//
// AddressSpace: reservations are private mappings without access.

#include "backends/core/device/address_space.h"

#include <sys/mman.h>

#include <string>
#include <utility>

namespace onnxifi::device {

base::Result<AddressRange> AddressRange::Reserve(int64_t size_bytes) {
  void* begin = mmap(nullptr, static_cast<size_t>(size_bytes), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) {
    return base::Status(base::Code::kNoSystemResources,
                        "The system has no " + std::to_string(size_bytes) + " addresses left.");
  }
  return AddressRange(static_cast<std::byte*>(begin), size_bytes);
}

AddressRange::AddressRange(AddressRange&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

AddressRange::~AddressRange() {
  if (begin_ != nullptr) munmap(begin_, static_cast<size_t>(size_bytes_));
}

}  // namespace onnxifi::device
