// SPDX-License-Identifier: Apache-2.0
//
// Elimination with partial pivoting, a few steps per column, over all matrices of a batch. Rows
// stay where they are: a row that was a pivot is marked as used.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REDUCE_ELIMINATION_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REDUCE_ELIMINATION_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// The one input of an operator on square matrices, [..., order, order] with one Dim for both
// extents. UNSUPPORTED_DATATYPE: no floats. INVALID_MODEL, MISMATCHING_SHAPE: no square matrices.
Result<Operand> SquareMatrices(Lowering& lowering);

// Matrices [..., order, columns], whose leading axes are the batch, in steps over the batch and
// further axes.
class Matrices {
 public:
  explicit Matrices(Operand operand) : operand_(std::move(operand)) {}

  const Operand& operand() const { return operand_; }
  // The axis of rows in a step over the matrices' axes: also how many axes the batch has.
  int row_axis() const { return operand_.rank() - 2; }
  Dim order() const { return operand_.shape[static_cast<size_t>(row_axis())]; }
  Shape batch() const { return {operand_.shape.begin(), operand_.shape.end() - 2}; }
  // [..., order]
  Shape rows() const { return {operand_.shape.begin(), operand_.shape.end() - 1}; }

  Expr Read(StepBuilder& step, Expr row, Expr column) const;
  // The element of `operand` of the batch's shape.
  Expr ReadPerMatrix(StepBuilder& step, const Operand& operand) const;

 private:
  std::vector<Expr> Batch(StepBuilder& step) const;

  Operand operand_;
};

// The number of a column, in a step.
using Column = std::function<Expr(StepBuilder& step)>;

// int32 [..., order]: no row is used.
Operand MakeUnusedRows(Lowering& lowering, const Matrices& matrices);
// int64 of the batch's shape: the unused row of the largest element in the column.
Operand FindPivot(Lowering& lowering, const Matrices& matrices, const Operand& is_used,
                  const Column& column);
Operand MarkUsed(Lowering& lowering, const Matrices& matrices, const Operand& is_used,
                 const Operand& pivot);

// Of what was carried from one column to the next, what is carried on, of the same extents.
using EliminateColumn = std::function<std::vector<Operand>(
    Lowering& lowering, const std::vector<Operand>& carried, const Column& column)>;

// What is carried past the last of the matrices' first `order` columns: their steps one after the
// other up to an order of `max_unrolled`, and in a loop over the columns beyond it.
Result<std::vector<Operand>> EliminateColumns(Lowering& lowering, const Matrices& matrices,
                                              int64_t max_unrolled, std::vector<Operand> carried,
                                              const EliminateColumn& eliminate);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REDUCE_ELIMINATION_H_
