// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml ArrayFeatureExtractor, Binarizer, FeatureVectorizer: loops over elements as any other.

#include <algorithm>
#include <string>

#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/ml/rows.h"
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

// The features of all inputs behind each other: of each input as many as inputdimensions says, cut
// off or filled up with 0. One axis is one row, axes behind the second are more features.
Status LowerFeatureVectorizer(Lowering& lowering) {
  const int count = lowering.input_count();
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(std::max(1, count)));
  const std::vector<int64_t>* widths = lowering.Ints("inputdimensions");
  if (widths != nullptr && static_cast<int>(widths->size()) != count) {
    return lowering.InvalidModel("Attribute inputdimensions has " + std::to_string(widths->size()) +
                                 " entries for " + std::to_string(count) + " inputs.");
  }
  std::vector<Operand> rows;
  Shape shape = {1, 0};
  std::vector<Dim> features;
  for (int k = 0; k < count; ++k) {
    const Operand& x = lowering.In(k);
    if (!IsFeatureType(x.type())) return lowering.UnsupportedType(k);
    if (x.rank() == 0) return lowering.InvalidModel("An input has 0 axes; at least 1 is required.");
    const Dim height = x.rank() == 1 ? Dim(1) : x.shape[0];
    const Dim width = tensor::Product(std::span(x.shape).subspan(x.rank() == 1 ? 0 : 1));
    if (k > 0) {
      ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(shape[0], height, "The rows of the inputs"));
    }
    if (k == 0 || height.is_constant()) shape[0] = height;
    if (widths != nullptr && (*widths)[static_cast<size_t>(k)] < 0) {
      return lowering.InvalidModel("Attribute inputdimensions has a negative entry.");
    }
    features.push_back(widths == nullptr ? width : Dim((*widths)[static_cast<size_t>(k)]));
    shape[1] = shape[1] + features.back();
    rows.push_back(lowering.Reshaped(x, {height, width}));
  }

  const Operand result = lowering.Temporary(ElementType::kFloat32, shape);
  Dim start = 0;
  for (size_t k = 0; k < rows.size(); ++k) {
    StepBuilder map(lowering, {shape[0], features[k]});
    const Expr value = ReadGuarded(map, rows[k], {map.Coordinate(0), map.Coordinate(1)}, {1});
    map.WriteMapTo({program::Slice(result, 1, start, 1, features[k])},
                   {Cast(value, ElementType::kFloat32)});
    start = start + features[k];
  }
  lowering.Set(0, result);
  return base::Ok();
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr Operator kOperators[] = {
    {"ArrayFeatureExtractor", 1, LowerArrayFeatureExtractor, kDomain, InputKinds::kStrings},
    {"Binarizer", 1, LowerBinarizer, kDomain},
    {"FeatureVectorizer", 1, LowerFeatureVectorizer, kDomain},
};

}  // namespace

std::span<const Operator> FeatureOperators() { return kOperators; }

}  // namespace onnxifi::ops
