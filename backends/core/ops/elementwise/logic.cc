// SPDX-License-Identifier: Apache-2.0
//
// And, Or, Xor, Not on bool: numpy broadcasting since opset 7; before that the `broadcast` and
// `axis` attributes.

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

template <ExprOp op>
Status LowerLogic(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(BinaryOperands in, BroadcastInputs(lowering));
  if (!tensor::IsBool(in.type)) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, in.shape);
  Expr a = map.Read(in.a);
  Expr b = map.Read(in.b);
  lowering.Set(0, map.WriteMap(Binary(op, a, b), in.type));
  return base::Ok();
}

Status LowerNot(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsBool(x.type())) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  lowering.Set(0, map.WriteMap(!map.Read(x), x.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"And", 7, LowerLogic<ExprOp::kAnd>},
    {"Not", 1, LowerNot},
    {"Or", 7, LowerLogic<ExprOp::kOr>},
    {"Xor", 7, LowerLogic<ExprOp::kXor>},
};

}  // namespace

std::span<const Operator> LogicOperators() { return kOperators; }

}  // namespace onnxifi::ops
