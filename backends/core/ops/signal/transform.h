// SPDX-License-Identifier: Apache-2.0
//
// A discrete Fourier transform as a product with a matrix of cosines and sines, which is a constant
// where the length and the number of parts are.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SIGNAL_TRANSFORM_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SIGNAL_TRANSFORM_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

struct Transform {
  Dim length;  // L
  bool is_inverse = false;
  bool is_onesided = false;
  Dim used;      // elements of the input that are used, M
  Dim in_parts;  // 1: real, 2: complex
  int64_t out_parts = 2;
  Dim bins;  // elements of the output, K

  bool mirrors() const { return is_inverse && is_onesided; }
};

// e to the power of 2 pi i turn / length, for 0 <= turn < length, both int64.
struct UnitRoot {
  Expr real;
  Expr imaginary;
};
UnitRoot MakeUnitRoot(Expr turn, Expr length, ElementType type);

// `x`: [..., M, in_parts]. Gives [..., K, out_parts] in the type of `x`. `window`, if there is one,
// has an element for each of the M.
Result<Operand> TransformByMatrix(Lowering& lowering, const Transform& transform, const Operand& x,
                                  const Operand* window);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SIGNAL_TRANSFORM_H_
