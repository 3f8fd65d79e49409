// SPDX-License-Identifier: Apache-2.0
//
// BiasFolding: an Add of a constant per output channel becomes the bias of the Conv, ConvTranspose
// or MatMul before it.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REWRITE_BIAS_FOLDING_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REWRITE_BIAS_FOLDING_H_

#include "backends/core/graph/pass.h"

namespace onnxifi::ops {

// float32 and float64 only: narrower types would round once less. A MatMul of two matrices becomes
// a Gemm.
class BiasFolding : public graph::Pass {
 public:
  std::string_view name() const override { return "bias_folding"; }
  base::Result<bool> Run(graph::Graph& graph) override;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REWRITE_BIAS_FOLDING_H_
