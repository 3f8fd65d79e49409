// SPDX-License-Identifier: Apache-2.0
//
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, which is the former of a LogSoftmax over
// the classes (axis 1):
//   loss[n, d...] = -weight[t] * log_probability[n, t, d...],  t = target[n, d...];  0 where t is
//   ignore_index.
// Reduction `mean` divides by the sum of the weights.

#include "backends/core/ops/normalization/row.h"
#include "backends/core/ops/reduce/reduction_geometry.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// Shapes [N, C, D...] of the scores, [N, D...] of the targets and [C] of the weights.
Status CheckInputs(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  const Operand& scores = lowering.In(0);
  const Operand& target = lowering.In(1);
  if (!tensor::IsFloat(scores.type())) return lowering.UnsupportedType(0);
  if (!tensor::IsInteger(target.type())) return lowering.UnsupportedType(1);
  if (scores.rank() < 2 || target.rank() != scores.rank() - 1) {
    return Status(Code::kMismatchingShape,
                  lowering.node().op_type + ": Targets of shape " + tensor::ToString(target.shape) +
                      " do not fit scores of shape " + tensor::ToString(scores.shape) + ".");
  }
  for (int axis = 0; axis < target.rank(); ++axis) {
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(target.shape[axis],
                                                  scores.shape[axis == 0 ? 0 : axis + 1],
                                                  "Extents of targets and scores"));
  }
  if (!lowering.Has(2)) return base::Ok();
  if (lowering.In(2).rank() != 1) {
    return Status(Code::kMismatchingShape, lowering.node().op_type + ": Weights have " +
                                               std::to_string(lowering.In(2).rank()) +
                                               " axes and must have 1.");
  }
  return lowering.RequireEqual(lowering.In(2).shape[0], scores.shape[1],
                               "Number of weights and of classes");
}

struct Term {
  Expr loss, weight;
};

// Loss and weight of the target at the coordinates of `step`, over [N, D...].
Term ReadTerm(Lowering& lowering, StepBuilder& step, const Operand& log_probability) {
  const ElementType type = tensor::ArithmeticType(log_probability.type());
  Expr target = Cast(step.Read(lowering.In(1)), ElementType::kInt64);
  std::vector<Expr> coordinates{step.Coordinate(0), target};
  for (int axis = 2; axis < log_probability.rank(); ++axis) {
    coordinates.push_back(step.Coordinate(axis - 1));
  }
  Expr probability = Cast(step.ReadAt(log_probability, coordinates), type);
  Expr weight =
      lowering.Has(2) ? Cast(step.ReadAt(lowering.In(2), {target}), type) : Like(probability, 1);
  if (lowering.HasAttribute("ignore_index")) {
    Expr ignored = IntConstant(step.exprs(), ElementType::kInt64, lowering.Int("ignore_index", 0));
    weight = Select(target == ignored, Like(weight, 0), weight);
    probability = Select(target == ignored, Like(weight, 0), probability);
  }
  return {-probability * weight, weight};
}

Status WriteLoss(Lowering& lowering, const Operand& log_probability) {
  const ElementType type = lowering.In(0).type();
  const std::string reduce = lowering.String("reduction", "mean");
  if (reduce == "none") {
    StepBuilder map(lowering, lowering.In(1).shape);
    lowering.Set(0, map.WriteMap(ReadTerm(lowering, map, log_probability).loss, type));
    return base::Ok();
  }
  if (reduce != "mean" && reduce != "sum") {
    return lowering.InvalidModel("Reduction '" + reduce +
                                 "' is not one of 'none', 'mean' and 'sum'.");
  }
  const ReductionGeometry reduced = ReduceAllAxes(lowering.In(1));
  StepBuilder step(lowering, reduced.data.shape);
  const Term term = ReadTerm(lowering, step, log_probability);
  program::Reduction reduction;
  Expr result = AddSum(reduction, term.loss);
  if (reduce == "mean") result = result / AddSum(reduction, term.weight);
  lowering.Set(0,
               WriteReduction(lowering, step, reduced, std::move(reduction), {{result, type}})[0]);
  return base::Ok();
}

Status LowerNegativeLogLikelihoodLoss(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckInputs(lowering));
  return WriteLoss(lowering, lowering.In(0));
}

Status LowerSoftmaxCrossEntropyLoss(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(CheckInputs(lowering));
  const Operand& scores = lowering.In(0);
  const ElementType type = tensor::ArithmeticType(scores.type());

  RowBuilder row(lowering, scores.shape, {1});
  Expr element = row.Read(scores, type);
  program::Reduction max_reduction;
  Expr max = AddMaximum(max_reduction, element);
  Expr lowered = element - row.AddPass(std::move(max_reduction), max);
  program::Reduction sum_reduction;
  Expr sum = AddSum(sum_reduction, Unary(ExprOp::kExp, lowered));
  Expr value = lowered - Unary(ExprOp::kLog, row.AddPass(std::move(sum_reduction), sum));
  const Operand log_probability = row.Write(value, type);
  row.Finish();
  ONNXIFI_RETURN_IF_ERROR(WriteLoss(lowering, log_probability));
  if (lowering.Wants(1)) lowering.Set(1, lowering.CastTo(log_probability, scores.type()));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"NegativeLogLikelihoodLoss", 22, LowerNegativeLogLikelihoodLoss},
    {"SoftmaxCrossEntropyLoss", 13, LowerSoftmaxCrossEntropyLoss},
};

}  // namespace

std::span<const Operator> LikelihoodLossOperators() { return kOperators; }

}  // namespace onnxifi::ops
