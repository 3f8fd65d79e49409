// SPDX-License-Identifier: Apache-2.0
//
// MatMulInteger, QLinearMatMul: zero points are subtracted in prologues, scales applied in the
// epilogue.

#include <utility>

#include "backends/core/ops/contract/matmul.h"
#include "backends/core/ops/contract/product.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// A parameter of A has one element, one per row, or A's axes with the last of extent 1; of B
// likewise with columns. Laid over the axes of `of`.
Result<std::optional<Operand>> FactorParameter(Lowering& lowering, int input, const Operand& of,
                                               bool is_per_row) {
  if (!lowering.Has(input)) return std::optional<Operand>();
  const Operand& parameter = lowering.In(input);
  if (parameter.rank() <= 1) {
    const int rank = of.rank();
    const int axis = is_per_row && rank > 1 ? rank - 2 : rank - 1;
    ONNXIFI_ASSIGN_OR_RETURN(Operand aligned,
                             AlignParameter(lowering, input, rank, axis, of.shape[axis]));
    return std::optional<Operand>(aligned);
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Shape shape, lowering.Broadcast(parameter.shape, of.shape));
  if (shape.size() != of.shape.size()) {
    return Status(Code::kMismatchingShape,
                  lowering.node().op_type + ": Input " + std::to_string(input) + " has " +
                      std::to_string(parameter.rank()) + " axes, more than the operand's " +
                      std::to_string(of.rank()) + ".");
  }
  return std::optional<Operand>(parameter);
}

// A parameter of rows or columns over the axes of the result, for the epilogue: the summed axis
// becomes 1.
Operand OverResult(Operand parameter, const MatMulAxes& axes, bool is_per_row) {
  if (is_per_row) {
    if (parameter.rank() >= 1) parameter = program::RemoveAxis(parameter, parameter.rank() - 1);
    for (int k = 0; k < axes.n; ++k) {
      parameter = program::InsertAxis(parameter, parameter.rank());
    }
    return parameter;
  }
  const int summed = parameter.rank() - 1 - axes.n;
  parameter = program::RemoveAxis(parameter, summed);
  for (int k = 0; k < axes.m && parameter.rank() < static_cast<int>(axes.out.size()); ++k) {
    parameter = program::InsertAxis(parameter, summed);
  }
  return parameter;
}

Status LowerMatMulInteger(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& a = lowering.In(0);
  const Operand& b = lowering.In(1);
  for (int input = 0; input < lowering.input_count(); ++input) {
    if (lowering.Has(input) && !IsByte(lowering.In(input).type())) {
      return lowering.UnsupportedType(input);
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(const MatMulAxes axes, MakeMatMulAxes(lowering, a, b));
  ONNXIFI_ASSIGN_OR_RETURN(auto a_zero, FactorParameter(lowering, 2, a, /*is_per_row=*/true));
  ONNXIFI_ASSIGN_OR_RETURN(auto b_zero, FactorParameter(lowering, 3, b, /*is_per_row=*/false));

  StepBuilder step(lowering, axes.out);
  program::Contract contract = MatMulContract(axes);
  const Expr sum =
      SumOfProducts(step, {axes.a, a_zero}, {axes.b, b_zero}, ElementType::kInt32, contract);
  FinishProduct(lowering, step, std::move(contract), sum);
  return base::Ok();
}

// Inputs: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point.
Status LowerQLinearMatMul(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(8));
  const Operand& a = lowering.In(0);
  const Operand& b = lowering.In(3);
  const ElementType type = lowering.In(7).type();
  for (int input : {0, 2, 3, 5, 7}) {
    const ElementType given = lowering.In(input).type();
    if (!IsByte(given) && !(tensor::IsFloat(given) && tensor::BitWidth(given) == 8)) {
      return lowering.UnsupportedType(input);
    }
  }
  for (int input : {1, 4, 6}) {
    if (!tensor::IsFloat(lowering.In(input).type())) return lowering.UnsupportedType(input);
  }
  ONNXIFI_ASSIGN_OR_RETURN(const MatMulAxes axes, MakeMatMulAxes(lowering, a, b));
  ONNXIFI_ASSIGN_OR_RETURN(auto a_scale, FactorParameter(lowering, 1, a, true));
  ONNXIFI_ASSIGN_OR_RETURN(auto a_zero, FactorParameter(lowering, 2, a, true));
  ONNXIFI_ASSIGN_OR_RETURN(auto b_scale, FactorParameter(lowering, 4, b, false));
  ONNXIFI_ASSIGN_OR_RETURN(auto b_zero, FactorParameter(lowering, 5, b, false));
  // y's parameters are per row of the result.
  const int y_rank = static_cast<int>(axes.out.size());
  const int y_axis = std::max(0, y_rank - 2);
  const Dim rows = y_rank > 0 ? axes.out[y_axis] : Dim(1);
  std::optional<Operand> y[2];
  for (int k = 0; k < 2; ++k) {
    y[k] = lowering.In(6 + k);
    if (y[k]->rank() <= 1) {
      ONNXIFI_ASSIGN_OR_RETURN(y[k], AlignParameter(lowering, 6 + k, y_rank, y_axis, rows));
    }
  }

  StepBuilder step(lowering, axes.out);
  program::Contract contract = MatMulContract(axes);
  const ElementType accumulator =
      tensor::IsFloat(a.type()) ? ElementType::kFloat32 : ElementType::kInt32;
  const Expr sum = SumOfProducts(step, {axes.a, a_zero}, {axes.b, b_zero}, accumulator, contract);
  const ElementType real = ElementType::kFloat32;
  Expr scale = Cast(step.Read(OverResult(*a_scale, axes, true)), real) *
               Cast(step.Read(OverResult(*b_scale, axes, false)), real) /
               Cast(step.Read(*y[0]), real);
  FinishProduct(lowering, step, std::move(contract),
                Quantized(Cast(sum, real) * scale, step.Read(*y[1]), type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"MatMulInteger", 10, LowerMatMulInteger},
    {"QLinearMatMul", 21, LowerQLinearMatMul},
};

}  // namespace

std::span<const Operator> MatMulIntegerOperators() { return kOperators; }

}  // namespace onnxifi::ops
