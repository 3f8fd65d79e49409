// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear:
//   y = saturate(round(x / scale) + zero_point)   (floats of 8 bits and less: without the round)
//   y = (x - zero_point) * scale

#include "backends/core/ops/elementwise/broadcast.h"
#include "backends/core/ops/elementwise/quantization.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// Zero point's type, else attribute `output_dtype`, else uint8.
Result<ElementType> QuantizedType(const Lowering& lowering) {
  const bool has_zero_point = lowering.Has(2);
  const ElementType otherwise = has_zero_point ? lowering.In(2).type() : ElementType::kUint8;
  ONNXIFI_ASSIGN_OR_RETURN(ElementType type, TypeAttribute(lowering, "output_dtype", otherwise));
  if (has_zero_point && type != otherwise) {
    return Status(Code::kMismatchingDatatype,
                  "QuantizeLinear: Attribute output_dtype is " + std::string(Name(type)) +
                      ", but the zero point is " + std::string(Name(otherwise)) + ".");
  }
  const bool is_narrow = tensor::BitWidth(type) <= 8 && tensor::IsFloat(type);
  const bool is_integer = tensor::BitWidth(type) <= 16 && tensor::IsInteger(type);
  if (is_narrow || is_integer) return type;
  return Status(Code::kUnsupportedDatatype, "QuantizeLinear: Output element type " +
                                                std::string(Name(type)) +
                                                " is not a quantized type of at most 16 bits.");
}

// Attribute `precision`, else the type of the scale; float8e8m0 scales are powers of two and leave
// x its own precision. Integers divide as real numbers, which float64 holds. Versions without the
// attribute name no precision: 16-bit floats divide as float32, so that the quotient is rounded
// once, as runtimes do; as float16, one int8 weight in a hundred became its neighbour.
Result<ElementType> DivisionType(const Lowering& lowering) {
  const ElementType x = lowering.In(0).type();
  ElementType otherwise = lowering.In(1).type();
  if (otherwise == ElementType::kFloat8E8M0) {
    otherwise = tensor::IsFloat(x) ? x : ElementType::kFloat32;
  }
  if (otherwise == ElementType::kInt32) otherwise = ElementType::kFloat64;
  constexpr int kFirstVersionWithPrecision = 23;
  if (lowering.version() < kFirstVersionWithPrecision && tensor::BitWidth(otherwise) == 16) {
    otherwise = ElementType::kFloat32;
  }
  ONNXIFI_ASSIGN_OR_RETURN(ElementType type, TypeAttribute(lowering, "precision", otherwise));
  if (tensor::IsFloat(type) && tensor::BitWidth(type) >= 16) return type;
  return lowering.InvalidModel("Precision " + std::string(Name(type)) +
                               " is not a float of at least 16 bits.");
}

Status LowerQuantizeLinear(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  if (!HasArithmetic(x.type())) return lowering.UnsupportedType(0);
  const ElementType scale_type = lowering.In(1).type();
  if (!tensor::IsFloat(scale_type) && scale_type != ElementType::kInt32) {
    return lowering.UnsupportedType(1);
  }
  ONNXIFI_ASSIGN_OR_RETURN(const ElementType to, QuantizedType(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const ElementType precision, DivisionType(lowering));
  const ElementType type = tensor::ArithmeticType(precision);

  StepBuilder map(lowering, x.shape);
  ONNXIFI_ASSIGN_OR_RETURN(Expr scale, ReadPerGranule(lowering, map, 1));
  // Rounded to `precision` on the way in and out: a quotient of 16-bit floats rounds to the nearest
  // integer from there.
  Expr dividend = Cast(Cast(map.Read(x), precision), type);
  Expr divisor = Cast(Cast(scale, precision), type);
  Expr value = Cast(Cast(dividend / divisor, precision), type);
  if (tensor::IsInteger(to)) value = Unary(ExprOp::kRoundEven, value);
  if (lowering.Has(2)) {
    ONNXIFI_ASSIGN_OR_RETURN(Expr zero_point, ReadPerGranule(lowering, map, 2));
    value = value + Cast(zero_point, type);
  }
  if (tensor::IsInteger(to)) {
    value = Minimum(Maximum(value, Like(value, tensor::Lowest(to))),
                    Like(value, tensor::LargestFinite(to)));
  }
  const bool saturate = lowering.Int("saturate", 1) != 0;
  lowering.Set(0, map.WriteMap(Cast(value, to, saturate), to));
  return base::Ok();
}

Status LowerDequantizeLinear(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  if (!HasArithmetic(x.type())) return lowering.UnsupportedType(0);
  if (!tensor::IsFloat(lowering.In(1).type())) return lowering.UnsupportedType(1);
  ONNXIFI_ASSIGN_OR_RETURN(const ElementType to,
                           TypeAttribute(lowering, "output_dtype", lowering.In(1).type()));
  if (!tensor::IsFloat(to) || tensor::BitWidth(to) < 16) {
    return lowering.InvalidModel("Output element type " + std::string(Name(to)) +
                                 " is not a float of at least 16 bits.");
  }
  const ElementType type = tensor::ArithmeticType(to);

  StepBuilder map(lowering, x.shape);
  ONNXIFI_ASSIGN_OR_RETURN(Expr scale, ReadPerGranule(lowering, map, 1));
  Expr value = map.ReadArithmetic(x);
  if (lowering.Has(2)) {
    ONNXIFI_RETURN_IF_ERROR(CheckSameType(lowering, 0, 2));
    ONNXIFI_ASSIGN_OR_RETURN(Expr zero_point, ReadPerGranule(lowering, map, 2));
    // Integers subtract exactly, in a type that the difference does not leave; floats as floats.
    const ElementType exact =
        tensor::BitWidth(x.type()) <= 16 ? ElementType::kInt32 : ElementType::kInt64;
    const ElementType wide = tensor::IsInteger(x.type()) ? exact : type;
    value = Cast(value, wide) - Cast(zero_point, wide);
  }
  lowering.Set(0, map.WriteMap(Cast(value, type) * Cast(scale, type), to));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"DequantizeLinear", 28, LowerDequantizeLinear},
    {"QuantizeLinear", 28, LowerQuantizeLinear},
};

}  // namespace

std::span<const Operator> QuantizeLinearOperators() { return kOperators; }

}  // namespace onnxifi::ops
