// SPDX-License-Identifier: Apache-2.0
//
// Activations that look at more than one value: PRelu (a slope per channel), Shrink (a dead zone)
// and SwiGLU (a gate).

#include "backends/core/ops/elementwise/activation.h"
#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/elementwise/floating_type.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// Slope broadcasts to X alone. Before opset 7 it has one element, or one per channel (axis 1).
Result<Operand> AlignSlope(Lowering& lowering, const Operand& x, Operand slope) {
  if (lowering.version() < 7 && slope.rank() == 1 && x.rank() > 1 && !(slope.shape[0] == Dim(1))) {
    while (slope.rank() < x.rank() - 1) slope = program::InsertAxis(slope, slope.rank());
  }
  if (slope.rank() > x.rank()) {
    return Status(Code::kMismatchingShape, "PRelu: Slope has " + std::to_string(slope.rank()) +
                                               " axes, more than the " + std::to_string(x.rank()) +
                                               " of the input.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(Shape shape, lowering.Broadcast(x.shape, slope.shape));
  for (int axis = 0; axis < x.rank(); ++axis) {
    ONNXIFI_RETURN_IF_ERROR(
        lowering.RequireEqual(shape[axis], x.shape[axis], "Extents of the slope and the input"));
  }
  return slope;
}

Status LowerPRelu(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  if (!HasArithmetic(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, 0, 1));
  ONNXIFI_ASSIGN_OR_RETURN(Operand slope, AlignSlope(lowering, x, lowering.In(1)));

  StepBuilder map(lowering, x.shape);
  Expr value = map.ReadArithmetic(x);
  Expr scaled = map.ReadArithmetic(slope) * value;
  lowering.Set(0, map.WriteMap(Select(value < Like(value, 0), scaled, value), x.type()));
  return base::Ok();
}

Status LowerShrink(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!HasArithmetic(x.type())) return lowering.UnsupportedType(0);

  StepBuilder map(lowering, x.shape);
  Expr value = Cast(map.Read(x), FloatingType(x.type()));
  Expr bias = Like(value, lowering.Float("bias", 0));
  Expr limit = Like(value, lowering.Float("lambd", 0.5f));
  Expr above = Select(value > limit, value - bias, Like(value, 0));
  lowering.Set(0, map.WriteMap(Select(value < -limit, value + bias, above), x.type()));
  return base::Ok();
}

Status LowerSwiGlu(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& a = lowering.In(0);
  if (!tensor::IsFloat(a.type())) return lowering.UnsupportedType(0);
  ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, 0, 1));
  ONNXIFI_RETURN_IF_ERROR(CheckSameShape(lowering, 0, 1));

  StepBuilder map(lowering, a.shape);
  Expr gate = Swish(map.ReadArithmetic(a), lowering.Float("alpha", 1));
  lowering.Set(0, map.WriteMap(gate * map.ReadArithmetic(lowering.In(1)), a.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"PRelu", 16, LowerPRelu},
    {"Shrink", 9, LowerShrink},
    {"SwiGLU", 28, LowerSwiGlu},
};

}  // namespace

std::span<const Operator> GateOperators() { return kOperators; }

}  // namespace onnxifi::ops
