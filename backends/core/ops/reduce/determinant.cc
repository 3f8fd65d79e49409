// SPDX-License-Identifier: Apache-2.0
//
// Det: the product of the pivots of an elimination, with a sign for each that was not the first row
// that is left.

#include <utility>
#include <vector>

#include "backends/core/ops/reduce/elimination.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// Steps are emitted for each column up to this order.
constexpr int64_t kMaxUnrolled = 64;

// What a column leaves to the next one.
enum Carried { kMatrix, kDeterminant, kIsUsed };

// The determinant by the pivot, with the sign of its place among the rows that are left.
Operand Multiply(Lowering& lowering, const Matrices& matrices, const std::vector<Operand>& carried,
                 const Operand& pivot, const Column& column) {
  StepBuilder step(lowering, matrices.rows());
  const Expr row = step.Coordinate(matrices.row_axis());
  const Expr used = step.Read(carried[kIsUsed]);
  const Expr is_before = row < matrices.ReadPerMatrix(step, pivot) && used == Like(used, 0);
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.roots = {AddSum(reduce.reduction, Select(is_before, Like(used, 1), Like(used, 0))).id()};
  const Operand count = lowering.Temporary(ElementType::kInt32, matrices.batch());
  step.Finish(std::move(reduce), {count.view});

  StepBuilder map(lowering, matrices.batch());
  const Expr before = map.Read(count);
  const Expr value = matrices.Read(map, map.Read(pivot), column(map));
  const Expr is_odd = Binary(ExprOp::kMod, before, Like(before, 2)) == Like(before, 1);
  return map.WriteMap(map.Read(carried[kDeterminant]) * Select(is_odd, -value, value),
                      matrices.operand().type());
}

// The pivot's row from all others, so that the column becomes zeros. What is subtracted is a
// product of two vectors.
Operand Subtract(Lowering& lowering, const Matrices& matrices, const Operand& pivot,
                 const Column& column) {
  const ElementType type = matrices.operand().type();
  const int row_axis = matrices.row_axis();
  StepBuilder rows(lowering, matrices.rows());
  const Expr value = matrices.Read(rows, matrices.ReadPerMatrix(rows, pivot), column(rows));
  const Expr zero = Like(value, 0);
  // Without a pivot the determinant is zero already.
  const Expr factor = Select(value == zero, zero,
                             matrices.Read(rows, rows.Coordinate(row_axis), column(rows)) / value);
  const Operand factors = rows.WriteMap(factor, type);

  StepBuilder columns(lowering, matrices.rows());  // the matrices are square
  const Expr element =
      matrices.Read(columns, matrices.ReadPerMatrix(columns, pivot), columns.Coordinate(row_axis));
  const Operand above = columns.WriteMap(element, type);

  StepBuilder map(lowering, matrices.operand().shape);
  return map.WriteMap(
      map.Read(matrices.operand()) - map.Read(program::InsertAxis(factors, row_axis + 1)) *
                                         map.Read(program::InsertAxis(above, row_axis)),
      type);
}

std::vector<Operand> Eliminate(Lowering& lowering, const std::vector<Operand>& carried,
                               const Column& column) {
  const Matrices matrices(carried[kMatrix]);
  const Operand pivot = FindPivot(lowering, matrices, carried[kIsUsed], column);
  return {Subtract(lowering, matrices, pivot, column),
          Multiply(lowering, matrices, carried, pivot, column),
          MarkUsed(lowering, matrices, carried[kIsUsed], pivot)};
}

Status LowerDet(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Operand square, SquareMatrices(lowering));
  const Matrices matrices(lowering.CastTo(square, tensor::ArithmeticType(square.type())));
  StepBuilder ones(lowering, matrices.batch());
  const ElementType compute = matrices.operand().type();
  const Operand one = ones.WriteMap(program::Constant(ones.exprs(), compute, 1), compute);
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::vector<Operand> results,
      EliminateColumns(lowering, matrices, kMaxUnrolled,
                       {matrices.operand(), one, MakeUnusedRows(lowering, matrices)}, Eliminate));
  lowering.Set(0, lowering.CastTo(results[kDeterminant], square.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Det", 22, LowerDet},
};

}  // namespace

std::span<const Operator> DeterminantOperators() { return kOperators; }

}  // namespace onnxifi::ops
