// SPDX-License-Identifier: Apache-2.0
//
// MemoryPool: what is given back is kept for who asks next, because drivers take long to make
// memory and may wait for all work before they give it up. For devices whose queues are one order
// (device.h): memory that commands still use is given to no command before them.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_MEMORY_POOL_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_MEMORY_POOL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::device {

class MemoryPool {
 public:
  // New memory of the driver's, which its end gives up. Any thread.
  using Make = std::function<base::Result<std::unique_ptr<Allocation>>(int64_t size_bytes)>;
  // What is idle has at most `most_idle_bytes` in all.
  explicit MemoryPool(Make make, int64_t most_idle_bytes = kMaxIdleBytes)
      : make_(std::move(make)), most_idle_bytes_(most_idle_bytes) {}

  // At least `size_bytes` >= 0, which end in the pool again; the pool outlives them. The status of
  // `make` if that fails even after all that is idle was given up. Any thread.
  base::Result<std::unique_ptr<Allocation>> Allocate(int64_t size_bytes);

  // Pieces made so far, and the bytes that are idle: for tests.
  int64_t made_count() const;
  int64_t idle_bytes() const;

 private:
  class Pooled;
  static constexpr int64_t kMaxIdleBytes = int64_t{1} << 30;

  base::Result<std::unique_ptr<Allocation>> New(int64_t size_bytes);
  void GiveBack(std::unique_ptr<Allocation> piece);

  const Make make_;
  const int64_t most_idle_bytes_;
  mutable std::mutex mutex_;
  std::multimap<int64_t, std::unique_ptr<Allocation>> idle_;  // by size
  int64_t idle_bytes_ = 0;
  int64_t made_count_ = 0;
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_MEMORY_POOL_H_
