// SPDX-License-Identifier: Apache-2.0
//
// MemoryUse: device memory that a command uses. Two commands of which one writes what the other
// uses keep their order.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_MEMORY_USE_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_MEMORY_USE_H_

#include <cstddef>
#include <cstdint>
#include <limits>

namespace onnxifi::device {

struct MemoryUse {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool is_written = false;

  static MemoryUse Of(const std::byte* address, int64_t size_bytes, bool is_written) {
    const auto begin = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
    return {begin, begin + static_cast<uint64_t>(size_bytes), is_written};
  }
  // Of memory of unknown size.
  static MemoryUse From(const std::byte* address, bool is_written) {
    const auto begin = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
    return {begin, std::numeric_limits<uint64_t>::max(), is_written};
  }
  bool Overlaps(const MemoryUse& other) const { return begin < other.end && other.begin < end; }
  bool Contains(const MemoryUse& other) const { return begin <= other.begin && other.end <= end; }
  // Whether the order of the two matters.
  bool Conflicts(const MemoryUse& other) const {
    return (is_written || other.is_written) && Overlaps(other);
  }
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_MEMORY_USE_H_
