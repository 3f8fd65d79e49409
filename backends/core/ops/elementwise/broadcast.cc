// SPDX-License-Identifier: Apache-2.0
//
// Broadcasting of the two inputs of an element-wise operator, for every opset.

#include "backends/core/ops/elementwise/broadcast.h"

#include <cmath>

namespace onnxifi::ops {
namespace {

// Before opset 7, `broadcast` = 1 stretches B alone: its axes stand at `axis` of A, by default at
// A's last axes.
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
  ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, 0, 1));
  return BroadcastMixedInputs(lowering);
}

Result<BinaryOperands> BroadcastMixedInputs(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& a = lowering.In(0);
  Operand b = lowering.In(1);
  if (lowering.version() < 7) {
    ONNXIFI_ASSIGN_OR_RETURN(b, StretchLegacy(lowering, a, std::move(b)));
  }
  // Leading axes of extent 1 change nothing where the other operand has as many axes.
  for (const int input : {0, 1}) {
    const int rank = lowering.In(input).rank();
    const bool fits = !lowering.HasOpenRank(1 - input) && lowering.In(1 - input).rank() >= rank;
    if (lowering.version() >= 7 && fits) lowering.TakeAnyRank(input);
  }
  ONNXIFI_ASSIGN_OR_RETURN(Shape shape, lowering.Broadcast(a.shape, b.shape));
  return BinaryOperands{a, std::move(b), a.type(), std::move(shape)};
}

Status CheckSameType(const Lowering& lowering, int input, int other) {
  const ElementType a = lowering.In(input).type();
  const ElementType b = lowering.In(other).type();
  if (a == b) return base::Ok();
  return Status(Code::kMismatchingDatatype,
                lowering.node().op_type + ": Input " + std::to_string(input) + " is " +
                    std::string(Name(a)) + " and input " + std::to_string(other) + " is " +
                    std::string(Name(b)) + "; they must agree.");
}

Status CheckSameShape(Lowering& lowering, int input, int other) {
  const Shape& a = lowering.In(input).shape;
  const Shape& b = lowering.In(other).shape;
  if (a.size() != b.size()) {
    return Status(Code::kMismatchingShape,
                  lowering.node().op_type + ": Shapes " + tensor::ToString(a) + " of input " +
                      std::to_string(input) + " and " + tensor::ToString(b) + " of input " +
                      std::to_string(other) + " differ in rank.");
  }
  for (size_t axis = 0; axis < a.size(); ++axis) {
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
        a[axis], b[axis],
        "Extents of inputs " + std::to_string(input) + " and " + std::to_string(other)));
  }
  return base::Ok();
}

Result<Operand> ScalarInput(Lowering& lowering, int input) {
  Operand scalar = lowering.In(input);
  const Dim count = tensor::Product(scalar.shape);
  ONNXIFI_RETURN_IF_ERROR(lowering.Require(Equal(count, Dim(1)), Code::kMismatchingShape,
                                           "Input " + std::to_string(input) + " has shape " +
                                               tensor::ToString(scalar.shape) +
                                               " and must hold one element.",
                                           {count}));
  while (scalar.rank() > 0) scalar = program::RemoveAxis(scalar, scalar.rank() - 1);
  return scalar;
}

Expr ReadElement(Lowering& lowering, int input, const Operand& operand, StepBuilder& map) {
  const tensor::Tensor* known = lowering.SmallConstant(input);
  const ElementType type = tensor::ArithmeticType(operand.type());
  // An int64_t holds all other integers.
  const bool is_number = known != nullptr && known->element_count() == 1 &&
                         HasArithmetic(operand.type()) && type != ElementType::kUint64;
  if (!is_number) return map.ReadArithmetic(operand);
  if (tensor::IsInteger(type)) return IntConstant(map.exprs(), type, known->AsInt(0));
  const double value = known->AsDouble(0);
  return std::isnan(value) ? map.ReadArithmetic(operand) : Constant(map.exprs(), type, value);
}

bool HasArithmetic(ElementType type) { return tensor::IsFloat(type) || tensor::IsInteger(type); }

}  // namespace onnxifi::ops
