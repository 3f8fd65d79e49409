// SPDX-License-Identifier: Apache-2.0
//
// Min, Max, Sum, Mean of any number of inputs: of one shape before opset 8, broadcast since.

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Result<Shape> BroadcastAll(Lowering& lowering) {
  Shape shape = lowering.In(0).shape;
  for (int input = 1; input < lowering.input_count(); ++input) {
    ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, 0, input));
    if (lowering.version() < 8) {
      ONNXIFI_RETURN_IF_ERROR(CheckSameShape(lowering, 0, input));
    }
    ONNXIFI_ASSIGN_OR_RETURN(shape, lowering.Broadcast(shape, lowering.In(input).shape));
  }
  return shape;
}

enum class Average : bool { kNo, kYes };

template <ExprOp op, Average average>
Status LowerVariadic(Lowering& lowering) {
  const int count = lowering.input_count();
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(count == 0 ? 1 : count));
  const ElementType type = lowering.In(0).type();
  if (!HasArithmetic(type)) return lowering.UnsupportedType(0);
  ONNXIFI_ASSIGN_OR_RETURN(Shape shape, BroadcastAll(lowering));

  StepBuilder map(lowering, shape);
  Expr value = map.ReadArithmetic(lowering.In(0));
  for (int input = 1; input < count; ++input) {
    value = Binary(op, value, map.ReadArithmetic(lowering.In(input)));
  }
  if (average == Average::kYes) value = value / Like(value, count);
  lowering.Set(0, map.WriteMap(value, type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Max", 13, LowerVariadic<ExprOp::kMax, Average::kNo>},
    {"Mean", 13, LowerVariadic<ExprOp::kAdd, Average::kYes>},
    {"Min", 13, LowerVariadic<ExprOp::kMin, Average::kNo>},
    {"Sum", 13, LowerVariadic<ExprOp::kAdd, Average::kNo>},
};

}  // namespace

std::span<const Operator> VariadicOperators() { return kOperators; }

}  // namespace onnxifi::ops
