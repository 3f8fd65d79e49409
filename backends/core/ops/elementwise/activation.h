// SPDX-License-Identifier: Apache-2.0
//
// Activation functions on scalar expressions, in forms that neither overflow nor cancel: shared by
// the activation operators and by the operators that carry an activation inside.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_ACTIVATION_H_
#define ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_ACTIVATION_H_

#include "backends/core/program/expr.h"

namespace onnxifi::ops {

// All take and give float32 or float64.
program::Expr Relu(program::Expr x);
program::Expr LeakyRelu(program::Expr x, double alpha);
program::Expr ThresholdedRelu(program::Expr x, double alpha);
program::Expr Elu(program::Expr x, double alpha);
program::Expr Celu(program::Expr x, double alpha);
program::Expr Selu(program::Expr x, double alpha, double gamma);
program::Expr Sigmoid(program::Expr x);
program::Expr HardSigmoid(program::Expr x, double alpha, double beta);
program::Expr HardSwish(program::Expr x);
program::Expr Softplus(program::Expr x);
program::Expr Softsign(program::Expr x);
program::Expr Mish(program::Expr x);
program::Expr Gelu(program::Expr x);
program::Expr GeluTanh(program::Expr x);
program::Expr Swish(program::Expr x, double alpha);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_ELEMENTWISE_ACTIVATION_H_
