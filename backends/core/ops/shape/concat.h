// SPDX-License-Identifier: Apache-2.0
//
// Concatenate: tensors one behind the other along an axis, for Concat and ConcatFromSequence; and
// the lengths of parts of an axis, for what takes it apart again.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SHAPE_CONCAT_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SHAPE_CONCAT_H_

#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// At least one tensor. MISMATCHING_DATATYPE or MISMATCHING_SHAPE for tensors that do not fit each
// other; 0 <= axis < rank of the first. A single tensor is returned as it is.
Result<Operand> Concatenate(Lowering& lowering, const std::vector<Operand>& parts, int axis);

// Numbers from a tensor as the lengths of all parts of an axis of `extent` elements: refused, now
// or when the program runs, where one is negative or their sum is another.
Result<Dims> AsPartLengths(Lowering& lowering, Dims numbers, Dim extent);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SHAPE_CONCAT_H_
