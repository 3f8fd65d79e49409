// SPDX-License-Identifier: Apache-2.0
//
// AccumulatorsBelow: the sums of products in expressions, which come to the tile engine from
// outside.

#ifndef ONNXIFI_BACKENDS_CPU_ATTENTION_ACCUMULATORS_H_
#define ONNXIFI_BACKENDS_CPU_ATTENTION_ACCUMULATORS_H_

#include <span>
#include <vector>

#include "backends/core/program/expr.h"

namespace onnxifi::attention {

inline std::vector<program::ExprId> AccumulatorsBelow(const program::ExprPool& pool,
                                                      std::span<const program::ExprId> roots) {
  std::vector<program::ExprId> accumulators;
  for (const program::ExprId id : program::Reachable(pool, roots)) {
    if (pool[id].op == program::ExprOp::kAccumulator) accumulators.push_back(id);
  }
  return accumulators;
}

}  // namespace onnxifi::attention

#endif  // ONNXIFI_BACKENDS_CPU_ATTENTION_ACCUMULATORS_H_
