// SPDX-License-Identifier: Apache-2.0
//
// Hazards: what commands read and wrote since the last barrier, so that a barrier stands only
// between commands of which one needs what the other wrote, or overwrites what it used.

#ifndef ONNXIFI_BACKENDS_VULKAN_HAZARDS_H_
#define ONNXIFI_BACKENDS_VULKAN_HAZARDS_H_

#include <span>
#include <vector>

#include "backends/core/device/memory_use.h"

namespace onnxifi::vulkan {

using Use = device::MemoryUse;

class Hazards {
 public:
  // Notes the uses of the next command. True if a barrier has to stand before it.
  bool Add(std::span<const Use> uses) {
    bool needs_barrier = false;
    for (const Use& use : uses) {
      for (const Use& before : uses_) {
        needs_barrier = needs_barrier || use.Conflicts(before);
      }
    }
    if (needs_barrier) uses_.clear();
    uses_.insert(uses_.end(), uses.begin(), uses.end());
    return needs_barrier;
  }
  void Clear() { uses_.clear(); }

 private:
  std::vector<Use> uses_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_HAZARDS_H_
