// SPDX-License-Identifier: Apache-2.0
//
// Timestamps: times that the device writes between commands, in pools of queries that grow with
// their number.

#ifndef ONNXIFI_BACKENDS_VULKAN_TIMESTAMPS_H_
#define ONNXIFI_BACKENDS_VULKAN_TIMESTAMPS_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "backends/vulkan/runtime.h"

namespace onnxifi::vulkan {

// One thread at a time.
class Timestamps {
 public:
  // `runtime` outlives it.
  explicit Timestamps(Runtime& runtime) : runtime_(runtime) {}

  // Forgets all marks; their commands are done.
  void Clear() { count_ = 0; }
  // Has the time written at which all commands before are done. The number of the mark.
  base::Result<uint32_t> Mark(VkCommandBuffer commands);
  uint32_t count() const { return count_; }
  // When each mark was passed, by the device's clock, once the commands are done.
  base::Result<std::vector<std::chrono::nanoseconds>> Read() const;

 private:
  static constexpr uint32_t kPoolMarks = 512;

  Runtime& runtime_;
  std::vector<Handle<VkQueryPool>> pools_;
  uint32_t count_ = 0;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_TIMESTAMPS_H_
