// SPDX-License-Identifier: Apache-2.0
//
// The positions at which an operand is not zero: a count that is read when the program runs, then
// as many coordinates.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_INDEX_NON_ZERO_H_
#define ONNXIFI_BACKENDS_CORE_OPS_INDEX_NON_ZERO_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// int64 [rank, count] in row-major order; the count is a symbol of the program.
Operand NonZeroPositions(Lowering& lowering, const Operand& operand);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_INDEX_NON_ZERO_H_
