// SPDX-License-Identifier: Apache-2.0
//
// Broadcasting of the two inputs of an element-wise operator, for every opset.

#include "backends/core/ops/elementwise/broadcast.h"

namespace onnxifi::ops {
namespace {

// Before opset 7, `broadcast` = 1 stretches B alone: its axes stand at `axis` of A, by default at A's last axes.
Result<Operand> StretchLegacy(Lowering& lowering, const Operand& a, Operand b) {
  if (lowering.Int("broadcast", 0) == 0) {
    if (a.rank() != b.rank()) {
      return Status(Code::kMismatchingShape,
                    lowering.node().op_type + ": Ranks " + std::to_string(a.rank()) + " and " +
                        std::to_string(b.rank()) + " differ and broadcast is 0.");
    }
    return b;
  }
  int64_t axis = lowering.Int("axis", a.rank() - b.rank());
  if (axis < 0 || axis + b.rank() > a.rank()) {
    return lowering.InvalidModel("Axis " + std::to_string(axis) + " does not place the " +
                                 std::to_string(b.rank()) + " axes of B within the " +
                                 std::to_string(a.rank()) + " axes of A.");
  }
  while (axis + b.rank() < a.rank()) b = program::InsertAxis(b, b.rank());
  return b;
}

}  // namespace

Result<BinaryOperands> BroadcastInputs(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& a = lowering.In(0);
  Operand b = lowering.In(1);
  if (a.type() != b.type()) {
    return Status(Code::kMismatchingDatatype,
                  lowering.node().op_type + ": Input 0 is " + std::string(Name(a.type())) +
                      " and input 1 is " + std::string(Name(b.type())) + "; they must agree.");
  }
  if (lowering.version() < 7) {
    ONNXIFI_ASSIGN_OR_RETURN(b, StretchLegacy(lowering, a, std::move(b)));
  }
  ONNXIFI_ASSIGN_OR_RETURN(Shape shape, lowering.Broadcast(a.shape, b.shape));
  return BinaryOperands{a, std::move(b), a.type(), std::move(shape)};
}

bool HasArithmetic(ElementType type) {
  return tensor::IsFloat(type) || tensor::IsInteger(type);
}

}  // namespace onnxifi::ops
