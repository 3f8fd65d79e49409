// SPDX-License-Identifier: Apache-2.0
//
// Elimination: the pivot of a column, and the columns one after the other.

#include "backends/core/ops/reduce/elimination.h"

#include <utility>

#include "backends/core/ops/control/bodies.h"
#include "backends/core/program/arg_extreme.h"

namespace onnxifi::ops {

Result<Operand> SquareMatrices(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  Operand square = lowering.In(0);
  if (!tensor::IsFloat(square.type())) return lowering.UnsupportedType(0);
  if (square.rank() < 2) {
    return lowering.InvalidModel("The input has " + std::to_string(square.rank()) +
                                 " axes and needs at least 2.");
  }
  Dim& rows = *(square.shape.end() - 2);
  Dim& columns = square.shape.back();
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(rows, columns, "The extents of the matrices"));
  if (!columns.is_constant()) columns = rows;
  rows = columns;
  return square;
}

Expr Matrices::Read(StepBuilder& step, Expr row, Expr column) const {
  std::vector<Expr> at = Batch(step);
  at.push_back(row);
  at.push_back(column);
  return step.ReadAtUnchecked(operand_, at);
}

Expr Matrices::ReadPerMatrix(StepBuilder& step, const Operand& operand) const {
  return step.ReadAtUnchecked(operand, Batch(step));
}

std::vector<Expr> Matrices::Batch(StepBuilder& step) const {
  std::vector<Expr> at;
  for (int axis = 0; axis < row_axis(); ++axis) at.push_back(step.Coordinate(axis));
  return at;
}

Operand MakeUnusedRows(Lowering& lowering, const Matrices& matrices) {
  StepBuilder none(lowering, matrices.rows());
  return none.WriteMap(program::IntConstant(none.exprs(), ElementType::kInt32, 0),
                       ElementType::kInt32);
}

Operand FindPivot(Lowering& lowering, const Matrices& matrices, const Operand& is_used,
                  const Column& column) {
  StepBuilder step(lowering, matrices.rows());
  const Expr row = step.Coordinate(matrices.row_axis());
  const Expr element = matrices.Read(step, row, column(step));
  const Expr used = step.Read(is_used);
  const Expr size = Select(used == Like(used, 1), Like(element, -1), Unary(ExprOp::kAbs, element));
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.roots = {AddArgExtreme(reduce.reduction, size, row, {}).id()};
  Operand pivot = lowering.Temporary(ElementType::kInt64, matrices.batch());
  step.Finish(std::move(reduce), {pivot.view});
  return pivot;
}

Operand MarkUsed(Lowering& lowering, const Matrices& matrices, const Operand& is_used,
                 const Operand& pivot) {
  StepBuilder map(lowering, matrices.rows());
  const Expr row = map.Coordinate(matrices.row_axis());
  const Expr used = map.Read(is_used);
  return map.WriteMap(Select(row == matrices.ReadPerMatrix(map, pivot), Like(used, 1), used),
                      ElementType::kInt32);
}

Result<std::vector<Operand>> EliminateColumns(Lowering& lowering, const Matrices& matrices,
                                              int64_t max_unrolled, std::vector<Operand> carried,
                                              const EliminateColumn& eliminate) {
  const Dim order = matrices.order();
  if (order.is_constant() && order.constant() <= max_unrolled) {
    for (int64_t number = 0; number < order.constant(); ++number) {
      carried = eliminate(lowering, carried, [number](StepBuilder& step) {
        return program::IntConstant(step.exprs(), ElementType::kInt64, number);
      });
    }
    return carried;
  }
  // None where there is no matrix: an order alone may be any number.
  Dim count = 1;
  for (const Dim& extent : matrices.batch()) count = count * extent;
  StepBuilder trips(lowering, {});
  const Operand columns = trips.WriteMap(trips.Extent(order * Min(count, 1)), ElementType::kInt64);
  // (column, condition, carried...) -> the condition and what is carried on
  return MakeLoop(lowering, columns, carried, /*captures=*/{}, [&](Lowering& body) -> Status {
    std::vector<Operand> entering;
    for (int k = 2; k < body.input_count(); ++k) entering.push_back(body.In(k));
    const std::vector<Operand> leaving =
        eliminate(body, entering, [&body](StepBuilder& step) { return step.Read(body.In(0)); });
    body.Set(0, body.In(1));
    for (size_t k = 0; k < leaving.size(); ++k) body.Set(static_cast<int>(k) + 1, leaving[k]);
    return base::Ok();
  });
}

}  // namespace onnxifi::ops
