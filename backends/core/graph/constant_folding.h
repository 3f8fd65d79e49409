// SPDX-License-Identifier: Apache-2.0
//
// ConstantFolding: replaces nodes whose inputs are all constants by their results. What a node
// computes it asks of an Evaluator, which core/plugin gives it (the reference behind the lowering).

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_CONSTANT_FOLDING_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_CONSTANT_FOLDING_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/pass.h"

namespace onnxifi::graph {

class Evaluator {
 public:
  // A graph without inputs.
  struct Request {
    Graph graph;
    int64_t limit_bytes;  // for all results together
    // For each value that is computed.
    int64_t value_limit_bytes = std::numeric_limits<int64_t>::max();
  };
  // Its outputs, in their order.
  using Answer = base::Result<std::vector<tensor::Tensor>>;

  virtual ~Evaluator() = default;

  // Any error means "not here": the nodes stay. Refuses what draws random numbers, what would need
  // more than `limit_bytes` for its results before it allocates them, and, if a value is limited,
  // what computes values that exceed it or whose sizes are not known beforehand.
  virtual Answer Evaluate(const Request& request) = 0;

  // How many requests it takes at a time to keep all threads busy.
  virtual size_t at_once() const { return 1; }
  // An answer to each, in their order.
  virtual std::vector<Answer> EvaluateAll(std::span<const Request> requests);
};

// A result may be larger than this only where it takes the place of constants at least as large.
inline constexpr int64_t kMaxFoldedBytes = int64_t{64} << 20;

// Nodes are evaluated together where no constant and no value of theirs is larger.
inline constexpr int64_t kMaxGroupedBytes = int64_t{16} << 10;

// Folds whole chains in one run, several nodes at a time, and drops each constant that it has used
// up. Nodes with subgraphs stay. A result that comes from a weight is a weight, as is one of more
// than kMaxStructuralCount elements.
class ConstantFolding : public Pass {
 public:
  // `evaluator` must outlive the pass.
  explicit ConstantFolding(Evaluator& evaluator) : evaluator_(evaluator) {}

  std::string_view name() const override { return "constant_folding"; }
  base::Result<bool> Run(Graph& graph) override;

 private:
  Evaluator& evaluator_;
};

}  // namespace onnxifi::graph

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_CONSTANT_FOLDING_H_
