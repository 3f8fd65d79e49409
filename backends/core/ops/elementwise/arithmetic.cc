// SPDX-License-Identifier: Apache-2.0
//
// Add, Sub, Mul, Div: numpy broadcasting since opset 7; before that the `broadcast` and `axis`
// attributes.

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

template <ExprOp op>
Status LowerArithmetic(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(BinaryOperands in, BroadcastInputs(lowering));
  if (tensor::IsBool(in.type) || !HasArithmetic(in.type)) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, in.shape);
  const bool is_float = tensor::IsFloat(in.type);
  const Expr a = is_float ? ReadElement(lowering, 0, in.a, map) : map.ReadArithmetic(in.a);
  const Expr b = is_float ? ReadElement(lowering, 1, in.b, map) : map.ReadArithmetic(in.b);
  lowering.Set(0, map.WriteMap(Binary(op, a, b), in.type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Add", 14, LowerArithmetic<ExprOp::kAdd>},
    {"Sub", 14, LowerArithmetic<ExprOp::kSub>},
    {"Mul", 14, LowerArithmetic<ExprOp::kMul>},
    {"Div", 14, LowerArithmetic<ExprOp::kDiv>},
};

}  // namespace

std::span<const Operator> ArithmeticOperators() { return kOperators; }

}  // namespace onnxifi::ops
