// SPDX-License-Identifier: Apache-2.0
//
// Det: elimination with partial pivoting, a few steps per column, over all matrices of the batch:
// those of small matrices one after the other, those of others in a loop. Rows stay where they are:
// a row that was a pivot is marked as used.

#include <functional>
#include <utility>
#include <vector>

#include "backends/core/ops/control/bodies.h"
#include "backends/core/ops/lowering.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/registry.h"
#include "backends/core/program/arg_extreme.h"

namespace onnxifi::ops {
namespace {

// Steps are emitted for each column up to this order.
constexpr int64_t kMaxUnrolled = 64;

// The number of a column, in a step.
using Column = std::function<Expr(StepBuilder& step)>;

// What a column leaves to the next one.
struct Rest {
  Operand matrix;       // [batch, order, order]
  Operand determinant;  // [batch]
  Operand is_used;      // int32 [batch, order]
};

Rest BeforeElimination(Lowering& lowering, const Operand& matrix) {
  const Shape batch(matrix.shape.begin(), matrix.shape.end() - 2);
  const Shape rows(matrix.shape.begin(), matrix.shape.end() - 1);
  StepBuilder ones(lowering, batch);
  const Operand determinant =
      ones.WriteMap(program::Constant(ones.exprs(), matrix.type(), 1), matrix.type());
  StepBuilder nothing(lowering, rows);
  const Operand is_used = nothing.WriteMap(
      program::IntConstant(nothing.exprs(), ElementType::kInt32, 0), ElementType::kInt32);
  return {matrix, determinant, is_used};
}

class Elimination {
 public:
  Elimination(Lowering& lowering, Rest rest)
      : lowering_(lowering),
        compute_(rest.matrix.type()),
        batch_(rest.determinant.shape),
        order_(rest.matrix.shape.back()),
        matrix_(std::move(rest.matrix)),
        determinant_(std::move(rest.determinant)),
        is_used_(std::move(rest.is_used)) {}

  void Eliminate(const Column& column, bool is_last) {
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

  Rest rest() const { return {matrix_, determinant_, is_used_}; }

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
  // The unused row of the largest element in the column.
  Operand FindPivot(const Column& column) {
    StepBuilder step(lowering_, Rows());
    const Expr row = step.Coordinate(row_axis());
    const Expr element = ReadElement(step, row, column(step));
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
  void Multiply(const Column& column, const Operand& pivot) {
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
    const Expr value = ReadElement(map, map.Read(pivot), column(map));
    const Expr is_odd = Binary(ExprOp::kMod, before, Like(before, 2)) == Like(before, 1);
    determinant_ = map.WriteMap(map.Read(determinant_) * Select(is_odd, -value, value), compute_);
  }

  // The pivot's row from all others, so that the column becomes zeros.
  void Subtract(const Column& column, const Operand& pivot) {
    StepBuilder map(lowering_, matrix_.shape);
    const Expr at = ReadPerMatrix(map, pivot);
    const Expr row = map.Coordinate(row_axis());
    const Expr value = ReadElement(map, at, column(map));
    const Expr zero = Like(value, 0);
    // Without a pivot the determinant is zero already.
    const Expr factor = Select(value == zero, zero, ReadElement(map, row, column(map)) / value);
    const Expr above = ReadElement(map, at, map.Coordinate(row_axis() + 1));
    matrix_ = map.WriteMap(map.Read(matrix_) - factor * above, compute_);
  }

  Lowering& lowering_;
  const ElementType compute_;
  const Shape batch_;
  const Dim order_;
  Operand matrix_;
  Operand determinant_;
  Operand is_used_;
};

// (column, condition, matrix, determinant, is_used) -> the condition and what is left.
Status WriteColumn(Lowering& body) {
  Elimination elimination(body, {body.In(2), body.In(3), body.In(4)});
  elimination.Eliminate([&](StepBuilder& step) { return step.Read(body.In(0)); },
                        /*is_last=*/false);
  Rest rest = elimination.rest();
  body.Set(0, body.In(1));
  body.Set(1, std::move(rest.matrix));
  body.Set(2, std::move(rest.determinant));
  body.Set(3, std::move(rest.is_used));
  return base::Ok();
}

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
  const Dim order = square.shape.back();
  Rest rest =
      BeforeElimination(lowering, lowering.CastTo(square, tensor::ArithmeticType(x.type())));
  if (order.is_constant() && order.constant() <= kMaxUnrolled) {
    Elimination elimination(lowering, std::move(rest));
    for (int64_t column = 0; column < order.constant(); ++column) {
      elimination.Eliminate(
          [&](StepBuilder& step) {
            return program::IntConstant(step.exprs(), ElementType::kInt64, column);
          },
          column + 1 == order.constant());
    }
    rest = elimination.rest();
  } else {
    // None where there is no matrix: an order alone may be any number.
    Dim matrices = 1;
    for (size_t axis = 0; axis + 2 < square.shape.size(); ++axis)
      matrices = matrices * square.shape[axis];
    StepBuilder count(lowering, {});
    const Operand columns =
        count.WriteMap(count.Extent(order * Min(matrices, 1)), ElementType::kInt64);
    ONNXIFI_ASSIGN_OR_RETURN(
        const std::vector<Operand> results,
        MakeLoop(lowering, columns, {rest.matrix, rest.determinant, rest.is_used},
                 /*captures=*/{}, WriteColumn));
    rest.determinant = results[1];
  }
  lowering.Set(0, lowering.CastTo(rest.determinant, x.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Det", 22, LowerDet},
};

}  // namespace

std::span<const Operator> DeterminantOperators() { return kOperators; }

}  // namespace onnxifi::ops
