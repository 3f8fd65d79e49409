// SPDX-License-Identifier: Apache-2.0
//
// Range: element i is start + i * delta. Its length max(ceil((limit - start) / delta), 0) is an
// expression where the numbers are known integers, and is otherwise computed and read when the
// program runs. A delta of 0 and a quotient that is not finite have no length.

#include <algorithm>
#include <limits>

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

constexpr const char* kDeltaIsZero = "The delta is 0.";

// Exact, where Dims would stop at the ends of int64.
int64_t LengthOf(int64_t start, int64_t limit, int64_t delta) {
  using Wide = __int128;
  const Wide distance = delta < 0 ? Wide{start} - limit : Wide{limit} - start;
  const Wide step = delta < 0 ? -Wide{delta} : Wide{delta};
  const Wide length = distance <= 0 ? 0 : (distance + step - 1) / step;
  return static_cast<int64_t>(std::min(length, Wide{std::numeric_limits<int64_t>::max()}));
}

// Nothing where the numbers are not known.
Result<std::optional<Dim>> KnownLength(Lowering& lowering) {
  Dim numbers[3];
  for (int k = 0; k < 3; ++k) {
    std::optional<Dims> known = lowering.Integers(k);
    if (!known) return std::optional<Dim>();
    numbers[k] = known->front();
  }
  const auto& [start, limit, delta] = numbers;
  ONNXIFI_RETURN_IF_ERROR(
      lowering.Require(Equal(Equal(delta, 0), 0), Code::kInvalidModel, kDeltaIsZero));
  if (start.is_constant() && limit.is_constant() && delta.is_constant()) {
    return std::optional(Dim(LengthOf(start.constant(), limit.constant(), delta.constant())));
  }
  const Dim is_downward = Less(delta, 0);
  const Dim distance = Select(is_downward, start - limit, limit - start);
  return std::optional(Max(0, CeilDiv(distance, Select(is_downward, 0 - delta, delta))));
}

// In float64, as ONNX's reference does for every type. A length that no memory holds becomes one
// that every limit refuses.
Result<Dim> LengthAtRunTime(Lowering& lowering, const Operand scalars[3]) {
  StepBuilder map(lowering, {Dim(2)});
  const Expr start = Cast(map.Read(scalars[0]), ElementType::kFloat64);
  const Expr limit = Cast(map.Read(scalars[1]), ElementType::kFloat64);
  const Expr delta = Cast(map.Read(scalars[2]), ElementType::kFloat64);
  const Expr quotient = (limit - start) / delta;
  const Expr length = Unary(ExprOp::kCeil, quotient);
  const Expr zero = Like(length, 0);
  const Expr count = Select(zero < length, Minimum(length, Like(length, 0x1p62)), zero);
  constexpr double kMaxFinite = std::numeric_limits<double>::max();
  const Expr is_finite = Unary(ExprOp::kAbs, quotient) <= Like(quotient, kMaxFinite);
  constexpr int64_t kZero = 1, kNotFinite = 2;
  const Expr fault = Select(delta == Like(delta, 0), Like(delta, kZero),
                            Select(is_finite, zero, Like(delta, kNotFinite)));
  const Expr position = map.Coordinate(0);
  const Expr number = Select(position == Like(position, 0), count, fault);
  const Operand numbers = map.WriteMap(Cast(number, ElementType::kInt64), ElementType::kInt64);
  const Dims read = lowering.ReadAtRunTime(numbers, 2, /*lower=*/0);
  const auto require_no = [&](int64_t of, const char* sentence) {
    return lowering.Require(Equal(Equal(read[1], of), 0), Code::kInvalidModel, sentence);
  };
  ONNXIFI_RETURN_IF_ERROR(require_no(kZero, kDeltaIsZero));
  ONNXIFI_RETURN_IF_ERROR(
      require_no(kNotFinite, "The number of elements, (limit - start) / delta, is not finite."));
  return read[0];
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
  ONNXIFI_ASSIGN_OR_RETURN(const std::optional<Dim> known, KnownLength(lowering));
  Dim length;
  if (known) {
    length = *known;
  } else {
    ONNXIFI_ASSIGN_OR_RETURN(length, LengthAtRunTime(lowering, scalars));
  }

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
