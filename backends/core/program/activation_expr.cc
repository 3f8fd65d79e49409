// SPDX-License-Identifier: Apache-2.0
//
// ActivationExpr: ONNX's formulas.

#include "backends/core/program/activation_expr.h"

namespace onnxifi::program {

Expr ActivationExpr(const Activation& activation, float clip, Expr x) {
  if (clip > 0) x = Minimum(Maximum(x, Like(x, -clip)), Like(x, clip));
  const auto scaled = [](Expr value, double factor) {
    return factor == 1 ? value : value * Like(value, factor);
  };
  const double alpha = activation.alpha;
  const double beta = activation.beta;
  switch (activation.function) {
    case CellFunction::kAffine:
      return scaled(x, alpha) + Like(x, beta);
    case CellFunction::kElu:
      return Select(x < Like(x, 0), Like(x, alpha) * Unary(ExprOp::kExpm1, x), x);
    case CellFunction::kHardSigmoid:
      return Minimum(Maximum(scaled(x, alpha) + Like(x, beta), Like(x, 0)), Like(x, 1));
    case CellFunction::kLeakyRelu:
      return Select(x < Like(x, 0), Like(x, alpha) * x, x);
    case CellFunction::kRelu:
      return Maximum(x, Like(x, 0));
    case CellFunction::kScaledTanh:
      return scaled(Unary(ExprOp::kTanh, scaled(x, beta)), alpha);
    case CellFunction::kSigmoid:
      return Like(x, 1) / (Like(x, 1) + Unary(ExprOp::kExp, -x));
    case CellFunction::kSoftplus:
      // log(1 + exp(x)), which no x overflows.
      return Maximum(x, Like(x, 0)) +
             Unary(ExprOp::kLog1p, Unary(ExprOp::kExp, -Unary(ExprOp::kAbs, x)));
    case CellFunction::kSoftsign:
      return x / (Like(x, 1) + Unary(ExprOp::kAbs, x));
    case CellFunction::kTanh:
      return Unary(ExprOp::kTanh, x);
    case CellFunction::kThresholdedRelu:
      return Select(Like(x, alpha) < x, x, Like(x, 0));
  }
  return x;
}

}  // namespace onnxifi::program
