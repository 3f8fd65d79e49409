// SPDX-License-Identifier: Apache-2.0
//
// Discrete Fourier transforms of long lines in stages: each is a product with a small matrix
// (Cooley and Tukey), or, of a length without small factors, a convolution with a chirp
// (Bluestein), which is made of transforms itself. The work grows with the length times the sum of
// its factors, where that of the matrix of the whole transform, and its memory, grow with the
// square.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_SIGNAL_FAST_TRANSFORM_H_
#define ONNXIFI_BACKENDS_CORE_OPS_SIGNAL_FAST_TRANSFORM_H_

#include "backends/core/ops/signal/transform.h"

namespace onnxifi::ops {

// Whether lines of these extents ([..., M, in_parts]) are long enough, and known to be.
bool IsFasterInStages(const Transform& transform, const Shape& extents);

// What TransformByMatrix gives, where IsFasterInStages.
Result<Operand> TransformInStages(Lowering& lowering, const Transform& transform, const Operand& x,
                                  const Operand* window);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_SIGNAL_FAST_TRANSFORM_H_
