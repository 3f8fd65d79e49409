// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml ArrayFeatureExtractor, Binarizer: loops over elements as any other.

#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status LowerBinarizer(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type()) && !tensor::IsInteger(x.type())) {
    return lowering.UnsupportedType(0);
  }
  // Compared as float64, which has all numbers of the types that ONNX lists but large integers.
  StepBuilder map(lowering, x.shape);
  const Expr threshold = Constant(map.exprs(), ElementType::kFloat64,
                                  static_cast<double>(lowering.Float("threshold", 0.0F)));
  const Expr value = Cast(map.ReadArithmetic(x), ElementType::kFloat64);
  const Expr is_above = Binary(ExprOp::kLess, threshold, value);
  lowering.Set(0, map.WriteMap(is_above, x.type()));
  return base::Ok();
}

// Columns of the last axis of X that Y lists, in one row at least. A column outside reads 0, which
// ONNX leaves undefined.
Status LowerArrayFeatureExtractor(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& x = lowering.In(0);
  if (!tensor::IsInteger(lowering.In(1).type())) return lowering.UnsupportedType(1);
  if (x.rank() == 0) return lowering.InvalidModel("Input 0 has 0 axes; at least 1 is required.");
  const Dim count = tensor::Product(lowering.In(1).shape);
  const Operand columns = lowering.Reshaped(lowering.In(1), {count});
  Shape shape = x.shape;
  if (x.rank() == 1) shape.insert(shape.begin(), 1);
  shape.back() = count;

  StepBuilder map(lowering, shape);
  const int axis = x.rank() - 1;
  std::vector<Expr> at;
  for (int k = 0; k < axis; ++k) at.push_back(map.Coordinate(k));
  at.push_back(WrapNegative(map, map.Read(columns), x.shape[axis]));
  lowering.Set(0, map.WriteMap(ReadGuarded(map, x, at, {axis}), x.type()));
  return base::Ok();
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr Operator kOperators[] = {
    {"ArrayFeatureExtractor", 1, LowerArrayFeatureExtractor, kDomain, InputKinds::kStrings},
    {"Binarizer", 1, LowerBinarizer, kDomain},
};

}  // namespace

std::span<const Operator> FeatureOperators() { return kOperators; }

}  // namespace onnxifi::ops
