// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of bytes, and what their sums become.

#include <utility>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/quantization.h"

namespace onnxifi::microsoft {
namespace {

// A zero point without an axis of extent 1, as MatMulInteger wants the one of a whole matrix.
Value WholeOrColumns(Definition& d, int input) {
  const std::optional<int> rank = d.Rank(input);
  if (rank == 1 && d.Extent(input, 0) == 1) return d.Squeeze(d.In(input), {0});
  return d.In(input);
}

// Sums of products of A, input 0, and B; either zero point may be omitted. `a_zero` is empty then.
Value IntegerProduct(Definition& d, Value a, Value a_zero, int b, int b_zero) {
  std::vector<Value> inputs = {std::move(a), d.In(b), std::move(a_zero)};
  if (d.Has(b_zero)) inputs.push_back(WholeOrColumns(d, b_zero));
  if (inputs.size() == 3 && inputs[2].empty()) inputs.pop_back();
  return d.Apply("MatMulInteger", std::move(inputs));
}

// Scales of B's columns multiply by columns also where B is a stack of matrices.
Value ColumnScales(Definition& d, int input) {
  const std::optional<int> rank = d.Rank(input);
  return rank && *rank >= 2 ? d.Unsqueeze(d.In(input), {-2}) : d.In(input);
}

Status DefineMatMulIntegerToFloat(Definition& d) {
  const Value zero = d.Has(4) ? WholeOrColumns(d, 4) : Value();
  const Value sums = IntegerProduct(d, d.In(0), zero, 1, 5);
  const ElementType type = d.Type(2);
  const Value scale = d.Mul(d.Cast(d.In(2), ElementType::kFloat32),
                            d.Cast(ColumnScales(d, 3), ElementType::kFloat32));
  Value result = d.Mul(d.Cast(sums, ElementType::kFloat32), scale);
  if (d.Has(6)) result = d.Add(result, d.Cast(d.In(6), ElementType::kFloat32));
  d.Return(0, d.Cast(result, type));
  return base::Ok();
}

Status DefineDynamicQuantizeMatMul(Definition& d) {
  const std::vector<Value> a = d.ApplyAll("DynamicQuantizeLinear", {d.In(0)}, 3);
  const Value sums = IntegerProduct(d, a[0], a[2], 1, 3);
  Value result = d.Mul(d.Cast(sums, ElementType::kFloat32), d.Mul(a[1], ColumnScales(d, 2)));
  if (d.Has(4)) result = d.Add(result, d.In(4));
  d.Return(0, result);
  return base::Ok();
}

// alpha * A * B in the steps of a_scale * b_scale, with C in the same steps; y in its own, or
// floats.
Status DefineGemm(Definition& d) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(0, 2));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(3, 2));
  ONNXIFI_ASSIGN_OR_RETURN(const Value a_scale, ScalarInput(d, 1));
  ONNXIFI_ASSIGN_OR_RETURN(const Value a_zero, ScalarInput(d, 2));
  const bool of_columns = d.Rank(4) == 1 && d.Extent(4, 0) != 1;
  Value b_scale = d.In(4), b_zero = d.In(5);
  if (!of_columns) {
    ONNXIFI_ASSIGN_OR_RETURN(b_scale, ScalarInput(d, 4));
    ONNXIFI_ASSIGN_OR_RETURN(b_zero, ScalarInput(d, 5));
  }
  const Value a = d.Int("transA") != 0 ? d.Transpose(d.In(0), {1, 0}) : d.In(0);
  const Value b = d.Int("transB") != 0 ? d.Transpose(d.In(3), {1, 0}) : d.In(3);
  Value sums = d.Apply("MatMulInteger", {a, b, a_zero, b_zero});
  if (d.Has(6)) sums = d.Add(sums, d.In(6));
  Value scale = d.Mul(a_scale, b_scale);
  if (d.Float("alpha") != 1.0F) {
    scale = d.Mul(scale, d.Scalar(d.Float("alpha"), ElementType::kFloat32));
  }
  const Value result = d.Mul(d.Cast(sums, ElementType::kFloat32), scale);
  if (!d.Has(7)) {
    d.Return(0, result);
    return base::Ok();
  }
  const ElementType type = d.Has(8) ? d.Type(8) : d.Type(0);
  ONNXIFI_ASSIGN_OR_RETURN(Value y, Quantize(d, result, 7, 8, type));
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineMatMulInteger16(Definition& d) {
  const auto is_unsigned = [&d](int input) { return d.Type(input) == ElementType::kUint16; };
  const ElementType type =
      is_unsigned(0) && is_unsigned(1) ? ElementType::kUint32 : ElementType::kInt32;
  const Value a = d.Cast(d.In(0), type), b = d.Cast(d.In(1), type);
  d.Return(0, d.MatMul(a, b));
  return base::Ok();
}

// (A - A_zero_point) * (B - B_zero_point)
Status DefineMulInteger(Definition& d) {
  const auto shifted = [&d](int input) {
    const Value wide = d.Cast(d.In(input), ElementType::kInt32);
    return d.Has(input + 1) ? d.Sub(wide, d.Cast(d.In(input + 1), ElementType::kInt32)) : wide;
  };
  const Value a = shifted(0), b = shifted(2);
  d.Return(0, d.Mul(a, b));
  return base::Ok();
}

Status DefineReduceSumInteger(Definition& d) {
  const bool is_signed = d.Type(0) == ElementType::kInt8;
  const Value wide = d.Cast(d.In(0), is_signed ? ElementType::kInt32 : ElementType::kUint32);
  d.Return(
      0, d.Apply("ReduceSum", {wide, d.Ints1D(d.Ints("axes"))}, {{"keepdims", d.Int("keepdims")}}));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(DynamicQuantizeMatMul(A: T1, B: T2, b_scale: T1, b_zero_point?: T2, bias?: T1) -> (Y: T1)
        T1 = float
        T2 = int8 | uint8)",
     DefineDynamicQuantizeMatMul},
    {R"(MatMulInteger16(A: T1, B: T2) -> (Y: T3)
        T1 = int16 | uint16
        T2 = int16 | uint16
        T3 = int32 | uint32)",
     DefineMatMulInteger16},
    {R"(MatMulIntegerToFloat(A: T1, B: T2, a_scale: T3, b_scale: T3, a_zero_point?: T1,
                             b_zero_point?: T2, bias?: T3) -> (Y: T3)
        T1 = int8 | uint8
        T2 = int8 | uint8
        T3 = float | float16)",
     DefineMatMulIntegerToFloat},
    {R"(MulInteger(A: T, A_zero_point?: T, B: T, B_zero_point?: T) -> (C: int32)
        T = uint8 | int8)",
     DefineMulInteger},
    {R"(QGemm(A: TA, a_scale: float, a_zero_point: TA, B: TB, b_scale: float, b_zero_point: TB,
              C?: int32, y_scale?: float, y_zero_point?: TYZ) -> (Y: TY)
        alpha: float = 1
        transA: int = 0
        transB: int = 0
        TA = uint8 | int8
        TB = uint8 | int8
        TYZ = uint8 | int8
        TY = float | uint8 | int8)",
     DefineGemm},
    {R"(ReduceSumInteger(data: T1) -> (reduced: T2)
        axes: ints required
        keepdims: int required
        T1 = int8 | uint8
        T2 = int32 | uint32)",
     DefineReduceSumInteger},
};

}  // namespace

std::span<const model::DomainOperator> IntegerProductOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
