// SPDX-License-Identifier: Apache-2.0
//
// Pow: the result has the base's type; since opset 12 the exponent may be of any numeric type.
// Legacy broadcasting before 7.

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/elementwise/floating_type.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// Integers stay exact; a float on either side makes it a float power, in float64 where one side is
// float64 or the base is an integer (numpy's promotion), else in float32.
ElementType PowerType(ElementType base, ElementType exponent) {
  if (tensor::IsInteger(base) && tensor::IsInteger(exponent)) return ElementType::kInt64;
  if (exponent == ElementType::kFloat64) return exponent;
  return FloatingType(base);
}

Status LowerPow(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(BinaryOperands in, BroadcastMixedInputs(lowering));
  if (!HasArithmetic(in.a.type())) return lowering.UnsupportedType(0);
  if (!HasArithmetic(in.b.type())) return lowering.UnsupportedType(1);

  const ElementType type = PowerType(in.a.type(), in.b.type());
  StepBuilder map(lowering, in.shape);
  Expr base = Cast(map.Read(in.a), type);
  Expr exponent = Cast(map.Read(in.b), type);
  lowering.Set(0, map.WriteMap(Binary(ExprOp::kPow, base, exponent), in.a.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Pow", 15, LowerPow},
};

}  // namespace

std::span<const Operator> PowerOperators() { return kOperators; }

}  // namespace onnxifi::ops
