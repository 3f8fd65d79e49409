// SPDX-License-Identifier: Apache-2.0
//
// ConstantFolding: replaces nodes whose inputs are all constants by their results. What a node
// computes it asks of an Evaluator, which core/plugin gives it (the reference behind the lowering).

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_CONSTANT_FOLDING_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_CONSTANT_FOLDING_H_

#include <cstdint>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/pass.h"

namespace onnxifi::graph {

class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // The outputs of `graph`, which has no inputs, in their order. Any error means "not here": the
  // node stays. Refuses what draws random numbers, and what would need more than `limit_bytes` for
  // its results before it allocates them.
  virtual base::Result<std::vector<tensor::Tensor>> Evaluate(const Graph& graph,
                                                             int64_t limit_bytes) = 0;
};

// A result may be larger than this only where it takes the place of constants at least as large.
inline constexpr int64_t kLargestFoldedBytes = int64_t{64} << 20;

// Folds in node order, so one run folds whole chains, and drops each constant that it has used up.
// Nodes with subgraphs stay. A result that comes from a weight is a weight, as is one of more than
// kLargestStructuralCount elements.
class ConstantFolding : public Pass {
 public:
  // `evaluator` must outlive the pass.
  explicit ConstantFolding(Evaluator& evaluator) : evaluator_(evaluator) {}

  std::string_view name() const override { return "constant_folding"; }
  base::Result<bool> Run(Graph& graph) override;

 private:
  // `use_counts` are those of the nodes not folded yet.
  bool FoldNode(Graph& graph, const Node& node, std::vector<int>& use_counts);

  Evaluator& evaluator_;
};

}  // namespace onnxifi::graph

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_CONSTANT_FOLDING_H_
