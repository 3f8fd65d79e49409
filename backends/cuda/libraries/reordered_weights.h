// SPDX-License-Identifier: Apache-2.0
//
// ReorderedWeights: the constant weights of a convolution in an order that they do not have in
// memory, for all extents that its other operands may have.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_REORDERED_WEIGHTS_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_REORDERED_WEIGHTS_H_

#include <array>
#include <memory>
#include <mutex>

#include "backends/core/base/result.h"
#include "backends/cuda/libraries/candidate.h"
#include "backends/cuda/libraries/library_host.h"

namespace onnxifi::cuda {

// The constant that a view of the step is of; null if it is none.
std::byte* ConstantOf(const BindRequest& request, const device::BoundView& view);

class ReorderedWeights {
 public:
  // The weights of the step with their channels where they are asked for, copied by a kernel of
  // ours unless somebody has them. Any thread.
  base::Result<std::shared_ptr<device::Allocation>> Hold(const BindRequest& request,
                                                         const LibraryHost& host,
                                                         bool is_channels_last);

 private:
  struct Order {
    std::mutex mutex;
    std::weak_ptr<device::Allocation> held;  // by kernels; none once no kernel has them
  };
  std::array<Order, 2> orders_;  // with channels first, and last
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_REORDERED_WEIGHTS_H_
