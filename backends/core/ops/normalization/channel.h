// SPDX-License-Identifier: Apache-2.0
//
// Channel parameters: vectors of one number per channel (axis 1), as the normalisations of images
// have them.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_NORMALIZATION_CHANNEL_H_
#define ONNXIFI_BACKENDS_CORE_OPS_NORMALIZATION_CHANNEL_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// Input `input`, a vector of as many numbers as `x` has channels, placed so that it broadcasts to
// x's shape. MISMATCHING_SHAPE if it is none.
base::Result<Operand> ChannelVector(Lowering& lowering, const Operand& x, int input);

// Refuses with INVALID_MODEL unless input 0 has at least `rank` axes.
base::Status NeedRank(const Lowering& lowering, int rank);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_NORMALIZATION_CHANNEL_H_
