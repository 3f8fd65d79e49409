// SPDX-License-Identifier: Apache-2.0
//
// Broadcasting of operator inputs: numpy's rule since opset 7, before it the one-sided rule with
// `broadcast` and `axis`.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_BROADCAST_H_
#define ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_BROADCAST_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

struct BinaryOperands {
  Operand a;
  Operand b;
  ElementType type;  // of A
  Shape shape;       // of the result
};

// Inputs 0 and 1 made broadcastable to a common shape. MISMATCHING_DATATYPE if their types differ.
base::Result<BinaryOperands> BroadcastInputs(Lowering& lowering);
// The same for operators whose inputs may differ in type.
base::Result<BinaryOperands> BroadcastMixedInputs(Lowering& lowering);

// MISMATCHING_DATATYPE, or MISMATCHING_SHAPE, if the two inputs differ in it.
base::Status CheckSameType(const Lowering& lowering, int input, int other);
base::Status CheckSameShape(Lowering& lowering, int input, int other);
// An input that must hold one element, as a scalar.
base::Result<Operand> ScalarInput(Lowering& lowering, int input);

// The element of `operand`, which input `input` is seen as, in the type of its arithmetic. A single
// element whose value is at hand is a number of the expression: kernels of products and
// convolutions take bounds, factors and summands by numbers, and functions are known by those in
// them.
Expr ReadElement(Lowering& lowering, int input, const Operand& operand, StepBuilder& map);

// Whether + - * / are defined on the type: every numeric type but complex, strings and bool.
bool HasArithmetic(ElementType type);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_BROADCAST_H_
