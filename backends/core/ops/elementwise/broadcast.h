// SPDX-License-Identifier: Apache-2.0
//
// Broadcasting of operator inputs: numpy's rule since opset 7, before it the one-sided rule with `broadcast` and `axis`.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_BROADCAST_H_
#define ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_BROADCAST_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

struct BinaryOperands {
  Operand a;
  Operand b;
  ElementType type;  // of both
  Shape shape;       // of the result
};

// Inputs 0 and 1 made broadcastable to a common shape. MISMATCHING_DATATYPE if their types differ.
base::Result<BinaryOperands> BroadcastInputs(Lowering& lowering);

// Whether + - * / are defined on the type: every numeric type but complex, strings and bool.
bool HasArithmetic(ElementType type);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_BROADCAST_H_
