// SPDX-License-Identifier: Apache-2.0
//
// Lowering of a graph, with one choice of branches after another.

#include "backends/core/ops/lower_graph.h"

#include <algorithm>
#include <utility>

#include "backends/core/ops/branch_choices.h"
#include "backends/core/ops/graph_lowering.h"
#include "backends/core/ops/sunk_readers.h"

namespace onnxifi::ops {

using graph::Graph;
using program::Program;
using program::SymbolicValues;

namespace {

// Ifs of which data choose the rank, and nodes that are moved into their branches. What follows the
// last of several, one behind another, is lowered for each combination of branches.
constexpr int kMaxSunk = 32;
constexpr size_t kMaxSunkNodes = 10'000;

// The numbers of the symbols that the inputs declare, of which the program has no others yet.
std::vector<int64_t> SymbolsOf(const Program& program, std::span<const tensor::Extents> inputs) {
  std::vector<int64_t> symbols(static_cast<size_t>(program.dims->symbol_count()));
  for (size_t k = 0; k < program.inputs.size() && k < inputs.size(); ++k) {
    const Shape& shape = program.inputs[k].shape;
    for (size_t axis = 0; axis < shape.size() && axis < inputs[k].size(); ++axis) {
      if (shape[axis].is_constant() || shape[axis].node()->symbol < 0) continue;
      symbols[static_cast<size_t>(shape[axis].node()->symbol)] = inputs[k][axis];
    }
  }
  return symbols;
}

// With the branches that are chosen so far. `out_lowered_nodes`: how far it came.
Result<std::unique_ptr<Program>> LowerOnce(const Graph& graph, const FunctionSource* functions,
                                           const StepCheck& check,
                                           std::span<const tensor::Extents> inputs,
                                           BranchChoices& choices, size_t& out_lowered_nodes,
                                           bool& out_depends_on_ones, SqueezedAxes* out_squeezed) {
  auto program = std::make_unique<Program>();
  SymbolicValues numbers(*program);
  bool is_emulated = false;
  std::vector<int64_t> symbols;
  GraphLowering lowering(graph,
                         {*program, numbers, functions, check, is_emulated, &choices,
                          inputs.empty() ? nullptr : &symbols, &out_depends_on_ones, out_squeezed},
                         /*outer=*/nullptr, /*nesting=*/0);
  // Support checks compare them: rewrites may not keep what is declared, and values need not.
  lowering.values().IgnoreDeclaredShapes();
  Status status = lowering.DeclareInputs();
  symbols = SymbolsOf(*program, inputs);
  if (status.ok()) status = lowering.LowerNodes();
  out_lowered_nodes = lowering.lowered_nodes();
  if (status.ok()) status = lowering.DeclareOutputs();
  if (!status.ok()) return status;
  return program;
}

SupportAnswer AnswerOnce(const Graph& graph, const FunctionSource* functions,
                         const StepCheck& check, Carrier carrier, BranchChoices& choices) {
  Program program;
  SymbolicValues numbers(program);
  bool is_emulated = false, depends_on_ones = false;
  GraphLowering lowering(graph,
                         {program, numbers, functions, check, is_emulated, &choices,
                          /*symbols=*/nullptr, &depends_on_ones},
                         /*outer=*/nullptr, /*nesting=*/0);
  if (carrier == Carrier::kValues) lowering.values().IgnoreDeclaredShapes();
  SupportAnswer answer;
  lowering.CheckSupportOfNodes(answer);
  lowering.CheckEdges(carrier, answer);
  return answer;
}

// Whether it may be a fault of a rank that a value was given.
bool IsOfRank(const Status& status) {
  return status.code() == Code::kInvalidModel || status.code() == Code::kMismatchingShape;
}

size_t CountRefusals(const SupportAnswer& answer) {
  return static_cast<size_t>(std::ranges::count_if(
             answer.nodes, [](const Status& status) { return !status.ok(); })) +
         (answer.edges.ok() ? 0 : 1);
}

// `out_conditional`: the If, of the graph or inside it, whose readers can be sunk; null: none.
Result<std::unique_ptr<Program>> LowerSunk(const Graph& graph, const FunctionSource* functions,
                                           const StepCheck& check, BranchRequest* branches,
                                           const graph::Node*& out_conditional) {
  const std::span<const tensor::Extents> inputs =
      branches != nullptr ? branches->inputs : std::span<const tensor::Extents>();
  BranchChoices choices;
  // Of the attempt that lowered most nodes: what ended the others were their choices.
  Status refusal;
  size_t furthest = 0;
  do {
    size_t lowered_nodes = 0;
    bool depends_on_ones = false;
    if (branches != nullptr) branches->squeezed = {};
    Result<std::unique_ptr<Program>> program =
        LowerOnce(graph, functions, check, inputs, choices, lowered_nodes, depends_on_ones,
                  branches != nullptr ? &branches->squeezed : nullptr);
    if (program.ok()) {
      if (branches != nullptr) branches->are_chosen = choices.any() || depends_on_ones;
      return program;
    }
    // Of a run's own branches the reason is that which they have.
    const bool is_further =
        lowered_nodes > furthest || (lowered_nodes == furthest && !inputs.empty());
    if (!refusal.ok() && !is_further) continue;
    refusal = std::move(program).status();
    furthest = lowered_nodes;
  } while (choices.Next());
  out_conditional = choices.unsunk();
  return refusal;
}

// Each node that is part of an If as that is answered.
SupportAnswer AnswerSunk(const Graph& graph, const FunctionSource* functions,
                         const StepCheck& check, Carrier carrier, int sunk_count,
                         size_t sunk_nodes) {
  BranchChoices choices;
  SupportAnswer best = AnswerOnce(graph, functions, check, carrier, choices);
  size_t fewest = CountRefusals(best);
  while (fewest > 0 && choices.Next()) {
    SupportAnswer answer = AnswerOnce(graph, functions, check, carrier, choices);
    const size_t refusals = CountRefusals(answer);
    if (refusals >= fewest) continue;
    best = std::move(answer);
    fewest = refusals;
  }
  if (fewest == 0 || choices.unsunk() == nullptr || sunk_count == kMaxSunk) return best;
  const std::optional<SunkGraph> sunk =
      SinkReaders(graph, *choices.unsunk(), kMaxSunkNodes - sunk_nodes);
  if (!sunk) return best;
  const SupportAnswer inside = AnswerSunk(sunk->graph, functions, check, carrier, sunk_count + 1,
                                          sunk_nodes + sunk->node_count);
  SupportAnswer answer{.nodes = {}, .is_emulated = {}, .edges = inside.edges};
  for (size_t k = 0; k < sunk->positions.size(); ++k) {
    const auto position = static_cast<size_t>(sunk->positions[k]);
    answer.nodes.push_back(inside.nodes[position]);
    answer.is_emulated.push_back(inside.is_emulated[position]);
    if (sunk->positions[k] == inside.edge_node) answer.edge_node = static_cast<int>(k);
  }
  return CountRefusals(inside) == 0 ? answer : best;
}

}  // namespace

bool MayOpenRanks(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const graph::Node& node) {
    return (node.domain.empty() && node.op_type == "If") || IsSqueezeOfOnes(node);
  });
}

Result<std::unique_ptr<Program>> LowerGraph(const Graph& graph, const FunctionSource* functions,
                                            const StepCheck& check, BranchRequest* branches) {
  std::optional<SunkGraph> sunk;
  size_t sunk_nodes = 0;
  Status refusal;
  for (int count = 0; count <= kMaxSunk; ++count) {
    const Graph& current = sunk ? sunk->graph : graph;
    const graph::Node* conditional = nullptr;
    Result<std::unique_ptr<Program>> program =
        LowerSunk(current, functions, check, branches, conditional);
    if (program.ok()) return program;
    // What does not fit the rank of a branch may be right of one that runs take.
    if (refusal.ok() || !IsOfRank(program.status())) refusal = std::move(program).status();
    std::optional<SunkGraph> next;
    if (conditional != nullptr) {
      next = SinkReaders(current, *conditional, kMaxSunkNodes - sunk_nodes);
    }
    if (!next) break;
    sunk_nodes += next->node_count;
    sunk = std::move(next);
  }
  return refusal;
}

SupportAnswer LowerEachNode(const Graph& graph, const FunctionSource* functions,
                            const StepCheck& check, Carrier carrier) {
  return AnswerSunk(graph, functions, check, carrier, /*sunk_count=*/0, /*sunk_nodes=*/0);
}

}  // namespace onnxifi::ops
