// SPDX-License-Identifier: Apache-2.0
//
// Dependences: which earlier nodes of a graph the next one follows, told from the memory that each
// uses. Nodes that need nothing of each other follow none of each other: branches run side by side.

#ifndef ONNXIFI_BACKENDS_CUDA_DEPENDENCES_H_
#define ONNXIFI_BACKENDS_CUDA_DEPENDENCES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "backends/core/device/memory_use.h"

namespace onnxifi::cuda {

class Dependences {
 public:
  // The next node, with all it uses: the numbers of those that it follows, ascending. What these
  // follow themselves is left out where one of them names it.
  std::vector<size_t> Add(std::span<const device::MemoryUse> uses);

 private:
  struct Past {
    device::MemoryUse use;
    size_t node = 0;
  };
  // Whoever would follow what a later node overwrote whole follows that node.
  std::vector<Past> reads_;
  std::vector<Past> writes_;
  std::vector<std::vector<size_t>> followed_;  // by node
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_DEPENDENCES_H_
