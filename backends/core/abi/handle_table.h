// SPDX-License-Identifier: Apache-2.0
//
// HandleTable<T>: the live objects of one kind and the opaque values that stand for them outside. A
// handle is looked up, never dereferenced, so any value a caller passes is safe to check.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_HANDLE_TABLE_H_
#define ONNXIFI_BACKENDS_CORE_ABI_HANDLE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

namespace onnxifi::abi {

enum class HandleKind : uintptr_t { kBackendId = 1, kBackend = 2, kGraph = 3, kEvent = 4 };

// Handles are numbered upwards and never used twice, so a stale handle cannot name a later object.
// They hold the kind and, on 64-bit systems, bits of this library's address: neither another kind's
// handle nor one that another ONNXIFI library of the process made is found here.
// Threads: every function may be called from any thread.
template <typename T>
class HandleTable {
 public:
  explicit HandleTable(HandleKind kind) : kind_(kind) {}

  void* Add(std::shared_ptr<T> object) {
    std::unique_lock lock(mutex_);
    const uintptr_t value =
        LibraryBits() | (++last_number_ << kKindBits) | static_cast<uintptr_t>(kind_);
    objects_.emplace(value, std::move(object));
    return reinterpret_cast<void*>(value);
  }

  // Shared, so that an object outlives calls that are under way when another thread releases it.
  std::shared_ptr<T> Find(const void* handle) const {
    std::shared_lock lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<uintptr_t>(handle));
    return found == objects_.end() ? nullptr : found->second;
  }

  // Finds an object and makes its handle invalid.
  std::shared_ptr<T> Take(const void* handle) {
    std::unique_lock lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<uintptr_t>(handle));
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  size_t size() const {
    std::shared_lock lock(mutex_);
    return objects_.size();
  }

 private:
  static constexpr int kKindBits = 3;

  static uintptr_t LibraryBits() {
    if constexpr (sizeof(uintptr_t) < 8) {
      return 0;
    } else {
      static const char anchor = 0;
      constexpr int kPageBits = 12;
      constexpr int kNumberBits = 40;
      return (reinterpret_cast<uintptr_t>(&anchor) >> kPageBits) << kNumberBits;
    }
  }

  const HandleKind kind_;
  mutable std::shared_mutex mutex_;
  uintptr_t last_number_ = 0;
  std::unordered_map<uintptr_t, std::shared_ptr<T>> objects_;
};

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_HANDLE_TABLE_H_
