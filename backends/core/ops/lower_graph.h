// SPDX-License-Identifier: Apache-2.0
//
// Lowering of a graph: from ONNX operators to one tensor program. Each node goes through its
// operator's entry; there is no other list of what is supported.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_LOWER_GRAPH_H_
#define ONNXIFI_BACKENDS_CORE_OPS_LOWER_GRAPH_H_

#include <memory>
#include <span>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/ops/function_source.h"
#include "backends/core/ops/squeezed_axes.h"
#include "backends/core/ops/support_answer.h"
#include "backends/core/program/program.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::ops {

// Where extents decide ranks: which branch of an If a run takes, of branches that give different
// ranks, or which axes a Squeeze without axes removes.
struct BranchRequest {
  // Of the graph's inputs in a run whose branches are to be lowered; empty: of any run.
  std::span<const tensor::Extents> inputs;
  // Becomes whether the program is for the runs alone that take the same branches.
  bool are_chosen = false;
  SqueezedAxes squeezed;
};

// Whether a graph has a node of which extents may decide the rank: such an If or Squeeze.
// LowerGraph tells whether they do.
bool MayOpenRanks(const graph::Graph& graph);

// The whole graph, all or nothing. Errors carry the node. `functions` and `branches` may be null.
base::Result<std::unique_ptr<program::Program>> LowerGraph(const graph::Graph& graph,
                                                           const FunctionSource* functions,
                                                           const StepCheck& check = nullptr,
                                                           BranchRequest* branches = nullptr);

// Every node checked on its own, for support answers: a node that cannot be lowered does not end
// it; its outputs are taken as declared and, where nothing is declared, nodes that need them answer
// UNSUPPORTED_SHAPE.
SupportAnswer LowerEachNode(const graph::Graph& graph, const FunctionSource* functions,
                            const StepCheck& check, Carrier carrier = Carrier::kDescriptors);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_LOWER_GRAPH_H_
