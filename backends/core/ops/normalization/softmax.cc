// SPDX-License-Identifier: Apache-2.0
//
// Softmax, LogSoftmax, Hardmax: over one axis since opset 13; before that over all axes from `axis`
// on. The largest element is subtracted first, so that no exponential overflows.

#include <cstdint>
#include <numeric>
#include <utility>

#include "backends/core/ops/normalization/row.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/ops/registry.h"
#include "backends/core/program/arg_extreme.h"

namespace onnxifi::ops {
namespace {

Result<std::vector<int>> RowAxes(const Lowering& lowering, int rank) {
  const bool is_flattening = lowering.version() < 13;
  ONNXIFI_ASSIGN_OR_RETURN(int axis,
                           lowering.Axis(lowering.Int("axis", is_flattening ? 1 : -1), rank));
  std::vector<int> axes(is_flattening ? rank - axis : 1);
  std::iota(axes.begin(), axes.end(), axis);
  return axes;
}

// result(row, x, type): the output from the element x, with the passes it needs. `type` is the
// tensor's own: ONNX defines these operators by elementary ones on it, so what each of those gives
// is rounded to it.
template <Expr (*result)(RowBuilder&, Expr, ElementType)>
Status LowerOverRow(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<int> axes, RowAxes(lowering, x.rank()));

  RowBuilder row(lowering, x.shape, axes);
  Expr value = result(row, row.Read(x, tensor::ArithmeticType(x.type())), x.type());
  lowering.Set(0, row.Write(value, x.type()));
  row.Finish();
  return base::Ok();
}

Expr Rounded(Expr x, ElementType type) { return Cast(Cast(x, type), x.type()); }

// x minus the largest element of its row.
Expr Lowered(RowBuilder& row, Expr x, ElementType type) {
  program::Reduction reduction;
  Expr max = AddMaximum(reduction, x);
  return Rounded(x - row.AddPass(std::move(reduction), max), type);
}

Expr SumOfExponentials(RowBuilder& row, Expr exponential, ElementType type) {
  program::Reduction reduction;
  Expr sum = AddSum(reduction, exponential);
  return row.AddPass(std::move(reduction), Rounded(sum, type));
}

Expr Softmax(RowBuilder& row, Expr x, ElementType type) {
  Expr exponential = Rounded(Unary(ExprOp::kExp, Lowered(row, x, type)), type);
  return exponential / SumOfExponentials(row, exponential, type);
}

Expr LogSoftmax(RowBuilder& row, Expr x, ElementType type) {
  Expr lowered = Lowered(row, x, type);
  Expr exponential = Rounded(Unary(ExprOp::kExp, lowered), type);
  return lowered - Rounded(Unary(ExprOp::kLog, SumOfExponentials(row, exponential, type)), type);
}

Expr HardmaxOfRow(RowBuilder& row, Expr x, ElementType /*type*/) {
  Expr position = row.Position();
  program::Reduction reduction;
  Expr first_largest = AddArgExtreme(reduction, x, position, {.is_largest = true});
  Expr is_chosen = position == row.AddPass(std::move(reduction), first_largest);
  return Select(is_chosen, Like(x, 1), Like(x, 0));
}

// Along an axis whose elements lie apart: first where the largest are, side by side, then ones
// there.
Status LowerHardmax(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<int> axes, RowAxes(lowering, x.rank()));
  if (axes.size() != 1 || axes.back() == x.rank() - 1) return LowerOverRow<HardmaxOfRow>(lowering);
  const int axis = axes.front();
  const Dim extent = x.shape[static_cast<size_t>(axis)];
  const ReductionGeometry reduced = ReduceAxes(x, axes, /*keepdims=*/true);
  const ElementType type = tensor::ArithmeticType(x.type());

  StepBuilder search(lowering, reduced.data.shape);
  program::Reduction reduction;
  const Expr position = AddArgExtreme(reduction, Cast(search.ReadView(reduced.data.view), type),
                                      search.Coordinate(x.rank() - 1), {.is_largest = true});
  const Operand positions = WriteReduction(lowering, search, reduced, std::move(reduction),
                                           {{position, ElementType::kInt64}})[0];
  // The comparison is done for every element, so it is narrow where it can be.
  const ElementType narrow =
      extent.UpperBound() <= INT32_MAX ? ElementType::kInt32 : ElementType::kInt64;
  const Operand chosen = lowering.CastTo(positions, narrow);
  StepBuilder map(lowering, x.shape);
  const Expr is_chosen = map.Read(chosen) == Cast(map.Coordinate(axis), narrow);
  const Expr one = program::Constant(map.exprs(), type, 1);
  lowering.Set(0, map.WriteMap(Select(is_chosen, one, Like(one, 0)), x.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Hardmax", 13, LowerHardmax},
    {"LogSoftmax", 13, LowerOverRow<LogSoftmax>},
    {"Softmax", 13, LowerOverRow<Softmax>},
};

}  // namespace

std::span<const Operator> SoftmaxOperators() { return kOperators; }

}  // namespace onnxifi::ops
