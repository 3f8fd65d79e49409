// SPDX-License-Identifier: Apache-2.0
//
// SquaredRelu as a step: a Map, whose expression is written here. Where a definition would take
// steps that the kit cannot fuse, an entry says what is computed for each element.

#include "domain/domain.h"

namespace example {

using onnxifi::base::Status;

Status LowerSquaredRelu(onnxifi::ops::Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const onnxifi::ops::Operand& x = lowering.In(0);
  onnxifi::ops::StepBuilder map(lowering, x.shape);
  // float32 where X is narrower; the result is rounded once.
  const onnxifi::ops::Expr value = map.ReadArithmetic(x);
  const onnxifi::ops::Expr positive = Maximum(value, Like(value, 0));
  lowering.Set(0, map.WriteMap(positive * positive, x.type()));
  return onnxifi::base::Ok();
}

}  // namespace example
