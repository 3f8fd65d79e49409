// SPDX-License-Identifier: Apache-2.0
//
// Pairwise coupling: probabilities of classes from those of each two of them.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_ML_PAIRWISE_COUPLING_H_
#define ONNXIFI_BACKENDS_CORE_OPS_ML_PAIRWISE_COUPLING_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// `wins` [N, classes, classes]: at (i, j) how probable class i is if it is i or j, with wins(i, j)
// + wins(j, i) = 1 and anything at (i, i). Gives the probabilities [N, classes] p that minimise the
// sum over pairs of (wins(j, i) p_i - wins(i, j) p_j)^2 with sum 1 (Wu, Lin and Weng 2004,
// algorithm 2), of the same floating-point type.
Result<Operand> CouplePairs(Lowering& lowering, const Operand& wins, int64_t classes);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_ML_PAIRWISE_COUPLING_H_
