// SPDX-License-Identifier: Apache-2.0
//
// Product: prologues and quantisation parameters of Contract steps.

#include "backends/core/ops/contract/product.h"

namespace onnxifi::ops {

Expr PlainPrologue(StepBuilder& step, const Operand& operand, int read, ElementType accumulator) {
  return Cast(Load(step.exprs(), operand.type(), read), accumulator);
}

Expr ZeroPointPrologue(StepBuilder& step, const Operand& operand, int read,
                       const std::optional<Operand>& zero_point, ElementType accumulator) {
  Expr element = PlainPrologue(step, operand, read, accumulator);
  if (!zero_point) return element;
  const View view = program::BroadcastTo(*zero_point, operand.shape);
  return element - Cast(Load(step.exprs(), view.type, step.AddRead(view)), accumulator);
}

Result<Operand> AlignParameter(Lowering& lowering, int input, int rank, int axis, Dim extent) {
  const Operand& parameter = lowering.In(input);
  if (parameter.rank() == 0 || (parameter.rank() == 1 && parameter.shape[0] == Dim(1))) {
    Operand scalar = lowering.Reshaped(parameter, {});
    while (scalar.rank() < rank) scalar = program::InsertAxis(scalar, 0);
    return scalar;
  }
  if (parameter.rank() != 1) {
    return Status(Code::kMismatchingShape,
                  lowering.node().op_type + ": Input " + std::to_string(input) + " has " +
                      std::to_string(parameter.rank()) + " axes instead of at most one.");
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
      parameter.shape[0], extent,
      "The length of input " + std::to_string(input) + " and the extent it scales"));
  Operand aligned = parameter;
  while (aligned.rank() < rank - axis) aligned = program::InsertAxis(aligned, aligned.rank());
  while (aligned.rank() < rank) aligned = program::InsertAxis(aligned, 0);
  return aligned;
}

Result<Operand> ChannelVector(Lowering& lowering, int input, int rank, Dim channels) {
  if (lowering.In(input).rank() != 1) {
    return lowering.InvalidModel("Input " + std::to_string(input) + " has " +
                                 std::to_string(lowering.In(input).rank()) +
                                 " axes instead of one.");
  }
  return AlignParameter(lowering, input, rank, 1, channels);
}

bool IsByte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUint8; }

Expr Quantized(Expr scaled, Expr zero_point, ElementType type) {
  Expr shifted = scaled + Cast(zero_point, scaled.type());
  if (tensor::IsFloat(type)) return Cast(shifted, type);
  Expr rounded = Unary(ExprOp::kRoundEven, shifted);
  Expr clamped = Minimum(Maximum(rounded, Like(rounded, tensor::Lowest(type))),
                         Like(rounded, tensor::LargestFinite(type)));
  return Cast(clamped, type);
}

}  // namespace onnxifi::ops
