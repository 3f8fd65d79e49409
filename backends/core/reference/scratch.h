// SPDX-License-Identifier: Apache-2.0
//
// Scratch: working memory of a kernel for the time of one run. Guarded: turns what the standard
// library says when there is none into a Status, on whichever thread it happens.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_SCRATCH_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_SCRATCH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>

#include "backends/core/base/status.h"
#include "backends/core/device/parallel.h"

namespace onnxifi::reference {

// Bytes on a cache line boundary, not cleared. Throws std::bad_alloc, as new does.
class Scratch {
 public:
  static constexpr size_t kAlignment = 64;

  Scratch() = default;
  explicit Scratch(int64_t size_bytes)
      : data_(static_cast<std::byte*>(
            ::operator new (static_cast<size_t>(size_bytes), std::align_val_t{kAlignment}))) {}
  std::byte* data() const { return data_.get(); }

 private:
  struct Delete {
    void operator()(std::byte* data) const {
      ::operator delete (data, std::align_val_t{kAlignment});
    }
  };
  std::unique_ptr<std::byte, Delete> data_;
};

// Calls body(begin, end) over [0, count) through `parallel`; NO_SYSTEM_MEMORY if any call ran out
// of memory.
base::Status ForRange(device::Parallel& parallel, int64_t count, int64_t grain,
                      const std::function<void(int64_t begin, int64_t end)>& body);
// Calls `body`; NO_SYSTEM_MEMORY if it ran out of memory.
base::Status Guarded(const std::function<base::Status()>& body);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_SCRATCH_H_
