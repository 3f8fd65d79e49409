// SPDX-License-Identifier: Apache-2.0
//
// The axes of a numpy matrix product: which become batch, rows, columns and sum, for MatMul and its
// quantised forms.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_MATMUL_H_
#define ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_MATMUL_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

struct MatMulAxes {
  Operand a;      // over batch, m, k
  Operand b;      // over batch, k, n
  Shape out;      // batch, m, n
  int batch = 0;  // how many axes of each kind; there is one k
  int m = 0;
  int n = 0;
};

// Inputs `a` and `b` by numpy's rules: one axis is a vector, leading axes are broadcast. Leading
// axes of A count as rows where B is one matrix, so that a batch multiplied with weights is one
// large product. MISMATCHING_SHAPE or INVALID_MODEL otherwise.
Result<MatMulAxes> MakeMatMulAxes(Lowering& lowering, const Operand& a, const Operand& b);

// The Contract for them, without prologues, accumulator and roots.
program::Contract MatMulContract(const MatMulAxes& axes);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_MATMUL_H_
