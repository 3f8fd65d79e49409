// SPDX-License-Identifier: Apache-2.0
//
// Post transforms as Map and Row steps; labels as reads of a constant at positions.

#include "backends/core/ops/ml/scores.h"

#include <numbers>
#include <string>
#include <utility>

#include "backends/core/ops/normalization/row.h"
#include "backends/core/ops/reduce/reduction.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/program/arg_extreme.h"

namespace onnxifi::ops {
namespace {

using tensor::Tensor;

Expr Logistic(Expr x) {
  // Of -|x|, whose exponential does not overflow.
  const Expr small = Unary(ExprOp::kExp, -Unary(ExprOp::kAbs, x));
  const Expr one = Like(x, 1);
  return Select(x < Like(x, 0), small, one) / (one + small);
}

// sqrt(2) * erfinv(2 x - 1), with Winitzki's approximation of erfinv, which ONNX's reference uses.
Expr Probit(Expr x) {
  const Expr one = Like(x, 1);
  const Expr y = x + x - one;
  const Expr log = Unary(ExprOp::kLog, (one - y) * (one + y));
  const Expr a = Like(x, 2 / (std::numbers::pi * 0.147)) + Like(x, 0.5) * log;
  const Expr root =
      Unary(ExprOp::kSqrt, Unary(ExprOp::kSqrt, a * a - log * Like(x, 1 / 0.147)) - a);
  return Like(x, std::numbers::sqrt2) * Select(y < Like(x, 0), -root, root);
}

// The softmax of a row. With `skips_zeros` elements that are nearly 0 have nearly no share.
Operand SharesOfRow(Lowering& lowering, const Operand& scores, bool skips_zeros, ElementType type) {
  RowBuilder row(lowering, scores.shape, {1});
  const Expr x = row.Read(scores, scores.type());
  program::Reduction largest;
  const Expr max = AddMaximum(largest, x);
  const Expr most = row.AddPass(std::move(largest), max);
  Expr share = Unary(ExprOp::kExp, x - most);
  if (skips_zeros) {
    const Expr is_zero = Unary(ExprOp::kAbs, x) <= Like(x, 1e-7);
    share = Select(is_zero, x * Unary(ExprOp::kExp, -most), share);
  }
  program::Reduction shares;
  const Expr sum = AddSum(shares, share);
  const Expr total = row.AddPass(std::move(shares), sum);
  Expr result = share / total;
  if (skips_zeros) result = Select(total == Like(total, 0), Like(total, 0.5), result);
  const Operand out = row.Write(result, type);
  row.Finish();
  return out;
}

}  // namespace

Result<PostTransform> ReadPostTransform(const Lowering& lowering) {
  constexpr std::pair<std::string_view, PostTransform> kTransforms[] = {
      {"NONE", PostTransform::kNone},
      {"SOFTMAX", PostTransform::kSoftmax},
      {"LOGISTIC", PostTransform::kLogistic},
      {"SOFTMAX_ZERO", PostTransform::kSoftmaxZero},
      {"PROBIT", PostTransform::kProbit}};
  const std::string name = lowering.String("post_transform", "NONE");
  for (const auto& [known, transform] : kTransforms) {
    if (name == known) return transform;
  }
  return lowering.InvalidModel("Attribute post_transform is '" + name +
                               "', which is no transform.");
}

Operand Transformed(Lowering& lowering, const Operand& scores, PostTransform transform,
                    ElementType type) {
  if (transform == PostTransform::kSoftmax || transform == PostTransform::kSoftmaxZero) {
    return SharesOfRow(lowering, scores, transform == PostTransform::kSoftmaxZero, type);
  }
  if (transform == PostTransform::kNone) return lowering.CastTo(scores, type);
  StepBuilder map(lowering, scores.shape);
  const Expr x = map.Read(scores);
  return map.WriteMap(transform == PostTransform::kLogistic ? Logistic(x) : Probit(x), type);
}

Operand AsScoresOfTwo(Lowering& lowering, const Operand& scores, double sum) {
  StepBuilder map(lowering, {scores.shape[0], 2});
  const Expr score = map.Read(scores);
  const Expr is_first = map.Coordinate(1) == map.Extent(0);
  const Expr other = sum == 0 ? -score : Like(score, sum) - score;
  return map.WriteMap(Select(is_first, other, score), scores.type());
}

Classes Classes::Read(const Lowering& lowering, std::string_view numbers, std::string_view texts) {
  Classes classes;
  const auto* names = lowering.node().FindAttribute<std::vector<std::string>>(texts);
  const auto* ids = lowering.Ints(numbers);
  if (names != nullptr && !names->empty()) {
    classes.labels_ = Tensor::FromStrings({static_cast<int64_t>(names->size())}, *names);
  } else if (ids != nullptr && !ids->empty()) {
    classes.labels_ =
        Tensor::FromValues<int64_t>(ElementType::kInt64, {static_cast<int64_t>(ids->size())}, *ids);
  } else {
    classes.labels_ = Tensor::FromValues<int64_t>(ElementType::kInt64, {0}, {});
  }
  return classes;
}

Operand Classes::LabelsAt(Lowering& lowering, const Operand& positions) const {
  if (count() == 0) return positions;
  StepBuilder map(lowering, positions.shape);
  const Expr at = map.Read(positions);
  return map.WriteMap(map.ReadAtUnchecked(lowering.ConstantTensor(labels_), {at}), labels_.type());
}

Operand Classes::LabelsOfLargest(Lowering& lowering, const Operand& scores) const {
  const ReductionGeometry reduced = ReduceAxes(scores, std::vector<int>{1}, /*keepdims=*/false);
  StepBuilder reduce(lowering, reduced.data.shape);
  const Expr score = reduce.ReadView(reduced.data.view);
  program::Reduction reduction;
  const Expr position = AddArgExtreme(reduction, score, reduce.Coordinate(1), {.is_largest = true});
  return LabelsAt(lowering, WriteReduction(lowering, reduce, reduced, std::move(reduction),
                                           {{position, ElementType::kInt64}})[0]);
}

Operand Classes::LabelsOfPositive(Lowering& lowering, const Operand& scores, double limit) const {
  // What the labels are when the score is not above the limit, and when it is.
  Tensor labels = labels_;
  if (count() == 0) {
    labels = Tensor::FromValues<int64_t>(ElementType::kInt64, {2}, std::vector<int64_t>{0, 1});
  } else if (count() == 1 && labels.type() == ElementType::kString) {
    labels = Tensor::FromStrings({2}, {std::string(), labels_.strings()[0]});
  } else if (count() == 1) {
    labels = Tensor::FromValues<int64_t>(ElementType::kInt64, {2},
                                         std::vector<int64_t>{0, labels_.AsInt(0)});
  }
  const Operand column = program::RemoveAxis(scores, 1);
  StepBuilder map(lowering, column.shape);
  const Expr score = map.Read(column);
  const Expr at = Select(Like(score, limit) < score, map.Extent(1), map.Extent(0));
  return map.WriteMap(map.ReadAtUnchecked(lowering.ConstantTensor(labels), {at}), labels.type());
}

}  // namespace onnxifi::ops
