// SPDX-License-Identifier: Apache-2.0
//
// Mathematical functions of one input. Abs, Neg and Sign are defined on every number, the others on
// floats; Erf-9 took integers too. `consumed_inputs` of the first opset only permitted reuse of
// memory and is ignored.

#include "backends/core/ops/elementwise/floating_type.h"
#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

template <ExprOp op>
Status LowerNumeric(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type()) && !tensor::IsInteger(x.type()))
    return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  Expr value = map.ReadArithmetic(x);
  const bool is_identity = op == ExprOp::kAbs && tensor::IsUnsigned(x.type());
  lowering.Set(0, map.WriteMap(is_identity ? value : Unary(op, value), x.type()));
  return base::Ok();
}

template <ExprOp op>
Status LowerFloat(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  lowering.Set(0, map.WriteMap(Unary(op, map.ReadArithmetic(x)), x.type()));
  return base::Ok();
}

Status LowerReciprocal(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  Expr value = map.ReadArithmetic(x);
  lowering.Set(0, map.WriteMap(Like(value, 1) / value, x.type()));
  return base::Ok();
}

Status LowerErf(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type()) && !tensor::IsInteger(x.type()))
    return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  Expr value = Cast(map.Read(x), FloatingType(x.type()));
  lowering.Set(0, map.WriteMap(Unary(ExprOp::kErf, value), x.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Abs", 13, LowerNumeric<ExprOp::kAbs>},
    {"Acos", 22, LowerFloat<ExprOp::kAcos>},
    {"Acosh", 22, LowerFloat<ExprOp::kAcosh>},
    {"Asin", 22, LowerFloat<ExprOp::kAsin>},
    {"Asinh", 22, LowerFloat<ExprOp::kAsinh>},
    {"Atan", 22, LowerFloat<ExprOp::kAtan>},
    {"Atanh", 22, LowerFloat<ExprOp::kAtanh>},
    {"Ceil", 13, LowerFloat<ExprOp::kCeil>},
    {"Cos", 22, LowerFloat<ExprOp::kCos>},
    {"Cosh", 22, LowerFloat<ExprOp::kCosh>},
    {"Erf", 13, LowerErf},
    {"Exp", 13, LowerFloat<ExprOp::kExp>},
    {"Floor", 13, LowerFloat<ExprOp::kFloor>},
    {"Log", 13, LowerFloat<ExprOp::kLog>},
    {"Neg", 13, LowerNumeric<ExprOp::kNeg>},
    {"Reciprocal", 13, LowerReciprocal},
    {"Round", 22, LowerFloat<ExprOp::kRoundEven>},
    {"Sign", 13, LowerNumeric<ExprOp::kSign>},
    {"Sin", 22, LowerFloat<ExprOp::kSin>},
    {"Sinh", 22, LowerFloat<ExprOp::kSinh>},
    {"Sqrt", 13, LowerFloat<ExprOp::kSqrt>},
    {"Tan", 22, LowerFloat<ExprOp::kTan>},
    {"Tanh", 13, LowerFloat<ExprOp::kTanh>},
};

}  // namespace

std::span<const Operator> UnaryMathOperators() { return kOperators; }

}  // namespace onnxifi::ops
