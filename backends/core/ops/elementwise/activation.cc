// SPDX-License-Identifier: Apache-2.0
//
// The formulas of the activation functions.

#include "backends/core/ops/elementwise/activation.h"

#include <numbers>

namespace onnxifi::ops {

using program::Expr;
using program::ExprOp;
using program::Maximum;
using program::Minimum;

Expr Relu(Expr x) { return Maximum(x, Like(x, 0)); }

Expr LeakyRelu(Expr x, double alpha) { return Select(x < Like(x, 0), Like(x, alpha) * x, x); }

Expr ThresholdedRelu(Expr x, double alpha) { return Select(x > Like(x, alpha), x, Like(x, 0)); }

Expr Elu(Expr x, double alpha) {
  return Select(x < Like(x, 0), Like(x, alpha) * Unary(ExprOp::kExpm1, x), x);
}

Expr Celu(Expr x, double alpha) {
  Expr tail = Like(x, alpha) * Unary(ExprOp::kExpm1, x / Like(x, alpha));
  return Maximum(x, Like(x, 0)) + Minimum(tail, Like(x, 0));
}

Expr Selu(Expr x, double alpha, double gamma) {
  Expr tail = Like(x, alpha) * Unary(ExprOp::kExpm1, x);
  return Like(x, gamma) * Select(x > Like(x, 0), x, tail);
}

// exp(-x) overflows to infinity for very negative x, and 1 / infinity is the 0 that is wanted.
Expr Sigmoid(Expr x) { return Like(x, 1) / (Like(x, 1) + Unary(ExprOp::kExp, -x)); }

Expr HardSigmoid(Expr x, double alpha, double beta) {
  return Maximum(Like(x, 0), Minimum(Like(x, 1), Like(x, alpha) * x + Like(x, beta)));
}

Expr HardSwish(Expr x) { return x * HardSigmoid(x, 1.0 / 6, 0.5); }

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), whose exponential never overflows.
Expr Softplus(Expr x) {
  return Maximum(x, Like(x, 0)) +
         Unary(ExprOp::kLog1p, Unary(ExprOp::kExp, -Unary(ExprOp::kAbs, x)));
}

Expr Softsign(Expr x) { return x / (Like(x, 1) + Unary(ExprOp::kAbs, x)); }

Expr Mish(Expr x) { return x * Unary(ExprOp::kTanh, Softplus(x)); }

Expr Gelu(Expr x) {
  Expr erf = Unary(ExprOp::kErf, x * Like(x, 1 / std::numbers::sqrt2));
  return Like(x, 0.5) * x * (Like(x, 1) + erf);
}

// The approximation sqrt(2 / pi) * (x + 0.044715 x^3) of Hendrycks and Gimpel, "Gaussian Error
// Linear Units".
Expr GeluTanh(Expr x) {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  Expr inner = Like(x, scale) * (x + Like(x, 0.044715) * x * x * x);
  return Like(x, 0.5) * x * (Like(x, 1) + Unary(ExprOp::kTanh, inner));
}

Expr Swish(Expr x, double alpha) { return x * Sigmoid(Like(x, alpha) * x); }

}  // namespace onnxifi::ops
