// SPDX-License-Identifier: Apache-2.0
//
// Operators on the bits of integers: BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift.

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

template <ExprOp op>
Status LowerBitwise(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(BinaryOperands in, BroadcastInputs(lowering));
  if (!tensor::IsInteger(in.type)) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, in.shape);
  Expr a = map.ReadArithmetic(in.a);
  Expr b = map.ReadArithmetic(in.b);
  lowering.Set(0, map.WriteMap(Binary(op, a, b), in.type));
  return base::Ok();
}

Status LowerBitwiseNot(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsInteger(x.type())) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  lowering.Set(0, map.WriteMap(Unary(ExprOp::kBitNot, map.ReadArithmetic(x)), x.type()));
  return base::Ok();
}

// A shift by a negative amount, or by the width or more, leaves what sign extension fills in: 0, or
// -1 to the right of a negative number.
Status LowerBitShift(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(BinaryOperands in, BroadcastInputs(lowering));
  if (!tensor::IsInteger(in.type) || tensor::IsPacked(in.type)) return lowering.UnsupportedType(0);
  const std::string direction = lowering.String("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    return lowering.InvalidModel("Direction '" + direction + "' is neither 'LEFT' nor 'RIGHT'.");
  }

  StepBuilder map(lowering, in.shape);
  Expr a = map.Read(in.a);
  Expr b = map.Read(in.b);
  Expr zero = Like(a, 0);
  Expr is_out = (b < zero) || (b >= Like(b, tensor::BitWidth(in.type)));
  // The amount is made harmless before it is used, so that no device meets an undefined shift.
  Expr amount = Select(is_out, zero, b);
  Expr shifted, beyond;
  if (direction == "LEFT") {
    shifted = Binary(ExprOp::kShl, a, amount);
    beyond = zero;
  } else {
    shifted = Binary(ExprOp::kShr, a, amount);
    beyond = tensor::IsSigned(in.type) ? Select(a < zero, Like(a, -1), zero) : zero;
  }
  lowering.Set(0, map.WriteMap(Select(is_out, beyond, shifted), in.type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"BitShift", 28, LowerBitShift},
    {"BitwiseAnd", 18, LowerBitwise<ExprOp::kAnd>},
    {"BitwiseNot", 18, LowerBitwiseNot},
    {"BitwiseOr", 18, LowerBitwise<ExprOp::kOr>},
    {"BitwiseXor", 18, LowerBitwise<ExprOp::kXor>},
};

}  // namespace

std::span<const Operator> BitwiseOperators() { return kOperators; }

}  // namespace onnxifi::ops
