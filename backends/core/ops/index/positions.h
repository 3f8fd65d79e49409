// SPDX-License-Identifier: Apache-2.0
//
// Positions that are data: what the gather and scatter families share.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_INDEX_POSITIONS_H_
#define ONNXIFI_BACKENDS_CORE_OPS_INDEX_POSITIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// `index` of any integer type as int64, where negative positions count from the end of `extent`.
Expr WrapNegative(StepBuilder& step, Expr index, Dim extent);

// Reads of one operand at explicit coordinates, of which only those along `checked` may be out of
// range; there it reads 0. All share one read of the step.
class GuardedSource {
 public:
  GuardedSource(StepBuilder& step, const Operand& operand, const std::vector<int>& checked);
  Expr At(const std::vector<Expr>& coordinates) const;

 private:
  program::ExprPool& exprs_;
  ElementType type_;
  int read_;
};

// A single such read.
Expr ReadGuarded(StepBuilder& step, const Operand& operand, const std::vector<Expr>& coordinates,
                 const std::vector<int>& checked);

// The last extent of `indices`: how many axes one index tuple addresses. Where it is a symbol, it
// is `by_ranks`, what the ranks of other tensors leave for it, and a run with another extent is
// refused. UNSUPPORTED_SHAPE where neither is known, INVALID_MODEL outside [1, limit].
Result<int> IndexDepth(Lowering& lowering, const Operand& indices, int64_t limit,
                       std::optional<int64_t> by_ranks);

// Element `column` of each index tuple, with `trailing` axes of extent 1 after the tuples' axes.
Operand IndexColumn(const Operand& indices, int column, int trailing);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_INDEX_POSITIONS_H_
