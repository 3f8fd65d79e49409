// SPDX-License-Identifier: Apache-2.0
//
// NoOpElimination: takes out nodes whose result is their first input.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REWRITE_NO_OP_ELIMINATION_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REWRITE_NO_OP_ELIMINATION_H_

#include "backends/core/graph/pass.h"

namespace onnxifi::ops {

// Identity; Dropout outside training; Cast to the same type; Transpose in order; Reshape, Flatten,
// Squeeze, Unsqueeze and Expand to declared extents that are the input's; Pad by nothing; Slice of
// everything; Concat, Sum, Max, Min and Mean of one input. One that is a graph output and reads a
// graph input or constant stays.
class NoOpElimination : public graph::Pass {
 public:
  std::string_view name() const override { return "no_op_elimination"; }
  base::Result<bool> Run(graph::Graph& graph) override;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REWRITE_NO_OP_ELIMINATION_H_
