// SPDX-License-Identifier: Apache-2.0
//
// Recording: a command buffer that is submitted again and again, with a pool of its own, since it
// goes on any thread.

#ifndef ONNXIFI_BACKENDS_VULKAN_RECORDING_H_
#define ONNXIFI_BACKENDS_VULKAN_RECORDING_H_

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/core/device/recording_queue.h"
#include "backends/vulkan/hazards.h"
#include "backends/vulkan/runtime.h"

namespace onnxifi::vulkan {

class Recording final : public device::Recording {
 public:
  // Begun, not ended. `runtime` outlives it.
  static base::Result<std::shared_ptr<Recording>> Begin(const Runtime& runtime);

  VkCommandBuffer commands() const { return commands_; }
  // While it is recorded: notes what the next command uses. True if a barrier is due before.
  bool Add(std::span<const Use> uses) {
    uses_.insert(uses_.end(), uses.begin(), uses.end());
    return hazards_.Add(uses);
  }
  void Keep(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }
  // Whether any of its commands must not be done before `other`.
  bool Conflicts(const Use& other) const {
    return std::ranges::any_of(uses_, [&](const Use& use) { return use.Conflicts(other); });
  }

 private:
  Recording(Handle<VkCommandPool> pool, VkCommandBuffer commands)
      : pool_(std::move(pool)), commands_(commands) {}

  std::vector<std::shared_ptr<const void>> kept_;  // outlives the commands
  Handle<VkCommandPool> pool_;
  VkCommandBuffer commands_;
  Hazards hazards_;
  std::vector<Use> uses_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_RECORDING_H_
