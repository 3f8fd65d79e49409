// SPDX-License-Identifier: Apache-2.0
//
// Det: elimination with partial pivoting, a few steps per column, over all matrices of the batch.
// Rows stay where they are: a row that was a pivot is marked as used.

#include <vector>

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/registry.h"
#include "backends/core/program/arg_extreme.h"

namespace onnxifi::ops {
namespace {

// Steps are emitted for each column.
constexpr int64_t kMaxOrder = 64;

class Elimination {
 public:
  Elimination(Lowering& lowering, const Operand& x, ElementType compute)
      : lowering_(lowering),
        compute_(compute),
        batch_(x.shape.begin(), x.shape.end() - 2),
        order_(x.shape.back()),
        matrix_(lowering.CastTo(x, compute)) {
    StepBuilder ones(lowering, batch_);
    determinant_ = ones.WriteMap(program::Constant(ones.exprs(), compute, 1), compute);
    StepBuilder nothing(lowering, Rows());
    is_used_ = nothing.WriteMap(program::IntConstant(nothing.exprs(), ElementType::kInt32, 0),
                                ElementType::kInt32);
  }

  void Eliminate(int64_t column, bool is_last) {
    const Operand pivot = FindPivot(column);
    Multiply(column, pivot);
    if (is_last) return;
    Subtract(column, pivot);
    StepBuilder map(lowering_, Rows());
    const Expr row = map.Coordinate(row_axis());
    const Expr used = map.Read(is_used_);
    is_used_ = map.WriteMap(Select(row == ReadPerMatrix(map, pivot), Like(used, 1), used),
                            ElementType::kInt32);
  }

  const Operand& determinant() const { return determinant_; }

 private:
  int row_axis() const { return static_cast<int>(batch_.size()); }
  Shape Rows() const {
    Shape rows = batch_;
    rows.push_back(order_);
    return rows;
  }
  std::vector<Expr> Matrix(StepBuilder& step) const {
    std::vector<Expr> at;
    for (int axis = 0; axis < row_axis(); ++axis) at.push_back(step.Coordinate(axis));
    return at;
  }
  Expr ReadPerMatrix(StepBuilder& step, const Operand& operand) const {
    return step.ReadAtUnchecked(operand, Matrix(step));
  }
  Expr ReadElement(StepBuilder& step, Expr row, Expr column) const {
    std::vector<Expr> at = Matrix(step);
    at.push_back(row);
    at.push_back(column);
    return step.ReadAtUnchecked(matrix_, at);
  }
  Expr Column(StepBuilder& step, int64_t column) const {
    return program::IntConstant(step.exprs(), ElementType::kInt64, column);
  }

  // The unused row of the largest element in the column.
  Operand FindPivot(int64_t column) {
    StepBuilder step(lowering_, Rows());
    const Expr row = step.Coordinate(row_axis());
    const Expr element = ReadElement(step, row, Column(step, column));
    const Expr used = step.Read(is_used_);
    const Expr size =
        Select(used == Like(used, 1), Like(element, -1), Unary(ExprOp::kAbs, element));
    program::Reduce reduce;
    reduce.axes = 1;
    reduce.roots = {AddArgExtreme(reduce.reduction, size, row, {}).id()};
    Operand pivot = lowering_.Temporary(ElementType::kInt64, batch_);
    step.Finish(std::move(reduce), {pivot.view});
    return pivot;
  }

  // By the pivot, with the sign of its place among the rows that are left.
  void Multiply(int64_t column, const Operand& pivot) {
    StepBuilder step(lowering_, Rows());
    const Expr row = step.Coordinate(row_axis());
    const Expr used = step.Read(is_used_);
    const Expr is_before = row < ReadPerMatrix(step, pivot) && used == Like(used, 0);
    program::Reduce reduce;
    reduce.axes = 1;
    reduce.roots = {AddSum(reduce.reduction, Select(is_before, Like(used, 1), Like(used, 0))).id()};
    const Operand count = lowering_.Temporary(ElementType::kInt32, batch_);
    step.Finish(std::move(reduce), {count.view});

    StepBuilder map(lowering_, batch_);
    const Expr before = map.Read(count);
    const Expr value = ReadElement(map, map.Read(pivot), Column(map, column));
    const Expr is_odd = Binary(ExprOp::kMod, before, Like(before, 2)) == Like(before, 1);
    determinant_ = map.WriteMap(map.Read(determinant_) * Select(is_odd, -value, value), compute_);
  }

  // The pivot's row from all others, so that the column becomes zeros.
  void Subtract(int64_t column, const Operand& pivot) {
    StepBuilder map(lowering_, matrix_.shape);
    const Expr at = ReadPerMatrix(map, pivot);
    const Expr row = map.Coordinate(row_axis());
    const Expr value = ReadElement(map, at, Column(map, column));
    const Expr zero = Like(value, 0);
    // Without a pivot the determinant is zero already.
    const Expr factor =
        Select(value == zero, zero, ReadElement(map, row, Column(map, column)) / value);
    const Expr above = ReadElement(map, at, map.Coordinate(row_axis() + 1));
    matrix_ = map.WriteMap(map.Read(matrix_) - factor * above, compute_);
  }

  Lowering& lowering_;
  const ElementType compute_;
  const Shape batch_;
  const Dim order_;
  Operand matrix_;
  Operand determinant_;  // [batch]
  Operand is_used_;      // int32 [batch, order]
};

Status LowerDet(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  if (x.rank() < 2) {
    return lowering.InvalidModel("The input has " + std::to_string(x.rank()) +
                                 " axes and needs at least 2.");
  }
  const Dim rows = x.shape[x.rank() - 2];
  ONNXIFI_RETURN_IF_ERROR(
      lowering.RequireEqual(rows, x.shape.back(), "The extents of the matrices"));
  Operand square = x;
  if (!square.shape.back().is_constant()) square.shape.back() = rows;
  square.shape[x.rank() - 2] = square.shape.back();
  const Dim& order = square.shape.back();
  if (!order.is_constant()) {
    return lowering.UnsupportedShape("The order of the matrices is not known before the run.");
  }
  if (order.constant() > kMaxOrder) {
    return lowering.UnsupportedShape(
        "The order of the matrices (" + std::to_string(order.constant()) +
        ") exceeds the largest supported (" + std::to_string(kMaxOrder) + ").");
  }
  Elimination elimination(lowering, square, tensor::ArithmeticType(x.type()));
  for (int64_t column = 0; column < order.constant(); ++column) {
    elimination.Eliminate(column, column + 1 == order.constant());
  }
  lowering.Set(0, lowering.CastTo(elimination.determinant(), x.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Det", 22, LowerDet},
};

}  // namespace

std::span<const Operator> DeterminantOperators() { return kOperators; }

}  // namespace onnxifi::ops
