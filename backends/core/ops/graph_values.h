// SPDX-License-Identifier: Apache-2.0
//
// GraphValues: what the values of one graph became while it is lowered: a tensor under a view, a
// sequence whose tensors are known, or a buffer of a non-tensor value. Where a value comes from
// outside the graph's nodes - an input, a constant, an enclosing graph - it is made here, when it
// is first needed.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_GRAPH_VALUES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_GRAPH_VALUES_H_

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// Of one graph, one program, and the values of the graph around it, all of which outlive it.
class GraphValues {
 public:
  // `outer`: of the enclosing graph, whose program may be another; null where captured values are
  // not to be found.
  GraphValues(const graph::Graph& graph, program::Program& program, GraphValues* outer);

  // Makes a value an input of the program, as it is declared: a graph input, or what replaces what
  // a node that cannot be lowered makes. Nothing where too little is declared.
  void Assume(graph::ValueId id);
  // A formal input of a body, as it is given.
  void AddInput(graph::ValueId id, ElementType type, Shape shape);
  void AddInput(graph::ValueId id, program::ValueType type);

  // What nodes make may have other shapes than the graph declares, from now on.
  void IgnoreDeclaredShapes() { compares_shapes_ = false; }

  // Makes the value known. UNSUPPORTED_SHAPE, UNSUPPORTED_DATATYPE: nothing makes it, or its rank
  // is open.
  Status Resolve(graph::ValueId id);
  // The same for who copes with an open rank.
  Status ResolveAnyRank(graph::ValueId id);
  // Of a tensor that is known: a run may give it fewer axes than its operand has, which has leading
  // axes of extent 1 in their place.
  bool HasOpenRank(graph::ValueId id) const { return open_ranks_.contains(id); }
  // Where its rank is needed, `choices` are asked for a branch of `node`, or to sink its readers,
  // unless they are null.
  struct OpenRank {
    BranchChoices* choices = nullptr;
    const graph::Node* node = nullptr;
    Branch first = Branch::kThen;
    bool is_only = false;
    bool is_of_data = false;
  };
  void SetOpenRank(graph::ValueId id, OpenRank open) { open_ranks_[id] = open; }
  bool IsKnown(graph::ValueId id) const;
  // Of a value that is known, and what it is known as: exactly one of these is not null.
  program::ValueType TypeOf(graph::ValueId id) const;
  const Operand* operand(graph::ValueId id) const {
    return operands_[id] ? &*operands_[id] : nullptr;
  }
  const Sequence* sequence(graph::ValueId id) const;
  const NonTensorValue* whole(graph::ValueId id) const;
  // As a tensor. UNSUPPORTED_DATATYPE if it is none.
  Result<Operand> Find(graph::ValueId id);
  Result<Operand> FindAnyRank(graph::ValueId id);
  // A known value as one that a buffer holds whole.
  NonTensorValue AsNonTensorValue(graph::ValueId id);
  // A dense copy.
  Operand Copy(const Operand& operand);

  // What a node makes; `is_inferable`: whether ONNX infers its extents, so that a declared rank
  // counts, and declared extents of an output. MISMATCHING_DATATYPE, MISMATCHING_SHAPE: not what is
  // declared. UNSUPPORTED_SHAPE: the sequences of the graph grow too long.
  Status Set(graph::ValueId id, Operand operand, bool is_inferable = true);
  Status Set(graph::ValueId id, Sequence sequence);
  Status Set(graph::ValueId id, NonTensorValue whole);
  // What `from_id` is in a lowering to the same program, whatever is declared.
  void TakeOver(graph::ValueId id, const GraphValues& from, graph::ValueId from_id);
  // Whether a known value is as declared; its rank counts with `has_rank`.
  Status CheckDeclared(graph::ValueId id, bool has_rank) const;

  // An extent of the enclosing program as one of this: the same symbol for the same expression.
  Dim Import(const Dim& outside);
  // The reverse, where it can be said with plain symbols and numbers.
  std::optional<Dim> Export(const Dim& inside) const;
  // Of the enclosing program, in the order of the inputs that they became; dense.
  std::vector<Operand> TakeCaptures() { return std::move(captures_); }

 private:
  // Whether a tensor that a node makes is as declared, as Set says.
  Status CheckMade(graph::ValueId id, const Operand& operand, bool is_inferable) const;
  Shape DeclaredShape(const graph::Value& value);
  Dim DeclaredExtent(const graph::Extent& extent, const std::string& value_name, size_t axis);
  Operand NewInput(const std::string& name, ElementType type, Shape shape);
  NonTensorValue NewInput(const std::string& name, program::ValueType type);
  Operand Constant(tensor::Tensor constant);
  Result<Operand> AbsentWeight(const graph::Value& value);
  Status Capture(graph::ValueId id, const graph::Value& value);
  // Whether a body has the sequence as one value, not as its tensors.
  bool IsCapturedWhole(graph::ValueId id) const;
  Operand Capture(const std::string& name, const Operand& outside);

  const graph::Graph& graph_;
  program::Program& program_;
  GraphValues* outer_;
  const std::unordered_set<graph::ValueId> outputs_;  // of the graph
  bool compares_shapes_ = true;
  std::vector<std::optional<Operand>> operands_;  // by ValueId
  std::unordered_map<graph::ValueId, Sequence> sequences_;
  std::unordered_map<graph::ValueId, NonTensorValue> non_tensor_values_;
  std::unordered_map<graph::ValueId, OpenRank> open_ranks_;
  size_t sequence_tensors_ = 0;  // that nodes made, one in several sequences as often
  std::map<std::string, Dim> named_symbols_;
  std::vector<Operand> captures_;
  std::unordered_map<int, Dim> imported_;  // outer node id -> symbol here
  std::unordered_map<int, Dim> exported_;  // symbol's node id here -> outer Dim
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_GRAPH_VALUES_H_
