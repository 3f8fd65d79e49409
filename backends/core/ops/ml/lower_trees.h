// SPDX-License-Identifier: Apache-2.0
//
// LowerTrees: the steps of a tree ensemble: Maps that take all rows down all trees at once, some
// levels at a time, and a Reduce over the trees.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_ML_LOWER_TREES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_ML_LOWER_TREES_H_

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/ml/trees.h"

namespace onnxifi::ops {

// For each of `rows`, [N, C] of a float type, the weights of the leaves that it reaches, put
// together by target: [N, target_count] of that type. A target that no leaf gives anything is 0 or,
// for kMin and kMax, the largest or lowest number of `type`. INVALID_MODEL where a node is below
// itself, MISMATCHING_SHAPE for rows with too few features.
Result<Operand> LowerTrees(Lowering& lowering, const Operand& rows, const Trees& trees,
                           ElementType type);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_ML_LOWER_TREES_H_
