// SPDX-License-Identifier: Apache-2.0
//
// GraphLowering: one graph on its way into a program: walks the nodes in order and hands each to
// its operator's entry, or lowers what stands in its place: a branch (open_branches.cc), what a
// Squeeze without axes removes (open_squeeze.cc), or what the operator is defined as
// (definitions.cc). What values became is kept in GraphValues.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_GRAPH_LOWERING_H_
#define ONNXIFI_BACKENDS_CORE_OPS_GRAPH_LOWERING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/core/ops/branch_choices.h"
#include "backends/core/ops/function_source.h"
#include "backends/core/ops/graph_values.h"
#include "backends/core/ops/lowering.h"
#include "backends/core/ops/operator.h"
#include "backends/core/ops/squeezed_axes.h"
#include "backends/core/ops/support_answer.h"

namespace onnxifi::ops {

// Of graphs in one another, and of what stands in a node's place.
inline constexpr int kMaxNesting = 32;

// The refusal of an operator that nobody knows.
Status Unknown(const graph::Node& node);

// What all lowerings of one program have in common, also those of function bodies inside it.
struct Target {
  program::Program& program;
  program::SymbolicValues& numbers;
  const FunctionSource* functions;
  const StepCheck& check;
  // Set where the check says that steps are emulated.
  bool& is_emulated;
  // Null for graphs that are made for one lowering.
  BranchChoices* choices = nullptr;
  // The numbers of the program's first symbols in the run that the graph is lowered for; null: it
  // is lowered for any.
  const std::vector<int64_t>* symbols = nullptr;
  // Set where the extents of a run decide which axes a Squeeze removes; null as `choices`.
  bool* depends_on_ones = nullptr;
  // What the graph's Squeezes remove; may be null.
  SqueezedAxes* squeezed = nullptr;

  Target WithoutChoices() const {
    return {program,
            numbers,
            functions,
            check,
            is_emulated,
            /*choices=*/nullptr,
            /*symbols=*/nullptr,
            /*depends_on_ones=*/nullptr,
            squeezed};
  }
};

class GraphLowering : public BodyLowering {
 public:
  // `outer`: as GraphValues takes it.
  GraphLowering(const graph::Graph& graph, const Target& target, GraphValues* outer, int nesting)
      : graph_(graph), target_(target), nesting_(nesting), values_(graph, target.program, outer) {}

  GraphValues& values() { return values_; }

  // The graph's own inputs become the program's, with extents as declared.
  Status DeclareInputs();
  Status LowerNodes();
  // How far LowerNodes came.
  size_t lowered_nodes() const { return lowered_nodes_; }
  // The graph's outputs become the program's: each a dense buffer of its own, or a non-tensor
  // value.
  Status DeclareOutputs(const std::vector<bool>& is_whole = {});
  // Each node by itself: inputs that are declared well enough are assumed, and what a node that is
  // refused would have made.
  void CheckSupportOfNodes(SupportAnswer& answer);
  // Whether what is declared of the inputs, and known of the outputs, can be carried.
  void CheckEdges(Carrier carrier, SupportAnswer& answer);
  Result<Body> LowerBody(const graph::Graph& body, const std::vector<Input>& inputs,
                         const std::vector<bool>& is_whole) override;
  Result<Body> MakeBody(const graph::Node& node, const std::vector<Input>& inputs,
                        const std::vector<Operand>& captures, int output_count,
                        const WriteBody& write) override;

 private:
  // The program of a body whose inputs `lower` knows by then.
  template <typename Lower>
  Result<Body> LowerInside(const graph::Graph& body, const std::vector<Input>& inputs,
                           const std::vector<bool>& is_whole, Lower lower);
  // The first node of which `id` is among the values that `list` gives; -1 if there is none.
  template <typename List>
  int FindNode(List list, graph::ValueId id) const;
  Status LowerNode(const graph::Node& node);
  // Lowers a node, whose operands are those of its inputs that are tensors, by `lower`.
  template <typename Lower>
  Status LowerWith(const graph::Node& node, std::vector<std::optional<Operand>> inputs,
                   const Lower& lower);
  // The inputs that are tensors; nothing for those omitted and, where the operator takes any value,
  // for the others.
  Result<std::vector<std::optional<Operand>>> InputsOf(const graph::Node& node,
                                                       const Operator& entry);
  Status KeepOutputs(const graph::Node& node, Lowering& lowering);
  // Whether it reads what a branch gave that stands for an If, of which exporters declare ranks as
  // the other branch has them, what an operator of ai.onnx.ml gave, or what was made of either.
  bool FollowsUninferred(const graph::Node& node) const;
  // The If of this graph, lowered as one, that the node follows from, or a body of it; null: there
  // is none.
  const graph::Node* FindConditional(const graph::Node& node) const;

  // An If that one of its branches stands in for (open_branches.cc).

  // A branch can be chosen where extents tell the condition; it is that of the run, if there is
  // one, or else `first`.
  void SetOpenRank(const graph::Node& node, graph::ValueId id, Branch first);
  // What an expression is in the run that the graph is lowered for.
  std::optional<int64_t> Evaluate(const Dim& dim) const;
  // The condition of an If whose branches can stand in its place, as far as extents tell it.
  std::optional<Dim> FindCondition(const graph::Node& node);
  static const graph::Graph* FindGraph(const graph::Node& node, Branch branch);
  // The branch that an If is lowered as, if it is one alone.
  std::optional<Branch> FindBranch(const graph::Node& node, const Dim& condition) const;
  // In place of the node: results have the ranks of this branch alone, whatever is declared, which
  // may be of the other.
  Status LowerBranch(const graph::Node& node, const Dim& condition, Branch branch);
  // That a run takes the branch. Before what the branch requires itself.
  void Require(const graph::Node& node, const Dim& condition, Branch branch);
  // The symbols of an expression, as far as a sentence has use for them.
  static void AddSymbols(const Dim& dim, Dims& symbols);

  // A Squeeze without axes that symbols decide (open_squeeze.cc): the extents that are 1 in the
  // run that the graph is lowered for go. Without one, as many as make the declared rank or, where
  // none is declared, those that are 1 in every run; a run in which others are 1 is refused with
  // UNSUPPORTED_SHAPE, and the graph lowered for it. Where numbers alone make the declared rank,
  // symbols stay in every run, even as 1.
  Status LowerSqueezeOfOnes(const graph::Node& node, std::vector<std::optional<Operand>> inputs,
                            const Operator& entry);
  // That it removes the extents that are 1 as numbers, and no others.
  void NoteSqueezed(const graph::Node& node, const Dims& shape);
  // Removes the extents that are 1, of symbols in the run that the graph is lowered for.
  // `out_is_open`: set where there are symbols.
  WriteBody RemoveOnes(bool& out_is_open) const;
  // What reads the result and does not fit its rank is refused with UNSUPPORTED_SHAPE, not as an
  // invalid model, while no run is known: a run may remove more.
  // LowerNode, with that refusal.
  Status LowerOfOpenRank(const graph::Node& node);

  // What operators are defined as (definitions.cc).

  // An operator without an entry that is defined as a function: its body is lowered in place.
  Status ExpandNode(const graph::Node& node);
  // Outputs of a definition whose rank its inputs do not tell, and what they are other names for,
  // have the rank that the model declares of the node's.
  void DeclareRanks(const graph::Node& node, graph::Graph& body) const;
  // Its definition as a function is of the graph that it owns, so it is made here.
  Status LowerSequenceMap(const graph::Node& node);
  // Its definition is of the nodes before it.
  Status LowerGradient(const graph::Node& node);
  // Likewise; the graphs that it owns are lowered in place, between those of its definition.
  Status LowerFlexAttention(const graph::Node& node);
  // A graph that gives its input in other values, or null.
  Result<Operand> LowerModifier(const graph::Node& node, const graph::Graph* modifier,
                                const Operand& input);
  // The one output, a tensor, of a graph that is lowered in place of `node` or inside it.
  Result<Operand> LowerInPlace(const graph::Node& node, const graph::Graph& graph,
                               const std::vector<Operand>& inputs);
  // Lowers the definition of a node, whose lowering has its inputs, in place of the node.
  Status LowerExpanded(const graph::Node& node, const graph::Graph& body, GraphLowering& lowering,
                       bool is_branch = false);

  const graph::Graph& graph_;
  const Target target_;
  const int nesting_;
  GraphValues values_;
  std::unordered_set<graph::ValueId> uninferred_;  // ONNX knows no extents of these
  // The If of this graph, lowered as one, that a value follows from.
  std::unordered_map<graph::ValueId, const graph::Node*> chosen_by_;
  size_t lowered_nodes_ = 0;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_GRAPH_LOWERING_H_
