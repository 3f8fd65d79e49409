// SPDX-License-Identifier: Apache-2.0
//
// Operation: one node of a scalar expression on a block of lanes, as a plain loop over columns. The
// definition, for every device, of what each ExprOp computes.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_OPERATION_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_OPERATION_H_

#include <cstddef>
#include <cstdint>

#include "backends/core/program/expr.h"

namespace onnxifi::reference {

struct Operands {
  std::byte* result;
  const std::byte* inputs[3];
  int64_t lanes;
  uint64_t payload;               // the node's
  tensor::ElementType type;       // of the node
  tensor::ElementType from_type;  // of its first operand
};

// Never has undefined behaviour, whatever the lanes hold. The result overlaps no input.
using Operation = void (*)(const Operands& operands);

// The loop for a node that is not a leaf, or null if there is none for its types.
Operation FindOperation(program::ExprOp op, tensor::ElementType type,
                        tensor::ElementType from_type);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_OPERATION_H_
