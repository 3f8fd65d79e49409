// SPDX-License-Identifier: Apache-2.0
//
// Reduction states: the running states that reductions, rows and scans are made of. Each function
// appends states to a Reduction and returns the expression of their final value, for the roots (or
// results) of the step.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REDUCE_REDUCTION_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REDUCE_REDUCTION_H_

#include "backends/core/program/step.h"

namespace onnxifi::ops {

// Over no elements: 0, 1.
program::Expr AddSum(program::Reduction& reduction, program::Expr element);
program::Expr AddProduct(program::Reduction& reduction, program::Expr element);
// Over no elements: the end of the type's range that any element replaces; infinite for floats.
// Bool: false < true.
program::Expr AddMaximum(program::Reduction& reduction, program::Expr element);
program::Expr AddMinimum(program::Reduction& reduction, program::Expr element);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REDUCE_REDUCTION_H_
