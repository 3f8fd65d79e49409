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

Result<int> IndexDepth(Lowering& lowering, const Operand& indices, int64_t limit) {
  const Dim depth = indices.shape.back();
  if (!depth.is_constant()) {
    return lowering.UnsupportedShape("The last extent of the indices (" + depth.ToString() +
                                     ") is not known before the graph runs.");
  }
  if (depth.constant() < 1 || depth.constant() > limit) {
    return lowering.InvalidModel("The last extent of the indices (" + depth.ToString() +
                                 ") is outside [1, " + std::to_string(limit) + "].");
  }
  return static_cast<int>(depth.constant());
}

Operand IndexColumn(const Operand& indices, int column, int trailing) {
  const int last = indices.rank() - 1;
  Operand result = program::RemoveAxis(program::Slice(indices, last, column, 1, 1), last);
  for (int k = 0; k < trailing; ++k) result = program::InsertAxis(result, result.rank());
  return result;
}

}  // namespace onnxifi::ops
