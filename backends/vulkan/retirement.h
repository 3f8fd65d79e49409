// SPDX-License-Identifier: Apache-2.0
//
// Retirement: when memory that is given back may have another owner. Runs record their commands by
// themselves and submit them later: an earlier recording may still name memory that a later one is
// already given. So memory waits until every recording that was open when it was given back is
// done.

#ifndef ONNXIFI_BACKENDS_VULKAN_RETIREMENT_H_
#define ONNXIFI_BACKENDS_VULKAN_RETIREMENT_H_

#include <cstdint>
#include <mutex>
#include <set>

namespace onnxifi::vulkan {

// Any thread.
class Retirement {
 public:
  // A recording begins. Its number, which End is called with once the device has done it.
  uint64_t Begin() {
    const std::lock_guard lock(mutex_);
    open_.insert(++newest_);
    return newest_;
  }
  void End(uint64_t recording) {
    const std::lock_guard lock(mutex_);
    open_.erase(recording);
  }
  // What IsOver is asked about later: whether all recordings that are open now are done.
  uint64_t Now() const {
    const std::lock_guard lock(mutex_);
    return newest_;
  }
  bool IsOver(uint64_t moment) const {
    const std::lock_guard lock(mutex_);
    return open_.empty() || *open_.begin() > moment;
  }

 private:
  mutable std::mutex mutex_;
  uint64_t newest_ = 0;
  std::set<uint64_t> open_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_RETIREMENT_H_
