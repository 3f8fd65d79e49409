// SPDX-License-Identifier: Apache-2.0
//
// The list of graph rewrites.

#include "backends/core/ops/rewrite/passes.h"

namespace onnxifi::ops {

std::vector<std::unique_ptr<graph::Pass>> MakeRewrites() {
  std::vector<std::unique_ptr<graph::Pass>> rewrites;
  return rewrites;
}

}  // namespace onnxifi::ops
