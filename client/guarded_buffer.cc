// SPDX-License-Identifier: Apache-2.0
//
// The fences are 64 bytes on either side.

#include "client/guarded_buffer.h"

#include <algorithm>
#include <cstdint>

namespace onnxifi::client {
namespace {

constexpr size_t kFenceBytes = 64;
constexpr size_t kAlignmentBytes = 64;
constexpr std::byte kFence{0xC5};
// As a float a large negative number, as an integer no likely result.
constexpr std::byte kUnwritten{0xDB};

}  // namespace

GuardedBuffer::GuardedBuffer(size_t size_bytes, size_t misalignment_bytes)
    : storage_(size_bytes + misalignment_bytes + 2 * kFenceBytes + kAlignmentBytes, kFence),
      size_bytes_(size_bytes) {
  const auto address = reinterpret_cast<uintptr_t>(storage_.data()) + kFenceBytes;
  const uintptr_t aligned = (address + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  data_ = storage_.data() + kFenceBytes + (aligned - address) + misalignment_bytes;
  Refill();
}

void GuardedBuffer::Refill() { std::fill_n(data_, size_bytes_, kUnwritten); }

bool GuardedBuffer::IsIntact() const {
  const auto is_fence = [](std::byte byte) { return byte == kFence; };
  const std::byte* const end = storage_.data() + storage_.size();
  return std::all_of(storage_.data(), static_cast<const std::byte*>(data_), is_fence) &&
         std::all_of(static_cast<const std::byte*>(data_) + size_bytes_, end, is_fence);
}

}  // namespace onnxifi::client
