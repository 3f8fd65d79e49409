// SPDX-License-Identifier: Apache-2.0
//
// Dependences: a write is behind what was read and written there before, a read behind what was
// written.

#include "backends/cuda/dependences.h"

#include <algorithm>
#include <utility>

namespace onnxifi::cuda {

using device::MemoryUse;

std::vector<size_t> Dependences::Add(std::span<const MemoryUse> uses) {
  std::vector<size_t> earlier;
  const auto follow = [&](const MemoryUse& use, const std::vector<Past>& of) {
    for (const Past& past : of) {
      if (use.Overlaps(past.use)) earlier.push_back(past.node);
    }
  };
  for (const MemoryUse& use : uses) {
    follow(use, writes_);
    if (use.is_written) follow(use, reads_);
  }
  std::ranges::sort(earlier);
  earlier.erase(std::ranges::unique(earlier).begin(), earlier.end());
  std::vector<size_t> needed = earlier;
  for (const size_t node : earlier) {
    std::erase_if(
        needed, [&](size_t before) { return std::ranges::binary_search(followed_[node], before); });
  }

  for (const MemoryUse& use : uses) {
    if (!use.is_written) continue;
    const auto is_overwritten = [&](const Past& past) { return use.Contains(past.use); };
    std::erase_if(reads_, is_overwritten);
    std::erase_if(writes_, is_overwritten);
  }
  const size_t node = followed_.size();
  for (const MemoryUse& use : uses) (use.is_written ? writes_ : reads_).push_back({use, node});
  followed_.push_back(needed);
  return needed;
}

}  // namespace onnxifi::cuda
