// SPDX-License-Identifier: Apache-2.0
//
// Positions that are data: wrapping, guarding, and the layout of index tuples.

#include "backends/core/ops/index/positions.h"

namespace onnxifi::ops {

Expr WrapNegative(StepBuilder& step, Expr index, Dim extent) {
  Expr position = Cast(index, ElementType::kInt64);
  if (tensor::IsUnsigned(index.type())) return position;
  return Select(position < step.Extent(0), position + step.Extent(extent), position);
}

GuardedSource::GuardedSource(StepBuilder& step, const Operand& operand,
                             const std::vector<int>& checked)
    : exprs_(step.exprs()), type_(StoredType(operand.type())) {
  View view = operand.view;
  for (int axis : checked) {
    program::Guard guard{Dims(operand.rank(), Dim(0)), 0, operand.shape[axis]};
    guard.coefficients[axis] = 1;
    view.guards.push_back(std::move(guard));
  }
  read_ = step.AddRead(std::move(view));
}

Expr GuardedSource::At(const std::vector<Expr>& coordinates) const {
  return LoadAt(exprs_, type_, read_, coordinates);
}

Expr ReadGuarded(StepBuilder& step, const Operand& operand, const std::vector<Expr>& coordinates,
                 const std::vector<int>& checked) {
  return GuardedSource(step, operand, checked).At(coordinates);
}

Result<int> IndexDepth(Lowering& lowering, const Operand& indices, int64_t limit,
                       std::optional<int64_t> by_ranks) {
  const Dim extent = indices.shape.back();
  if (!extent.is_constant() && !by_ranks) {
    return lowering.UnsupportedShape("The last extent of the indices (" + extent.ToString() +
                                     ") is not known before the graph runs, and no rank of the "
                                     "output is declared, which would tell it.");
  }
  const int64_t depth = extent.is_constant() ? extent.constant() : *by_ranks;
  if (depth < 1 || depth > limit) {
    return lowering.InvalidModel("The last extent of the indices (" + std::to_string(depth) +
                                 ") is outside [1, " + std::to_string(limit) + "].");
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(Equal(extent, Dim(depth)), Code::kMismatchingShape,
                                           "The last extent of the indices (" + extent.ToString() +
                                               ") is not the " + std::to_string(depth) +
                                               " that the ranks of the other tensors leave for it.",
                                           {extent}));
  return static_cast<int>(depth);
}

Operand IndexColumn(const Operand& indices, int column, int trailing) {
  const int last = indices.rank() - 1;
  Operand result = program::RemoveAxis(program::Slice(indices, last, column, 1, 1), last);
  for (int k = 0; k < trailing; ++k) result = program::InsertAxis(result, result.rank());
  return result;
}

}  // namespace onnxifi::ops
