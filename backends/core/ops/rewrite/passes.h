// SPDX-License-Identifier: Apache-2.0
//
// The graph rewrites that know operators, as the list that core/plugin runs.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REWRITE_PASSES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REWRITE_PASSES_H_

#include <memory>
#include <vector>

#include "backends/core/graph/pass.h"

namespace onnxifi::ops {

// In the order in which they run; constant folding and the removal of dead nodes follow them.
std::vector<std::unique_ptr<graph::Pass>> MakeRewrites();

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REWRITE_PASSES_H_
