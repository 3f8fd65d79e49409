// SPDX-License-Identifier: Apache-2.0
//
// ai.onnx.ml LinearRegressor, LinearClassifier: a product with constant coefficients. Where ONNX's
// reference and runtimes differ: the label is that of the largest score before the transform, and
// one score of two classes becomes -score and score before the transform.

#include <string>

#include "backends/core/ops/ml/rows.h"
#include "backends/core/ops/ml/scores.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// Rows times coefficients [count, C] plus the attribute intercepts.
Result<Operand> LinearScores(Lowering& lowering, const Operand& rows,
                             const std::vector<float>& coefficients, int64_t count) {
  const auto size = static_cast<int64_t>(coefficients.size());
  if (size == 0 || count < 1 || size % count != 0) {
    return lowering.InvalidModel("There are " + std::to_string(size) + " coefficients for " +
                                 std::to_string(count) + " rows of them.");
  }
  const std::vector<float> intercepts = FloatList(lowering, "intercepts");
  if (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != count) {
    return lowering.InvalidModel("There are " + std::to_string(intercepts.size()) +
                                 " intercepts for " + std::to_string(count) + " scores.");
  }
  const int64_t features = size / count;
  ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
      rows.shape[1], features, "The features of input 0 and of a row of coefficients"));
  const Operand matrix = program::Permute(
      ConstantNumbers(lowering, rows.type(), {count, features}, coefficients), {1, 0});
  RowProduct product(lowering, rows, matrix);
  Expr score = product.sum();
  if (!intercepts.empty()) {
    const Operand added = ConstantNumbers(lowering, rows.type(), {count}, intercepts);
    score = score + product.step().Read(added);
  }
  return product.Write(score);
}

Status LowerLinearRegressor(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Operand rows, ReadRowsAsFloats(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const PostTransform transform, ReadPostTransform(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const Operand scores,
                           LinearScores(lowering, rows, FloatList(lowering, "coefficients"),
                                        lowering.Int("targets", 1)));
  lowering.Set(0, Transformed(lowering, scores, transform));
  return base::Ok();
}

// How many rows of coefficients there are: as many as intercepts or, without those, as the features
// of the input tell; if they are not known either, as there are labels.
int64_t CountScores(const Lowering& lowering, const Operand& rows, int64_t coefficients,
                    int64_t labels) {
  const auto intercepts = static_cast<int64_t>(FloatList(lowering, "intercepts").size());
  if (intercepts > 0) return intercepts;
  const Dim features = rows.shape[1];
  if (features.is_constant()) {
    return features.constant() == 0 ? 0 : coefficients / features.constant();
  }
  return labels;
}

// The attribute multi_class says how the coefficients were trained and changes nothing here.
Status LowerLinearClassifier(Lowering& lowering) {
  ONNXIFI_ASSIGN_OR_RETURN(const Operand rows, ReadRowsAsFloats(lowering));
  ONNXIFI_ASSIGN_OR_RETURN(const PostTransform transform, ReadPostTransform(lowering));
  const Classes classes = Classes::Read(lowering, "classlabels_ints", "classlabels_strings");
  const std::vector<float> coefficients = FloatList(lowering, "coefficients");
  const int64_t count =
      CountScores(lowering, rows, static_cast<int64_t>(coefficients.size()), classes.count());
  ONNXIFI_ASSIGN_OR_RETURN(Operand scores, LinearScores(lowering, rows, coefficients, count));
  if (count == 1) {
    if (classes.count() > 2) {
      return lowering.InvalidModel("There is one row of coefficients for " +
                                   std::to_string(classes.count()) + " labels.");
    }
    lowering.Set(0, classes.LabelsOfPositive(lowering, scores));
    if (classes.count() == 2) scores = AsScoresOfTwo(lowering, scores);
  } else {
    if (classes.count() != 0 && classes.count() < count) {
      return lowering.InvalidModel("There are " + std::to_string(count) +
                                   " rows of coefficients for " + std::to_string(classes.count()) +
                                   " labels.");
    }
    lowering.Set(0, classes.LabelsOfLargest(lowering, scores));
  }
  lowering.Set(1, Transformed(lowering, scores, transform));
  return base::Ok();
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr Operator kOperators[] = {
    {"LinearClassifier", 1, LowerLinearClassifier, kDomain},
    {"LinearRegressor", 1, LowerLinearRegressor, kDomain},
};

}  // namespace

std::span<const Operator> LinearModelOperators() { return kOperators; }

}  // namespace onnxifi::ops
