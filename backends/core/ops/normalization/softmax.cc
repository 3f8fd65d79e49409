// SPDX-License-Identifier: Apache-2.0
//
// Softmax, LogSoftmax, Hardmax: over one axis since opset 13; before that over all axes from `axis`
// on. The largest element is subtracted first, so that no exponential overflows.

#include <numeric>

#include "backends/core/ops/normalization/row.h"
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

Expr Hardmax(RowBuilder& row, Expr x, ElementType /*type*/) {
  Expr position = row.Position();
  program::Reduction reduction;
  Expr first_largest = AddArgExtreme(reduction, x, position, {.is_largest = true});
  Expr is_chosen = position == row.AddPass(std::move(reduction), first_largest);
  return Select(is_chosen, Like(x, 1), Like(x, 0));
}

constexpr Operator kOperators[] = {
    {"Hardmax", 13, LowerOverRow<Hardmax>},
    {"LogSoftmax", 13, LowerOverRow<LogSoftmax>},
    {"Softmax", 13, LowerOverRow<Softmax>},
};

}  // namespace

std::span<const Operator> SoftmaxOperators() { return kOperators; }

}  // namespace onnxifi::ops
