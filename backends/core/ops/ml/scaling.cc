// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml Scaler, Normalizer, Imputer: features made comparable, each on its own or by row.

#include <cmath>
#include <string>

#include "backends/core/ops/ml/rows.h"
#include "backends/core/ops/normalization/row.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// In which type numbers of `type` are scaled: integers as float64, of which float32 lacks some.
ElementType ScalingType(ElementType type) {
  return tensor::IsInteger(type) || type == ElementType::kFloat64 ? ElementType::kFloat64
                                                                  : ElementType::kFloat32;
}

// (x - offset) * scale, where an attribute that is missing does nothing.
Status LowerScaler(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckNumeric(lowering));
  const Operand& x = lowering.In(0);
  const ElementType type = ScalingType(x.type());
  StepBuilder map(lowering, x.shape);
  Expr value = Cast(map.Read(x), type);
  for (const std::string_view name : {"offset", "scale"}) {
    const std::vector<float> numbers = FloatList(lowering, name);
    if (numbers.empty()) continue;
    const auto length = static_cast<int64_t>(numbers.size());
    ONNXIFI_RETURN_IF_ERROR(CheckAlongLastAxis(lowering, length, x.shape, name));
    const Operand list = ConstantNumbers(
        lowering, type, length == 1 ? tensor::Extents{} : tensor::Extents{length}, numbers);
    value = name == "offset" ? value - map.Read(list) : value * map.Read(list);
  }
  lowering.Set(0, map.WriteMap(value, ElementType::kFloat32));
  return base::Ok();
}

// The elements of a row by its largest one, the sum of their magnitudes, or its length. A row whose
// divisor is 0 stays as it is.
Result<Expr> Normalized(Lowering& lowering, RowBuilder& row, Expr x) {
  const std::string norm = lowering.String("norm", "MAX");
  const Expr zero = Like(x, 0);
  program::Reduction extreme;
  if (norm == "MAX") {
    const Expr largest = AddMaximum(extreme, x);
    const Expr divisor = row.AddPass(std::move(extreme), largest);
    return Select(divisor == zero, x, x / divisor);
  }
  if (norm != "L1" && norm != "L2") {
    return lowering.InvalidModel("Attribute norm is '" + norm +
                                 "'; one of 'MAX', 'L1' and 'L2' is required.");
  }
  // Scaled first, so that no sum of finite numbers overflows and no square vanishes.
  const Expr magnitude = AddMaximum(extreme, Unary(ExprOp::kAbs, x));
  const Expr scale = row.AddPass(std::move(extreme), magnitude);
  const Expr scaled = x / scale;
  program::Reduction reduction;
  const Expr sum = AddSum(reduction, norm == "L1" ? Unary(ExprOp::kAbs, scaled) : scaled * scaled);
  const Expr divisor =
      row.AddPass(std::move(reduction), norm == "L1" ? sum : Unary(ExprOp::kSqrt, sum));
  return Select(scale == zero, x, scaled / divisor);
}

Status LowerNormalizer(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Operand x, ReadRows(lowering));
  RowBuilder row(lowering, x.shape, {1});
  const Expr element = row.Read(x, ScalingType(x.type()));
  ONNXIFI_ASSIGN_OR_RETURN(const Expr normalized, Normalized(lowering, row, element));
  const Operand out = row.Write(normalized, ElementType::kFloat32);
  row.Finish();
  lowering.Set(0, lowering.In(0).rank() == 1 ? program::RemoveAxis(out, 0) : out);
  return base::Ok();
}

// Whether an element of the input is the one that is replaced, a float: perhaps NaN.
Expr IsReplacedFloat(Expr element, float replaced) {
  if (std::isnan(replaced)) {
    if (tensor::IsFloat(element.type())) return Unary(ExprOp::kIsNan, element);
    return element < element;
  }
  if (tensor::IsInteger(element.type())) element = Cast(element, ElementType::kFloat64);
  return element == Like(element, static_cast<double>(replaced));
}

// The list of the input's own kind counts, or the other one where it is missing.
Status LowerImputer(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckNumeric(lowering));
  const Operand& x = lowering.In(0);
  const std::vector<float> floats = FloatList(lowering, "imputed_value_floats");
  const std::vector<int64_t>* given = lowering.Ints("imputed_value_int64s");
  const std::vector<int64_t> integers = given == nullptr ? std::vector<int64_t>() : *given;
  if (floats.empty() && integers.empty()) {
    return lowering.InvalidModel(
        "One of the attributes imputed_value_floats and imputed_value_int64s is required.");
  }
  const bool takes_floats = integers.empty() || (tensor::IsFloat(x.type()) && !floats.empty());
  const auto length = static_cast<int64_t>(takes_floats ? floats.size() : integers.size());
  ONNXIFI_RETURN_IF_ERROR(
      CheckAlongLastAxis(lowering, length, x.shape, "the list of imputed values"));
  const tensor::Extents extents = length == 1 ? tensor::Extents{} : tensor::Extents{length};

  StepBuilder map(lowering, x.shape);
  const Expr stored = map.Read(x);
  const Expr element = Cast(stored, tensor::ArithmeticType(x.type()));
  Expr is_replaced;
  Operand values;
  if (takes_floats) {
    is_replaced = IsReplacedFloat(element, lowering.Float("replaced_value_float", 0.0F));
    values = ConstantNumbers(lowering, ElementType::kFloat32, extents, floats);
  } else {
    const Expr number =
        IntConstant(map.exprs(), ElementType::kInt64, lowering.Int("replaced_value_int64", 0));
    is_replaced = tensor::IsFloat(element.type()) ? element == Cast(number, element.type())
                                                  : Cast(element, ElementType::kInt64) == number;
    values = lowering.ConstantTensor(
        tensor::Tensor::FromValues<int64_t>(ElementType::kInt64, extents, integers));
  }
  const Expr value = Select(is_replaced, Cast(map.Read(values), x.type()), stored);
  lowering.Set(0, map.WriteMap(value, x.type()));
  return base::Ok();
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr Operator kOperators[] = {
    {"Imputer", 1, LowerImputer, kDomain},
    {"Normalizer", 1, LowerNormalizer, kDomain},
    {"Scaler", 1, LowerScaler, kDomain},
};

}  // namespace

std::span<const Operator> ScalingOperators() { return kOperators; }

}  // namespace onnxifi::ops
