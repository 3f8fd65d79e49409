// SPDX-License-Identifier: Apache-2.0
//
// KernelSequence: the kernels that do one step, in order, each with the loops that it runs over.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_SEQUENCE_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_SEQUENCE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backends/core/codegen/loop_nest.h"

namespace onnxifi::codegen {

// Pieces of working memory that a kernel may have.
inline constexpr size_t kScratchPieces = 4;

// The kernels that do a step, one after the other, one for most steps. What one leaves for the next
// lies in working memory.
struct KernelSequence {
  struct Launch {
    int kernel = 0;              // number `kernel` of the step's kernels
    bool swaps_scratch = false;  // it sees the first two pieces the other way round
    LoopNest loops;
  };
  std::vector<Launch> launches;
  std::array<int64_t, kScratchPieces> scratch_bytes = {};
  std::string_view detail;  // of the step in a profile; lasts as long as the process
};
inline constexpr int kMaxKernels = 19;

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_SEQUENCE_H_
