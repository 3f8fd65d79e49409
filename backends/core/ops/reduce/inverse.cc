// SPDX-License-Identifier: Apache-2.0
//
// Inverse of com.microsoft: an elimination of each matrix with the identity beside it, from the
// rows above a pivot as from those below it. Of a singular matrix it is infinities and numbers that
// are none, as ONNX Runtime's is.

#include <utility>
#include <vector>

#include "backends/core/ops/reduce/elimination.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// Steps are emitted for each column up to this order.
constexpr int64_t kMaxUnrolled = 8;

// What a column leaves to the next one: the matrices [..., order, 2 * order], the row that was the
// pivot of each column [..., order], int64, and which rows were one.
enum Carried { kMatrix, kPivots, kIsUsed };

Operand PutIdentityBeside(Lowering& lowering, const Operand& square) {
  Shape both = square.shape;
  both.back() = both.back() * 2;
  StepBuilder map(lowering, both);
  std::vector<Expr> at;
  for (int axis = 0; axis < square.rank(); ++axis) at.push_back(map.Coordinate(axis));
  const Expr row = at[at.size() - 2], column = at.back();
  const Expr order = map.Extent(square.shape.back());
  const Expr element = map.ReadAt(square, at);  // 0 beside it
  return map.WriteMap(Select(column == row + order, Like(element, 1), element), square.type());
}

// The pivot's row over the pivot, and that from all others as often as they have it.
Operand Subtract(Lowering& lowering, const Matrices& matrices, const Operand& pivot,
                 const Column& column) {
  StepBuilder map(lowering, matrices.operand().shape);
  const Expr at = matrices.ReadPerMatrix(map, pivot);
  const Expr row = map.Coordinate(matrices.row_axis());
  const Expr above = matrices.Read(map, at, map.Coordinate(matrices.row_axis() + 1)) /
                     matrices.Read(map, at, column(map));
  const Expr factor = matrices.Read(map, row, column(map));
  return map.WriteMap(Select(row == at, above, map.Read(matrices.operand()) - factor * above),
                      matrices.operand().type());
}

std::vector<Operand> Eliminate(Lowering& lowering, const std::vector<Operand>& carried,
                               const Column& column) {
  const Matrices matrices(carried[kMatrix]);
  const Operand pivot = FindPivot(lowering, matrices, carried[kIsUsed], column);
  StepBuilder map(lowering, matrices.rows());
  const Expr is_own = map.Coordinate(matrices.row_axis()) == column(map);
  const Operand pivots =
      map.WriteMap(Select(is_own, matrices.ReadPerMatrix(map, pivot), map.Read(carried[kPivots])),
                   ElementType::kInt64);
  return {Subtract(lowering, matrices, pivot, column), pivots,
          MarkUsed(lowering, matrices, carried[kIsUsed], pivot)};
}

Status LowerInverse(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Operand square, SquareMatrices(lowering));
  const Operand wide = lowering.CastTo(square, tensor::ArithmeticType(square.type()));
  const Matrices matrices(PutIdentityBeside(lowering, wide));
  StepBuilder zeros(lowering, matrices.rows());
  const Operand pivots = zeros.WriteMap(program::IntConstant(zeros.exprs(), ElementType::kInt64, 0),
                                        ElementType::kInt64);
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::vector<Operand> results,
      EliminateColumns(lowering, matrices, kMaxUnrolled,
                       {matrices.operand(), pivots, MakeUnusedRows(lowering, matrices)},
                       Eliminate));
  // What was the matrix is a permutation, which the inverse is still to be put in order by.
  const Matrices eliminated(results[kMatrix]);
  StepBuilder map(lowering, wide.shape);
  std::vector<Expr> at;
  for (int axis = 0; axis + 1 < wide.rank(); ++axis) at.push_back(map.Coordinate(axis));
  const Expr row = map.ReadAtUnchecked(results[kPivots], at);
  const Expr column = map.Coordinate(wide.rank() - 1) + map.Extent(wide.shape.back());
  lowering.Set(0, map.WriteMap(eliminated.Read(map, row, column), square.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Inverse", 1, LowerInverse, "com.microsoft"},
};

}  // namespace

std::span<const Operator> InverseOperators() { return kOperators; }

}  // namespace onnxifi::ops
