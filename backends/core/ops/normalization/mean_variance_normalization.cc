// SPDX-License-Identifier: Apache-2.0
//
// MeanVarianceNormalization, y = (x - mean) / (sqrt(variance) + 1e-9), and LpNormalization, y = x /
// norm, where a norm of 0 gives 0. ONNX's first versions had the former as an experiment, which may
// leave the division out.

#include "backends/core/ops/normalization/row.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// Images of the experiment are normalized together, channels if the node says so.
Result<std::vector<int64_t>> NormalizedAxes(const Lowering& lowering, bool is_experiment) {
  if (!is_experiment) {
    const std::vector<int64_t>* given = lowering.Ints("axes");
    return given ? *given : std::vector<int64_t>{0, 2, 3};
  }
  if (lowering.In(0).rank() != 4) {
    return lowering.InvalidModel("Input 0 has " + std::to_string(lowering.In(0).rank()) +
                                 " axes; images have 4.");
  }
  if (lowering.Int("across_channels", 0) != 0) return std::vector<int64_t>{0, 1, 2, 3};
  return std::vector<int64_t>{0, 2, 3};
}

Status LowerMeanVarianceNormalization(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const bool is_experiment = lowering.version() < 9;
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<int64_t> given, NormalizedAxes(lowering, is_experiment));
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<int> axes, lowering.Axes(given, x.rank()));
  if (axes.empty()) return lowering.UnsupportedAttribute("Attribute axes is empty.");

  const ElementType type = tensor::ArithmeticType(x.type());
  RowBuilder row(lowering, x.shape, axes);
  Expr element = row.Read(x, type);
  const RowBuilder::Moments moments = row.AddMoments(element);
  Expr result = element - moments.mean;
  if (!is_experiment || lowering.Int("normalize_variance", 1) != 0) {
    // The constant is the one in ONNX's function body.
    result = result / (Unary(ExprOp::kSqrt, moments.variance) + Like(element, 1e-9));
  }
  lowering.Set(0, row.Write(result, x.type()));
  row.Finish();
  return base::Ok();
}

Status LowerLpNormalization(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (!tensor::IsFloat(x.type())) return lowering.UnsupportedType(0);
  const int64_t p = lowering.Int("p", 2);
  if (p != 1 && p != 2) {
    return lowering.InvalidModel("Order of the norm (" + std::to_string(p) + ") is not 1 or 2.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(int axis, lowering.Axis(lowering.Int("axis", -1), x.rank()));

  RowBuilder row(lowering, x.shape, {axis});
  Expr element = row.Read(x, tensor::ArithmeticType(x.type()));
  program::Reduction reduction;
  Expr sum = AddSum(reduction, p == 1 ? Unary(ExprOp::kAbs, element) : element * element);
  Expr norm = row.AddPass(std::move(reduction), p == 1 ? sum : Unary(ExprOp::kSqrt, sum));
  Expr zero = Like(element, 0);
  lowering.Set(0, row.Write(Select(norm == zero, zero, element / norm), x.type()));
  row.Finish();
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"LpNormalization", 22, LowerLpNormalization},
    {"MeanVarianceNormalization", 13, LowerMeanVarianceNormalization},
};

}  // namespace

std::span<const Operator> MeanVarianceNormalizationOperators() { return kOperators; }

}  // namespace onnxifi::ops
