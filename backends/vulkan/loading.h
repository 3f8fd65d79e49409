// SPDX-License-Identifier: Apache-2.0
//
// Loading: what is put into the device's order outside of any run, such as weights that are brought
// over and laid out. It is gathered in one stream, which is done, or in the device's queue, before
// the next run is submitted.

#ifndef ONNXIFI_BACKENDS_VULKAN_LOADING_H_
#define ONNXIFI_BACKENDS_VULKAN_LOADING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/vulkan/stream.h"

namespace onnxifi::vulkan {

// Any thread.
class Loading {
 public:
  // Both outlive it.
  Loading(Runtime& runtime, Heap& heap)
      : stream_(runtime, heap, /*before_submission=*/{}, Stream::Unsubmitted::kKept) {}

  // `owners` have what the dispatch uses: a kernel that lays weights out goes once it is started.
  base::Status Start(const Dispatch& dispatch, std::vector<std::shared_ptr<const void>> owners) {
    const std::lock_guard lock(mutex_);
    for (std::shared_ptr<const void>& owner : owners) stream_.Keep(std::move(owner));
    return stream_.Start(dispatch);
  }
  // `to` is new memory, which nothing that was recorded names.
  base::Status Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) {
    const std::lock_guard lock(mutex_);
    return stream_.Upload(from_host, to, size_bytes);
  }
  // Returns when all of it is done, or `until` it is submitted. Fails for good once any of it was
  // lost: nothing tells whose weights that were.
  base::Status Finish() { return Complete(Stream::Until::kDone); }
  base::Status Complete(Stream::Until until) {
    const std::lock_guard lock(mutex_);
    ONNXIFI_RETURN_IF_ERROR(until == Stream::Until::kDone ? stream_.Finish() : stream_.Submit());
    return stream_.lost();
  }

 private:
  std::mutex mutex_;
  Stream stream_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_LOADING_H_
