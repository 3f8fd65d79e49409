// SPDX-License-Identifier: Apache-2.0
//
// BatchNormalizationFolding: a BatchNormalization with constant statistics disappears into the
// weights of what is before it.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REWRITE_BATCH_NORMALIZATION_FOLDING_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REWRITE_BATCH_NORMALIZATION_FOLDING_H_

#include "backends/core/graph/pass.h"

namespace onnxifi::ops {

// Behind a Conv, a ConvTranspose of one group, or a Gemm, with constant weights of float32 or
// float64. The new weights are emitted as nodes on constants, which constant folding evaluates:
//   s = scale / sqrt(var + epsilon);  W' = W * s;  bias' = (bias - mean) * s + B
class BatchNormalizationFolding : public graph::Pass {
 public:
  std::string_view name() const override { return "batch_normalization_folding"; }
  base::Result<bool> Run(graph::Graph& graph) override;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REWRITE_BATCH_NORMALIZATION_FOLDING_H_
