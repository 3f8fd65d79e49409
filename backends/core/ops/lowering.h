// SPDX-License-Identifier: Apache-2.0
//
// Lowering: what an operator's lowering function works with: the node, its inputs as operands, and
// the program that it adds steps to. One object per node, made by lower_graph.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_LOWERING_H_
#define ONNXIFI_BACKENDS_CORE_OPS_LOWERING_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/ops/branch_choices.h"
#include "backends/core/program/program.h"
#include "backends/core/program/symbolic.h"

namespace onnxifi::ops {

using base::Code;
using base::Result;
using base::Status;
using program::Expr;
using program::ExprOp;
using program::Operand;
using program::View;
using tensor::Dim;
using tensor::Dims;
using tensor::ElementType;
using tensor::Shape;

// A sequence whose length is known while lowering: its tensors, each a view as any other.
struct Sequence {
  std::vector<Operand> tensors;
  ElementType element = ElementType::kUndefined;  // of its tensors; undefined: not known yet

  program::ValueType type() const;
};

// A sequence, map or optional that is a value of the program: a buffer of it.
struct NonTensorValue {
  program::BufferId buffer = program::kNoBuffer;
  program::ValueType type;

  // As a read or write of a step.
  Operand operand() const { return {program::DenseView(buffer, ElementType::kUndefined, {}), {}}; }
};

// How elements of a type are stored in a program: strings as numbers.
inline ElementType StoredType(ElementType type) {
  return type == ElementType::kString ? ElementType::kUint64 : type;
}

// A new constant; strings under their numbers.
program::BufferId AddConstant(program::Program& program, tensor::Tensor tensor);

class Lowering;

// What an operator with subgraphs, or with loops of its own, needs of the graph's lowering.
// Implemented by lower_graph.
class BodyLowering {
 public:
  virtual ~BodyLowering() = default;
  // A formal input of a body: a tensor, or a non-tensor value where that is set. An extent that is
  // nothing may differ at every run of the body.
  struct Input {
    ElementType type = ElementType::kUndefined;
    std::vector<std::optional<Dim>> extents;
    std::optional<program::ValueType> value = std::nullopt;
  };
  struct Body {
    std::unique_ptr<program::Program> program;
    // Dense; bound to the program's inputs that follow the formal ones.
    std::vector<Operand> captures;
    // Per output, its extents in terms of the outer program where that can be said.
    std::vector<std::vector<std::optional<Dim>>> output_extents;
    // Per output that carries input k to the next iteration: the extents equal those that the body
    // was lowered for.
    bool KeepsExtents(int output, const Input& input) const;
  };
  // `is_whole`: by output, whether a tensor that is one becomes a non-tensor value; sequences
  // always do. May have fewer entries than there are outputs.
  virtual Result<Body> LowerBody(const graph::Graph& body, const std::vector<Input>& inputs,
                                 const std::vector<bool>& is_whole = {}) = 0;
  // Lowers a body as an operator's entry does, of the inputs and outputs of the body.
  using WriteBody = std::function<Status(Lowering& lowering)>;
  // A body of steps that an operator writes itself, in the place of `node`: of tensors, `inputs`
  // and then `captures`.
  virtual Result<Body> MakeBody(const graph::Node& node, const std::vector<Input>& inputs,
                                const std::vector<Operand>& captures, int output_count,
                                const WriteBody& write) = 0;
};

class Lowering {
 public:
  // Of a node of `graph`, both of which outlive this object.
  Lowering(const graph::Graph& graph, const graph::Node& node, program::Program& program,
           program::SymbolicValues& values, std::vector<std::optional<Operand>> inputs,
           BodyLowering& bodies);
  // Before the operator looks at it: input `input`, left out of `inputs`, is a sequence, which
  // outlives this object.
  void GiveSequence(int input, const Sequence& tensors) { sequences_.emplace(input, &tensors); }
  // Likewise of an input that is a non-tensor value.
  void GiveNonTensorValue(int input, const NonTensorValue& whole) {
    non_tensor_values_.emplace(input, &whole);
  }
  // Likewise of an input whose rank is open: it may have fewer axes than the operand, which has
  // leading axes of extent 1 in their place.
  void GiveOpenRank(int input) { open_inputs_.insert(input); }

  const graph::Node& node() const { return node_; }
  // The since_version of the node's operator.
  int version() const { return node_.since_version; }
  program::Program& program() { return program_; }
  program::ExprPool& exprs() { return program_.exprs; }
  BodyLowering& bodies() { return bodies_; }

  // Attributes. Their types were checked at import; a missing one gives the default.
  int64_t Int(std::string_view name, int64_t fallback) const;
  float Float(std::string_view name, float fallback) const;
  std::string String(std::string_view name, std::string_view fallback) const;
  const std::vector<int64_t>* Ints(std::string_view name) const;
  const std::vector<float>* Floats(std::string_view name) const;
  bool HasAttribute(std::string_view name) const;

  // Inputs.
  int input_count() const { return static_cast<int>(inputs_.size()); }
  bool Has(int input) const { return input < input_count() && inputs_[input].has_value(); }
  const Operand& In(int input) const { return *inputs_[input]; }
  // Refuses with INVALID_MODEL unless the inputs [0, count) are present.
  Status NeedInputs(int count) const;
  // The tensors of an input that is a sequence, else null. Only for operators whose entry takes
  // sequences; Has() is false for such an input.
  const Sequence* InSequence(int input) const;
  // An input that is a non-tensor value, else null; likewise.
  const NonTensorValue* InNonTensorValue(int input) const;
  // Whether the node has the input, whatever it is.
  bool HasAny(int input) const;
  // The type of an input, whatever it is, which is there.
  program::ValueType InType(int input) const;
  bool HasOpenRank(int input) const { return open_inputs_.contains(input); }
  // To be called where the results are the same, whichever rank an open one turns out to be: a node
  // with an input of open rank for which this is not called is refused.
  void TakeAnyRank(int input) { open_inputs_.erase(input); }
  // The first input of open rank that is not taken so; -1 if there is none.
  int FindOpenRank() const { return open_inputs_.empty() ? -1 : *open_inputs_.begin(); }
  // The elements of a small input as numbers or expressions, when they are known to be integers.
  std::optional<Dims> Integers(int input) const;
  // The same for an input that gives extents, positions or sizes: what is not known becomes symbols
  // that are read when the program runs. The input is a scalar or has one axis whose extent must be
  // a number, else UNSUPPORTED_SHAPE. Where something else tells how many numbers there must be, in
  // `count`, the extent may be a symbol, and a run of another extent is refused.
  Result<Dims> IntegersOrRuntime(int input, std::optional<int64_t> count = std::nullopt);
  // The tensor of an input that is a dense constant with its data, else null; of at most 64
  // elements.
  const tensor::Tensor* Constant(int input) const;
  const tensor::Tensor* SmallConstant(int input) const;

  // Axis attributes and operands: `axis` in [-rank, rank) made non-negative, else INVALID_MODEL.
  Result<int> Axis(int64_t axis, int rank) const;
  Result<std::vector<int>> Axes(const std::vector<int64_t>& axes, int rank) const;  // distinct too

  // Refuses when `condition` is 0. When that can only be told at run time, the program checks it
  // then.
  Status Require(Dim condition, Code code, std::string sentence, Dims shown = {});
  // Extents that must be equal: Require with MISMATCHING_SHAPE.
  Status RequireEqual(Dim a, Dim b, std::string_view what);
  // Numpy's rule.
  Result<Shape> Broadcast(const Shape& a, const Shape& b);

  // Outputs.
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  bool Wants(int output) const {
    return output < output_count() && node_.outputs[output] != graph::kNoValue;
  }
  // An output that the node leaves out may be set: it is dropped.
  void Set(int output, Operand operand) {
    if (output < output_count()) outputs_[output] = std::move(operand);
  }
  void SetSequence(int output, Sequence tensors) {
    if (output < output_count()) made_sequences_[output] = std::move(tensors);
  }
  void SetNonTensorValue(int output, NonTensorValue whole) {
    if (output < output_count()) made_non_tensor_values_[output] = std::move(whole);
  }
  // The rank of an output that is set to a tensor is open, as GiveOpenRank has it. `first`: the
  // branch to be tried first where what follows needs a rank.
  void SetOpenRank(int output, Branch first) { open_outputs_[output] = first; }
  const std::map<int, Branch>& open_outputs() const { return open_outputs_; }
  // The number of axes that the model declares of output `output`, a tensor; nothing if it does
  // not.
  std::optional<int> DeclaredRank(int output) const;

  // Building.
  Operand Temporary(ElementType type, Shape shape);  // a new dense buffer
  Operand ConstantTensor(tensor::Tensor tensor);     // a new constant
  // A tensor that a control or host step allocates. An extent that is nothing is bound to what the
  // step produces: `first_symbol` becomes the step's for this output, -1 where none is nothing.
  Operand Dynamic(ElementType type, const std::vector<std::optional<Dim>>& extents,
                  const std::string& name, int& first_symbol);
  NonTensorValue DynamicNonTensorValue(program::ValueType type);
  void Emit(program::Step step);
  // The operand itself if dense, else a dense copy.
  Operand Dense(const Operand& operand);
  // A view under new extents, or of a dense copy when strides cannot say it.
  Operand Reshaped(const Operand& operand, const Shape& shape);
  // A dense copy in another element type (the same operand when it has it already).
  Operand CastTo(const Operand& operand, ElementType type);
  // Symbols for `count` int64 numbers of `operand` ([count], dense or not), read when the program
  // runs. The caller knows them to be at least `lower`.
  Dims ReadAtRunTime(const Operand& operand, int count,
                     int64_t lower = std::numeric_limits<int64_t>::min());

  // Refusals; each names the node's operator.
  Status UnsupportedAttribute(std::string sentence) const;
  Status UnsupportedShape(std::string sentence) const;
  Status UnsupportedType(int input) const;  // "... element type float8e5m2 of input 0 ..."
  Status InvalidModel(std::string sentence) const;

  std::vector<std::optional<Operand>> TakeOutputs() { return std::move(outputs_); }
  std::map<int, Sequence> TakeSequences() { return std::move(made_sequences_); }
  std::map<int, NonTensorValue> TakeNonTensorValues() { return std::move(made_non_tensor_values_); }

 private:
  const graph::Graph& graph_;
  const graph::Node& node_;
  program::Program& program_;
  program::SymbolicValues& values_;
  std::vector<std::optional<Operand>> inputs_;
  std::vector<std::optional<Operand>> outputs_;
  std::map<int, const Sequence*> sequences_;                // by input
  std::map<int, Sequence> made_sequences_;                  // by output
  std::map<int, const NonTensorValue*> non_tensor_values_;  // by input
  std::map<int, NonTensorValue> made_non_tensor_values_;    // by output
  std::set<int> open_inputs_;
  std::map<int, Branch> open_outputs_;
  BodyLowering& bodies_;
};

// Collects the reads of one step over `domain` and makes the loads.
class StepBuilder {
 public:
  StepBuilder(Lowering& lowering, Shape domain) : lowering_(lowering), domain_(std::move(domain)) {}

  const Shape& domain() const { return domain_; }
  program::ExprPool& exprs() { return lowering_.exprs(); }
  // The element of `operand`, broadcast to the domain, in its own type.
  Expr Read(const Operand& operand);
  // The same, cast to the type in which arithmetic on it is done (float32 for float16, ...).
  Expr ReadArithmetic(const Operand& operand);
  // The element at the domain's coordinates of a view of the domain's rank.
  Expr ReadView(const View& view);
  // The element of `operand` at explicit int64 coordinates; coordinates outside the operand give 0.
  Expr ReadAt(const Operand& operand, const std::vector<Expr>& coordinates);
  // The element of `operand` at explicit coordinates that are known to be in range.
  Expr ReadAtUnchecked(const Operand& operand, const std::vector<Expr>& coordinates);
  // Registers a view without loading (Contract, Window, Index: their first reads).
  int AddRead(View view);
  Expr Coordinate(int axis);
  Expr Extent(Dim dim);  // int64

  // Ends as a Map: one new dense buffer of the domain's shape, holding `value` cast to `type`.
  Operand WriteMap(Expr value, ElementType type);
  // Ends as a Map into given operands of the domain's shape.
  void WriteMapTo(std::span<const Operand> targets, std::span<const Expr> values);
  void WriteMapTo(std::initializer_list<Operand> targets, std::initializer_list<Expr> values) {
    WriteMapTo(std::span(targets.begin(), targets.size()),
               std::span(values.begin(), values.size()));
  }
  // Ends as any other body; writes are views over what the family says.
  void Finish(program::Body body, std::vector<View> writes);

 private:
  Lowering& lowering_;
  Shape domain_;
  std::vector<View> reads_;
  std::vector<int> loaded_;  // the reads that ReadView made, which equal views share
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_LOWERING_H_
