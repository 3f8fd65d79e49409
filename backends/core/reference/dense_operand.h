// SPDX-License-Identifier: Apache-2.0
//
// DenseOperand: an operand of Contract or Window as its inner loops want it: elements of one
// arithmetic type at an address plus strides. Borrowed where the buffer already has that form,
// otherwise evaluated into scratch memory.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_DENSE_OPERAND_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_DENSE_OPERAND_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/device/parallel.h"
#include "backends/core/reference/expression.h"

namespace onnxifi::reference {

struct DenseOperand {
  const std::byte* data = nullptr;  // of coordinate 0
  tensor::Extents strides;          // in elements
  Scratch memory;                   // owns `data` when it was evaluated
};

// Elements `expression`'s only root takes over `extents`. `direct_read` >= 0: the root is that read
// and nothing else. Axes in which no element differs are evaluated once and get stride 0.
// NO_SYSTEM_MEMORY.
base::Result<DenseOperand> MakeDense(const Expression& expression,
                                     std::span<const int64_t> bound_dims,
                                     std::span<const device::BoundView> reads, int direct_read,
                                     const tensor::Extents& extents, device::Addresses addresses,
                                     device::Parallel& parallel);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_DENSE_OPERAND_H_
