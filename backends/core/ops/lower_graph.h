// SPDX-License-Identifier: Apache-2.0
//
// Lowering of a graph: from ONNX operators to one tensor program. Each node goes through its
// operator's entry; there is no other list of what is supported.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_LOWER_GRAPH_H_
#define ONNXIFI_BACKENDS_CORE_OPS_LOWER_GRAPH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/ops/operator.h"
#include "backends/core/program/program.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::ops {

// Called after each node with the steps it added (from `first_step` on), which it may replace.
// FALLBACK says that some of them are emulated. Any other status that is not ok ends the lowering
// with it, or, in LowerEachNode, becomes that node's verdict.
using StepCheck = std::function<base::Status(program::Program& program, size_t first_step)>;

// Operators that core/ops has no entry for: bodies of those that ONNX or a domain defines as
// functions, and lowerings that a plugin brings along.
class FunctionSource {
 public:
  virtual ~FunctionSource() = default;
  // The body for this node and these input types (unknown where omitted): a graph whose inputs and
  // outputs are the node's in order, every omitted input left out of the body. UNSUPPORTED_OPERATOR
  // if there is none.
  virtual base::Result<std::unique_ptr<graph::Graph>> Expand(
      const graph::Node& node, const std::vector<graph::Type>& input_types) const = 0;
  // The plugin's entry; null if there is none.
  virtual const Operator* FindEntry(std::string_view domain, std::string_view op_type) const {
    (void)domain, (void)op_type;
    return nullptr;
  }
};

// Where extents decide which branch of an If a run takes, and the branches give different ranks.
struct BranchRequest {
  // Of the graph's inputs in a run whose branches are to be lowered; empty: of any run.
  std::span<const tensor::Extents> inputs;
  // Becomes whether the program is for the runs alone that take the same branches.
  bool are_chosen = false;
};

// The whole graph, all or nothing. Errors carry the node. `functions` and `branches` may be null.
base::Result<std::unique_ptr<program::Program>> LowerGraph(const graph::Graph& graph,
                                                           const FunctionSource* functions,
                                                           const StepCheck& check = nullptr,
                                                           BranchRequest* branches = nullptr);

// What carries the inputs and outputs of a graph across the boundary.
enum class Carrier : uint8_t {
  kDescriptors,  // of the interface: tensors of numbers or bool
  kValues,       // of the SDK's extension: anything
};

struct SupportAnswer {
  std::vector<base::Status> nodes;  // one per node, in the graph's order
  // By node: whether the check said FALLBACK of any of its steps.
  std::vector<bool> is_emulated;
  // Whether every graph input is declared well enough to be bound, and it and every output can be
  // carried.
  base::Status edges;
  // Where `edges` refuses, the position of a node that reads or makes the value; -1: there is none.
  int edge_node = -1;
};

// Every node checked on its own, for support answers: a node that cannot be lowered does not end
// it; its outputs are taken as declared and, where nothing is declared, nodes that need them answer
// UNSUPPORTED_SHAPE.
SupportAnswer LowerEachNode(const graph::Graph& graph, const FunctionSource* functions,
                            const StepCheck& check, Carrier carrier = Carrier::kDescriptors);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_LOWER_GRAPH_H_
