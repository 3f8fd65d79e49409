// SPDX-License-Identifier: Apache-2.0
//
// Hazards: what commands read and wrote since the last barrier, so that a barrier stands only
// between commands of which one needs what the other wrote, or overwrites what it used.

#ifndef ONNXIFI_BACKENDS_VULKAN_HAZARDS_H_
#define ONNXIFI_BACKENDS_VULKAN_HAZARDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace onnxifi::vulkan {

// Device memory that a command uses.
struct Use {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool is_written = false;

  static Use Of(const std::byte* address, int64_t size_bytes, bool is_written) {
    const auto begin = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
    return {begin, begin + static_cast<uint64_t>(size_bytes), is_written};
  }
  bool Overlaps(const Use& other) const { return begin < other.end && other.begin < end; }
  // Whether the order of the two matters.
  bool Conflicts(const Use& other) const {
    return (is_written || other.is_written) && Overlaps(other);
  }
};

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
