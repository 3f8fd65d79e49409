// SPDX-License-Identifier: Apache-2.0
//
// ResultsKernel: what a step makes of its sums, by a kernel of ours behind a library that left them
// in working memory.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_RESULTS_KERNEL_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_RESULTS_KERNEL_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/memory_use.h"
#include "backends/cuda/libraries/candidate.h"

namespace onnxifi::cuda {

inline constexpr uint64_t kMaxWorkspaceBytes = uint64_t{64} << 20;

// The sums of a Contract, dense, as one more buffer behind those of its program; with the channels
// of a convolution innermost if `is_channels_last`.
device::BoundView SumsOf(const device::BoundStep& step, bool is_channels_last = false);

// The step's results, of a buffer that holds what SumsOf says. Resource codes.
base::Result<std::unique_ptr<device::BoundKernel>> BindResults(const BindRequest& request,
                                                               const device::BoundView& sums);

// Where a matrix or tensor lies.
struct Location {
  program::BufferId buffer = program::kNoBuffer;  // none: there is no such
  int64_t buffer_bytes = -1;
  int element_bytes = 0;

  static Location Of(const device::BoundView& view) {
    return {view.buffer, view.buffer_bytes, tensor::BitWidth(view.type) / 8};
  }
  bool is_there() const { return buffer != program::kNoBuffer; }
  std::byte* In(device::Addresses addresses, int64_t element) const {
    return addresses[static_cast<size_t>(buffer)] + element * element_bytes;
  }
  device::MemoryUse UseIn(device::Addresses addresses, bool is_written) const {
    const std::byte* const begin = addresses[static_cast<size_t>(buffer)];
    return buffer_bytes < 0 ? device::MemoryUse::From(begin, is_written)
                            : device::MemoryUse::Of(begin, buffer_bytes, is_written);
  }
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_RESULTS_KERNEL_H_
