// SPDX-License-Identifier: Apache-2.0
//
// ProductOperand: an operand of products (A and B of a Contract, Q, K and V of Attention) as it is
// before it is widened to the type of the sum. A device with products of narrow operands, such as
// float16 with float32 sums or int8 less a zero point with int32 sums, chooses its kernel by this;
// every other device takes the prologue, which computes the same.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_PRODUCT_OPERAND_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_PRODUCT_OPERAND_H_

#include "backends/core/program/program.h"

namespace onnxifi::program {

struct ProductOperand {
  // The prologue without the casts that keep every value, and without the zero point: over the
  // operand's axes. `type` is its type, which has all values that are multiplied (less the zero
  // point); the sum's where the prologue computes in that.
  ExprId element = kNoExpr;
  tensor::ElementType type = tensor::ElementType::kUndefined;
  // The element is what the operand's own read has in memory, nothing else. The view may be padded.
  bool is_stored = false;
  // Of integers: what is subtracted from the element once both are widened to the sum's type, and
  // its type. No expression: nothing is.
  ExprId zero_point = kNoExpr;
  tensor::ElementType zero_point_type = tensor::ElementType::kUndefined;
  // The read that the zero point is, if it is one, else -1. Its view is over the operand's axes, so
  // that strides of 0 say along which of them it is the same.
  int zero_point_read = -1;
};

// `operand` < OperandCount(step); `step` is a Contract or Attention.
ProductOperand FindProductOperand(const Program& program, const Step& step, int operand);

// The type in which a step of these families adds up its products.
tensor::ElementType SumType(const Step& step);

// Whether every value of `from` is one of `to`: a cast loses nothing. NaN stays NaN.
bool IsWidening(tensor::ElementType from, tensor::ElementType to);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_PRODUCT_OPERAND_H_
