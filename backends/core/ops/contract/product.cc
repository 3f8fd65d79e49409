// SPDX-License-Identifier: Apache-2.0
//
// Product: prologues, epilogue and quantisation parameters of Contract steps.

#include "backends/core/ops/contract/product.h"

#include <string>
#include <utility>

namespace onnxifi::ops {

namespace {

// The element of read `read` less its zero point, which is a read of its own.
program::ExprId Prologue(StepBuilder& step, const Factor& factor, int read,
                         ElementType accumulator) {
  const Operand& operand = factor.operand;
  Expr element = Cast(Load(step.exprs(), operand.type(), read), accumulator);
  if (!factor.zero_point) return element.id();
  const View view = program::BroadcastTo(*factor.zero_point, operand.shape);
  return (element - Cast(Load(step.exprs(), view.type, step.AddRead(view)), accumulator)).id();
}

}  // namespace

Operand Unpadded(Lowering& lowering, const Operand& operand) {
  return operand.view.guards.empty() ? operand : lowering.Dense(operand);
}

Expr SumOfProducts(StepBuilder& step, const Factor& a, const Factor& b, ElementType accumulator,
                   program::Contract& contract) {
  step.AddRead(a.operand.view);
  step.AddRead(b.operand.view);
  contract.accumulator = accumulator;
  contract.a_prologue = Prologue(step, a, 0, accumulator);
  contract.b_prologue = Prologue(step, b, 1, accumulator);
  return Accumulator(step.exprs(), accumulator);
}

void FinishProduct(Lowering& lowering, StepBuilder& step, program::Contract contract, Expr value) {
  contract.roots = {value.id()};
  const Operand out = lowering.Temporary(value.type(), step.domain());
  step.Finish(std::move(contract), {out.view});
  lowering.Set(0, out);
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
  const Dim length = parameter.shape[0];
  const std::string what =
      "The length of input " + std::to_string(input) + " and the extent it scales";
  if (length.is_constant()) {
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(length, extent, what));
  } else if (length != extent) {
    // A length that only a run tells may be 1, too.
    ONNXIFI_RETURN_IF_ERROR(
        lowering.Require(Max(Equal(length, extent), Equal(length, Dim(1))), Code::kMismatchingShape,
                         what + " differ: " + length.ToString() + " and " + extent.ToString() + ".",
                         {length, extent}));
  }
  Operand aligned = parameter;
  while (aligned.rank() < rank - axis) aligned = program::InsertAxis(aligned, aligned.rank());
  while (aligned.rank() < rank) aligned = program::InsertAxis(aligned, 0);
  return aligned;
}

Result<Operand> ChannelVector(Lowering& lowering, int input, int rank, Dim channels) {
  Operand vector = lowering.In(input);
  if (vector.rank() != 1) {
    return lowering.InvalidModel("Input " + std::to_string(input) + " has " +
                                 std::to_string(vector.rank()) + " axes instead of one.");
  }
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
      vector.shape[0], channels,
      "The length of input " + std::to_string(input) + " and the number of channels"));
  // A symbol that must equal the number of channels is not taken for a 1 that stretches.
  vector.shape[0] = channels;
  while (vector.rank() < rank - 1) vector = program::InsertAxis(vector, vector.rank());
  return program::InsertAxis(vector, 0);
}

bool IsByte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUint8; }

Expr Quantized(Expr scaled, Expr zero_point, ElementType type) {
  const Expr zero = Cast(zero_point, scaled.type());
  if (tensor::IsFloat(type)) return Cast(scaled + zero, type);
  // Rounded before the zero point is added: an odd one turns ties around.
  Expr shifted = Unary(ExprOp::kRoundEven, scaled) + zero;
  Expr clamped = Minimum(Maximum(shifted, Like(shifted, tensor::Lowest(type))),
                         Like(shifted, tensor::LargestFinite(type)));
  return Cast(clamped, type);
}

}  // namespace onnxifi::ops
