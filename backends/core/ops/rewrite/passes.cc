// SPDX-License-Identifier: Apache-2.0
//
// The list of graph rewrites.

#include "backends/core/ops/rewrite/passes.h"

#include "backends/core/ops/rewrite/affine_folding.h"
#include "backends/core/ops/rewrite/no_op_elimination.h"

namespace onnxifi::ops {

std::vector<std::unique_ptr<graph::Pass>> MakeRewrites() {
  std::vector<std::unique_ptr<graph::Pass>> rewrites;
  // First, since a node that does nothing hides patterns.
  rewrites.push_back(std::make_unique<NoOpElimination>());
  rewrites.push_back(std::make_unique<AffineFolding>());
  return rewrites;
}

}  // namespace onnxifi::ops
