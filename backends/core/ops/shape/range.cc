// SPDX-License-Identifier: Apache-2.0
//
// Range: element i is start + i * delta. Its length max(ceil((limit - start) / delta), 0) is an
// expression where the numbers are known integers, and is otherwise computed and read when the
// program runs.

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

std::optional<Dim> KnownLength(const Lowering& lowering) {
  Dim numbers[3];
  for (int k = 0; k < 3; ++k) {
    std::optional<Dims> known = lowering.Integers(k);
    if (!known) return std::nullopt;
    numbers[k] = known->front();
  }
  const Dim is_downward = Less(numbers[2], 0);
  const Dim distance = Select(is_downward, numbers[0] - numbers[1], numbers[1] - numbers[0]);
  return Max(0, CeilDiv(distance, Select(is_downward, 0 - numbers[2], numbers[2])));
}

// In float64, as ONNX's reference does for every type. A length that no memory holds becomes one
// that every limit refuses.
Dim LengthAtRunTime(Lowering& lowering, const Operand scalars[3]) {
  StepBuilder map(lowering, {Dim(1)});
  Expr start = Cast(map.Read(scalars[0]), ElementType::kFloat64);
  Expr limit = Cast(map.Read(scalars[1]), ElementType::kFloat64);
  Expr delta = Cast(map.Read(scalars[2]), ElementType::kFloat64);
  Expr length = Unary(ExprOp::kCeil, (limit - start) / delta);
  // NaN, from a delta of 0, compares false and gives 0.
  Expr count =
      Select(length > Like(length, 0), Minimum(length, Like(length, 0x1p62)), Like(length, 0));
  Operand number = map.WriteMap(Cast(count, ElementType::kInt64), ElementType::kInt64);
  return lowering.ReadAtRunTime(number, 1, /*lower=*/0).front();
}

Status LowerRange(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(3));
  const ElementType type = lowering.In(0).type();
  if (!tensor::IsInteger(type) && !tensor::IsFloat(type)) return lowering.UnsupportedType(0);
  Operand scalars[3];
  for (int k = 0; k < 3; ++k) {
    if (lowering.In(k).type() != type) {
      return Status(Code::kMismatchingDatatype, "Range: Input " + std::to_string(k) + " is " +
                                                    std::string(Name(lowering.In(k).type())) +
                                                    " and input 0 is " + std::string(Name(type)) +
                                                    ".");
    }
    ONNXIFI_RETURN_IF_ERROR(
        lowering.Require(Equal(Product(lowering.In(k).shape), 1), Code::kInvalidModel,
                         "Input " + std::to_string(k) + " of shape " +
                             tensor::ToString(lowering.In(k).shape) + " is not one element."));
    scalars[k] = lowering.Reshaped(lowering.In(k), {});
  }
  const std::optional<Dim> known = KnownLength(lowering);
  const Dim length = known ? *known : LengthAtRunTime(lowering, scalars);

  StepBuilder map(lowering, {length});
  Expr start = map.ReadArithmetic(scalars[0]);
  Expr delta = map.ReadArithmetic(scalars[2]);
  lowering.Set(0, map.WriteMap(start + Cast(map.Coordinate(0), start.type()) * delta, type));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Range", 27, LowerRange},
};

}  // namespace

std::span<const Operator> RangeOperators() { return kOperators; }

}  // namespace onnxifi::ops
