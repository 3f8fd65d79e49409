// SPDX-License-Identifier: Apache-2.0
//
// Concatenate: tensors one behind the other along an axis, for Concat and ConcatFromSequence.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SHAPE_CONCAT_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SHAPE_CONCAT_H_

#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// At least one tensor. MISMATCHING_DATATYPE or MISMATCHING_SHAPE for tensors that do not fit each
// other; 0 <= axis < rank of the first. A single tensor is returned as it is.
Result<Operand> Concatenate(Lowering& lowering, const std::vector<Operand>& parts, int axis);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SHAPE_CONCAT_H_
