// SPDX-License-Identifier: Apache-2.0
//
// AffineFolding: what multiplies each channel of a convolution or product by a constant, or adds
// one to it, disappears into its weights and bias.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REWRITE_AFFINE_FOLDING_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REWRITE_AFFINE_FOLDING_H_

#include "backends/core/graph/pass.h"

namespace onnxifi::ops {

// Add, Sub, Mul, Div and BatchNormalization, any number in any order, behind whatever ChannelAffine
// can be made for. One run folds whole chains.
class AffineFolding : public graph::Pass {
 public:
  std::string_view name() const override { return "affine_folding"; }
  base::Result<bool> Run(graph::Graph& graph) override;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REWRITE_AFFINE_FOLDING_H_
