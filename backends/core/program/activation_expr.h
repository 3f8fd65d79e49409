// SPDX-License-Identifier: Apache-2.0
//
// ActivationExpr: an activation of a Recurrent as an expression, for whoever computes a cell by
// expressions.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_ACTIVATION_EXPR_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_ACTIVATION_EXPR_H_

#include "backends/core/program/expr.h"
#include "backends/core/program/recurrent.h"

namespace onnxifi::program {

// Of x within [-clip, clip], or of x itself where `clip` is 0.
Expr ActivationExpr(const Activation& activation, float clip, Expr x);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_ACTIVATION_EXPR_H_
