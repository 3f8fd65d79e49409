// SPDX-License-Identifier: Apache-2.0
//
// AddressSpace: addresses for devices whose driver names memory by handles alone. Each piece of
// device memory gets a range of the process's own address space that is reserved and never backed,
// so that addresses are unique, offsets are plain pointer arithmetic, and a mistaken access by the
// host stops at once instead of going astray.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_ADDRESS_SPACE_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_ADDRESS_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "backends/core/base/result.h"

namespace onnxifi::device {

// A reserved range of addresses.
class AddressRange {
 public:
  // NO_SYSTEM_RESOURCES. size_bytes > 0.
  static base::Result<AddressRange> Reserve(int64_t size_bytes);
  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&& other) noexcept;
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange();

  std::byte* begin() const { return begin_; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  AddressRange(std::byte* begin, int64_t size_bytes) : begin_(begin), size_bytes_(size_bytes) {}

  std::byte* begin_ = nullptr;
  int64_t size_bytes_ = 0;
};

// From an address to the handle whose range it lies in. Any thread.
template <typename Handle>
class AddressMap {
 public:
  struct Location {
    Handle handle;
    int64_t offset_bytes;
  };

  void Insert(const AddressRange& range, Handle handle) {
    Insert(range.begin(), range.size_bytes(), handle);
  }
  void Erase(const AddressRange& range) { Erase(range.begin()); }
  // The same for addresses that the driver gives.
  void Insert(const std::byte* begin, int64_t size_bytes, Handle handle) {
    const std::unique_lock lock(mutex_);
    entries_[begin] = {size_bytes, handle};
  }
  void Erase(const std::byte* begin) {
    const std::unique_lock lock(mutex_);
    entries_.erase(begin);
  }
  // False for an address that lies in no range.
  bool Find(const std::byte* address, Location& place) const {
    const std::shared_lock lock(mutex_);
    auto after = entries_.upper_bound(address);
    if (after == entries_.begin()) return false;
    --after;
    const int64_t offset = address - after->first;
    if (offset >= after->second.size_bytes) return false;
    place = {after->second.handle, offset};
    return true;
  }

 private:
  struct Entry {
    int64_t size_bytes;
    Handle handle;
  };
  mutable std::shared_mutex mutex_;
  std::map<const std::byte*, Entry> entries_;
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_ADDRESS_SPACE_H_
