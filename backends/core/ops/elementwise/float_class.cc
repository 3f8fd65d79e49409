// SPDX-License-Identifier: Apache-2.0
//
// IsNaN and IsInf: the class of a float.

#include <limits>

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status LowerIsNan(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  Expr result = Unary(ExprOp::kIsNan, map.ReadArithmetic(x));
  lowering.Set(0, map.WriteMap(result, ElementType::kBool));
  return base::Ok();
}

Status LowerIsInf(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  Expr value = map.ReadArithmetic(x);
  const double infinity = std::numeric_limits<double>::infinity();
  Expr result = IntConstant(map.exprs(), ElementType::kBool, 0);
  if (lowering.Int("detect_positive", 1) != 0) result = value == Like(value, infinity);
  if (lowering.Int("detect_negative", 1) != 0) result = result || value == Like(value, -infinity);
  lowering.Set(0, map.WriteMap(result, ElementType::kBool));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"IsInf", 20, LowerIsInf},
    {"IsNaN", 20, LowerIsNan},
};

}  // namespace

std::span<const Operator> FloatClassOperators() { return kOperators; }

}  // namespace onnxifi::ops
