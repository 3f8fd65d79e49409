// SPDX-License-Identifier: Apache-2.0
//
// Where: an element of X or of Y, by a condition; the three broadcast together.

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status LowerWhere(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  const Operand& condition = lowering.In(0);
  const Operand& x = lowering.In(1);
  const Operand& y = lowering.In(2);
  if (!tensor::IsBool(condition.type())) return lowering.UnsupportedType(0);
  ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, 1, 2));
  ONNXIFI_ASSIGN_OR_RETURN(Shape values, lowering.Broadcast(x.shape, y.shape));
  ONNXIFI_ASSIGN_OR_RETURN(Shape shape, lowering.Broadcast(condition.shape, values));

  StepBuilder map(lowering, shape);
  Expr chosen = Select(map.Read(condition), map.Read(x), map.Read(y));
  lowering.Set(0, map.WriteMap(chosen, x.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Where", 16, LowerWhere, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> WhereOperators() { return kOperators; }

}  // namespace onnxifi::ops
