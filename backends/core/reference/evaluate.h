// SPDX-License-Identifier: Apache-2.0
//
// Evaluate: runs a whole program on the reference at once: how constants are folded.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_EVALUATE_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_EVALUATE_H_

#include <span>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/program/program.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::reference {

// The outputs of `program` for `inputs`, in the order of its ports. The program has no symbols, and
// no steps or values that live on the host (UNSUPPORTED_OPERATOR). MISMATCHING_SHAPE or
// MISMATCHING_DATATYPE for an input of other extents or type; NO_SYSTEM_MEMORY. Outputs own their
// data or share a constant's or an input's. Threads: any.
base::Result<std::vector<tensor::Tensor>> Evaluate(const program::Program& program,
                                                   std::span<const tensor::Tensor> inputs);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_EVALUATE_H_
