// SPDX-License-Identifier: Apache-2.0
//
// Lowering of a graph: walks the nodes in order and hands each to its operator's entry, or lowers
// what the operator is defined as in its place. What values became is kept in GraphValues.

#include "backends/core/ops/lower_graph.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "backends/core/ops/branch_choices.h"
#include "backends/core/ops/declared_type.h"
#include "backends/core/ops/flex_attention.h"
#include "backends/core/ops/gradient.h"
#include "backends/core/ops/graph_builder.h"
#include "backends/core/ops/graph_values.h"
#include "backends/core/ops/lowering.h"
#include "backends/core/ops/operator.h"
#include "backends/core/ops/sequence_map.h"

namespace onnxifi::ops {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Type;
using graph::ValueId;
using graph::ValueIds;
using program::Buffer;
using program::Program;
using program::SymbolicValues;

constexpr int kMaxNesting = 32;

// What all lowerings of one program have in common, also those of function bodies inside it.
struct Target {
  Program& program;
  SymbolicValues& numbers;
  const FunctionSource* functions;
  const StepCheck& check;
  // Set where the check says that steps are emulated.
  bool& is_emulated;
  // Null for graphs that are made for one lowering.
  BranchChoices* choices = nullptr;
  // The numbers of the program's first symbols in the run that the graph is lowered for; null: it
  // is lowered for any.
  const std::vector<int64_t>* symbols = nullptr;

  Target WithoutChoices() const {
    return {program, numbers, functions, check, is_emulated, /*choices=*/nullptr};
  }
};

Status Unknown(const Node& node) {
  return Status(Code::kUnsupportedOperator,
                "Operator " + (node.domain.empty() ? "" : node.domain + ".") + node.op_type +
                    " of version " + std::to_string(node.since_version) + " is not supported.");
}

class GraphLowering : public BodyLowering {
 public:
  // `outer`: as GraphValues takes it.
  GraphLowering(const Graph& graph, const Target& target, GraphValues* outer, int nesting)
      : graph_(graph), target_(target), nesting_(nesting), values_(graph, target.program, outer) {}

  GraphValues& values() { return values_; }

  // The graph's own inputs become the program's, with extents as declared.
  Status DeclareInputs() {
    for (ValueId id : graph_.inputs) {
      ONNXIFI_RETURN_IF_ERROR(CheckDeclaration("Graph input", graph_.values[id]));
      values_.Assume(id);
    }
    return base::Ok();
  }

  Status LowerNodes() {
    for (const Node& node : graph_.nodes) {
      Status status = LowerNode(node);
      if (!status.ok()) return std::move(status).Context("while lowering " + graph::Describe(node));
      ++lowered_nodes_;
    }
    return base::Ok();
  }
  // How far LowerNodes came.
  size_t lowered_nodes() const { return lowered_nodes_; }

  // The graph's outputs become the program's: each a dense buffer of its own, or a non-tensor
  // value.
  Status DeclareOutputs(const std::vector<bool>& is_whole = {}) {
    Program& program = target_.program;
    std::vector<program::BufferId> taken;
    for (size_t k = 0; k < graph_.outputs.size(); ++k) {
      const ValueId id = graph_.outputs[k];
      const graph::Value& value = graph_.values[id];
      ONNXIFI_RETURN_IF_ERROR(values_.Resolve(id));
      if (values_.operand(id) == nullptr || (k < is_whole.size() && is_whole[k])) {
        program.outputs.push_back({value.name, values_.AsNonTensorValue(id).buffer, {}});
        continue;
      }
      Operand operand = *values_.operand(id);
      const Buffer& buffer = program.buffers[operand.view.buffer];
      bool is_own = buffer.kind == Buffer::Kind::kTemporary && program::IsDense(operand) &&
                    tensor::Product(buffer.shape) == tensor::Product(operand.shape) &&
                    std::find(taken.begin(), taken.end(), operand.view.buffer) == taken.end();
      if (!is_own) operand = values_.Copy(operand);
      taken.push_back(operand.view.buffer);
      program.outputs.push_back({value.name, operand.view.buffer, operand.shape});
    }
    return base::Ok();
  }

  // Each node by itself: inputs that are declared well enough are assumed, and what a node that is
  // refused would have made.
  void CheckSupportOfNodes(SupportAnswer& answer) {
    for (ValueId id : graph_.inputs) values_.Assume(id);
    answer.nodes.reserve(graph_.nodes.size());
    for (const Node& node : graph_.nodes) {
      target_.is_emulated = false;
      answer.nodes.push_back(LowerNode(node));
      answer.is_emulated.push_back(target_.is_emulated);
      if (answer.nodes.back().ok()) continue;
      for (ValueId id : node.outputs) {
        if (id != kNoValue && !values_.IsKnown(id)) values_.Assume(id);
      }
    }
  }

  // Whether what is declared of the inputs, and known of the outputs, can be carried.
  void CheckEdges(Carrier carrier, SupportAnswer& answer) {
    for (ValueId id : graph_.inputs) {
      const graph::Value& value = graph_.values[id];
      answer.edges = CheckDeclaration("Graph input", value);
      if (answer.edges.ok() && carrier == Carrier::kDescriptors) {
        answer.edges = CheckCarried("Graph input", value, ValueTypeOf(value.type));
      }
      if (answer.edges.ok()) continue;
      answer.edge_node = FindNode([&](const Node& node) { return &node.inputs; }, id);
      return;
    }
    for (ValueId id : graph_.outputs) {
      Status known = values_.Resolve(id);
      // A node that cannot make it says why.
      if (!known.ok() && !values_.HasOpenRank(id)) continue;
      answer.edges = std::move(known);
      if (answer.edges.ok() && carrier == Carrier::kDescriptors) {
        answer.edges = CheckCarried("Graph output", graph_.values[id], values_.TypeOf(id));
      }
      if (answer.edges.ok()) continue;
      answer.edge_node = FindNode([&](const Node& node) { return &node.outputs; }, id);
      return;
    }
  }

  Result<Body> LowerBody(const Graph& body, const std::vector<Input>& inputs,
                         const std::vector<bool>& is_whole) override {
    return LowerInside(body, inputs, is_whole,
                       [](GraphLowering& lowering) { return lowering.LowerNodes(); });
  }

  Result<Body> MakeBody(const Node& node, const std::vector<Input>& inputs,
                        const std::vector<Operand>& captures, int output_count,
                        const WriteBody& write) override {
    std::vector<Input> all = inputs;
    for (const Operand& operand : captures) {
      all.push_back({operand.type(), {operand.shape.begin(), operand.shape.end()}});
    }
    Graph graph;
    for (size_t k = 0; k < all.size(); ++k) {
      graph.inputs.push_back(AddNamed(graph, "input" + std::to_string(k)));
    }
    for (int k = 0; k < output_count; ++k) {
      graph.outputs.push_back(AddNamed(graph, "output" + std::to_string(k)));
    }
    const Node inside =
        MakeNode(node, node.op_type, node.since_version, graph.inputs, graph.outputs);
    ONNXIFI_ASSIGN_OR_RETURN(Body body, LowerInside(graph, all, {}, [&](GraphLowering& lowering) {
                               std::vector<std::optional<Operand>> operands;
                               for (const ValueId id : graph.inputs)
                                 operands.push_back(*lowering.values_.operand(id));
                               return lowering.LowerWith(inside, std::move(operands), write);
                             }));
    body.captures = captures;
    return body;
  }

 private:
  // The program of a body whose inputs `lower` knows by then.
  template <typename Lower>
  Result<Body> LowerInside(const Graph& body, const std::vector<Input>& inputs,
                           const std::vector<bool>& is_whole, Lower lower) {
    if (nesting_ >= kMaxNesting) {
      return Status(Code::kInvalidModel, "Subgraphs are nested deeper than the limit of " +
                                             std::to_string(kMaxNesting) + ".");
    }
    Body result;
    result.program = std::make_unique<Program>();
    result.program->strings = target_.program.strings;
    SymbolicValues numbers(*result.program);
    GraphLowering lowering(body,
                           {*result.program, numbers, target_.functions, target_.check,
                            target_.is_emulated, target_.choices},
                           &values_, nesting_ + 1);
    GraphValues& values = lowering.values_;
    for (size_t k = 0; k < inputs.size() && k < body.inputs.size(); ++k) {
      const ValueId id = body.inputs[k];
      if (inputs[k].value) {
        values.AddInput(id, *inputs[k].value);
        continue;
      }
      Shape shape;
      for (const std::optional<Dim>& extent : inputs[k].extents) {
        shape.push_back(extent ? values.Import(*extent)
                               : result.program->dims->NewSymbol(body.values[id].name,
                                                                 /*is_data=*/false));
      }
      values.AddInput(id, inputs[k].type, std::move(shape));
    }
    ONNXIFI_RETURN_IF_ERROR(lower(lowering));
    ONNXIFI_RETURN_IF_ERROR(lowering.DeclareOutputs(is_whole));
    result.captures = values.TakeCaptures();
    for (const program::Port& port : result.program->outputs) {
      std::vector<std::optional<Dim>>& extents = result.output_extents.emplace_back();
      for (const Dim& extent : port.shape) extents.push_back(values.Export(extent));
    }
    return result;
  }

  // The first node of which `id` is among the values that `list` gives; -1 if there is none.
  template <typename List>
  int FindNode(List list, ValueId id) const {
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      const ValueIds& values = *list(graph_.nodes[k]);
      if (std::find(values.begin(), values.end(), id) != values.end()) return static_cast<int>(k);
    }
    return -1;
  }

  Status LowerNode(const Node& node) {
    const Operator* entry = FindOperator(node.domain, node.op_type);
    if (entry == nullptr && target_.functions != nullptr) {
      entry = target_.functions->FindEntry(node.domain, node.op_type);
    }
    if (entry == nullptr && node.domain.empty() && node.op_type == "SequenceMap") {
      return LowerSequenceMap(node);
    }
    if (entry == nullptr && node.domain == "ai.onnx.preview" && node.op_type == "FlexAttention") {
      return LowerFlexAttention(node);
    }
    if (entry == nullptr && node.domain == "ai.onnx.preview.training" &&
        node.op_type == "Gradient") {
      return LowerGradient(node);
    }
    if (entry == nullptr) return ExpandNode(node);
    if (const std::optional<Dim> condition = FindCondition(node)) {
      if (const std::optional<Branch> branch = FindBranch(node, *condition)) {
        return LowerBranch(node, *condition, *branch);
      }
    }
    if (node.since_version > entry->newest_version) {
      return Status(Code::kUnsupportedVersion, node.op_type + " of version " +
                                                   std::to_string(node.since_version) +
                                                   " is newer than the newest supported version (" +
                                                   std::to_string(entry->newest_version) + ").");
    }
    ONNXIFI_ASSIGN_OR_RETURN(std::vector<std::optional<Operand>> inputs, InputsOf(node, *entry));
    return LowerWith(node, std::move(inputs), entry->lower);
  }

  // Lowers a node, whose operands are those of its inputs that are tensors, by `lower`.
  template <typename Lower>
  Status LowerWith(const Node& node, std::vector<std::optional<Operand>> inputs,
                   const Lower& lower) {
    Program& program = target_.program;
    const size_t first_step = program.steps.size();
    const size_t first_buffer = program.buffers.size();
    Lowering lowering(graph_, node, program, target_.numbers, std::move(inputs), *this);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] == kNoValue) continue;
      const Sequence* sequence = values_.sequence(node.inputs[k]);
      if (sequence != nullptr) lowering.GiveSequence(static_cast<int>(k), *sequence);
      const NonTensorValue* whole = values_.whole(node.inputs[k]);
      if (whole != nullptr) lowering.GiveNonTensorValue(static_cast<int>(k), *whole);
    }
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] == kNoValue || !values_.HasOpenRank(node.inputs[k])) continue;
      lowering.GiveOpenRank(static_cast<int>(k));
    }
    const Status lowered = lower(lowering);
    if (!lowered.ok() && lowering.FindOpenRank() < 0) return lowered;
    // Of another rank the node may be right.
    if (const int open = lowering.FindOpenRank(); open >= 0) {
      return values_.Resolve(node.inputs[static_cast<size_t>(open)]);
    }
    for (size_t b = first_buffer; b < program.buffers.size(); ++b) {
      const Buffer& buffer = program.buffers[b];
      if (IsAddressable(buffer.type, tensor::Product(buffer.shape))) continue;
      return RefuseSize(node.op_type + ": An intermediate or output tensor", buffer.shape);
    }
    ONNXIFI_RETURN_IF_ERROR(KeepOutputs(node, lowering));
    if (!target_.check) return base::Ok();
    Status checked = target_.check(program, first_step);
    if (checked.code() != Code::kFallback) return checked;
    target_.is_emulated = true;
    return base::Ok();
  }

  // The inputs that are tensors; nothing for those omitted and, where the operator takes any value,
  // for the others.
  Result<std::vector<std::optional<Operand>>> InputsOf(const Node& node, const Operator& entry) {
    std::vector<std::optional<Operand>> inputs;
    inputs.reserve(node.inputs.size());
    for (ValueId id : node.inputs) {
      std::optional<Operand>& input = inputs.emplace_back();
      if (id == kNoValue) continue;
      if (entry.input_kinds == InputKinds::kValues) {
        ONNXIFI_RETURN_IF_ERROR(values_.Resolve(id));
        if (const Operand* operand = values_.operand(id)) input = *operand;
        continue;
      }
      ONNXIFI_ASSIGN_OR_RETURN(input, values_.FindAnyRank(id));
      if (input->type() == ElementType::kString && entry.input_kinds == InputKinds::kNumbers) {
        return Status(Code::kUnsupportedDatatype, "Value " + Quoted(graph_.values[id].name) +
                                                      " is a tensor of strings, which " +
                                                      node.op_type + " does not take.");
      }
    }
    return inputs;
  }

  Status KeepOutputs(const Node& node, Lowering& lowering) {
    // ONNX infers no extents of these, and converters declare others than they have.
    const bool is_uninferred = node.domain == "ai.onnx.ml" || FollowsUninferred(node);
    // Its tensor follows from nothing, and ONNX Runtime's model builder declares [1] as [].
    const bool is_constant = node.domain.empty() && node.op_type == "Constant";
    for (auto& [output, sequence] : lowering.TakeSequences()) {
      const ValueId id = node.outputs[output];
      if (id != kNoValue) ONNXIFI_RETURN_IF_ERROR(values_.Set(id, std::move(sequence)));
    }
    for (auto& [output, whole] : lowering.TakeNonTensorValues()) {
      const ValueId id = node.outputs[output];
      if (id != kNoValue) ONNXIFI_RETURN_IF_ERROR(values_.Set(id, std::move(whole)));
    }
    std::vector<std::optional<Operand>> tensors = lowering.TakeOutputs();
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id = node.outputs[k];
      if (id == kNoValue || values_.sequence(id) != nullptr || values_.whole(id) != nullptr) {
        continue;
      }
      if (!tensors[k]) {
        return Status(Code::kUnsupportedAttribute,
                      node.op_type + ": Output " + std::to_string(k) + " is not supported.");
      }
      const auto open = lowering.open_outputs().find(static_cast<int>(k));
      const bool is_open = open != lowering.open_outputs().end();
      ONNXIFI_RETURN_IF_ERROR(values_.Set(
          id, *std::move(tensors[k]), /*is_inferable=*/!is_open && !is_uninferred && !is_constant));
      if (is_uninferred) uninferred_.insert(id);
      if (is_open) SetOpenRank(node, id, open->second);
    }
    return base::Ok();
  }

  // Whether it reads what a branch gave that stands for an If, of which exporters declare ranks as
  // the other branch has them, what an operator of ai.onnx.ml gave, or what was made of either.
  bool FollowsUninferred(const Node& node) const {
    return std::ranges::any_of(node.inputs, [&](ValueId id) { return uninferred_.contains(id); });
  }

  // A branch can be chosen where extents tell the condition; it is that of the run, if there is
  // one, or else `first`.
  void SetOpenRank(const Node& node, ValueId id, Branch first) {
    const std::optional<Dim> condition = FindCondition(node);
    if (!condition || target_.choices == nullptr) return values_.SetOpenRank(id, {});
    const std::optional<int64_t> number = Evaluate(*condition);
    if (number) first = *number != 0 ? Branch::kThen : Branch::kElse;
    values_.SetOpenRank(id, {target_.choices, &node, first, /*is_only=*/number.has_value()});
  }

  // What an expression is in the run that the graph is lowered for.
  std::optional<int64_t> Evaluate(const Dim& dim) const {
    if (dim.is_constant()) return dim.constant();
    if (target_.symbols == nullptr) return std::nullopt;
    const auto known = static_cast<int>(target_.symbols->size());
    if (dim.node()->last_symbol >= known) return std::nullopt;
    const tensor::DimTable& table = *target_.program.dims;
    std::vector<int64_t> values(static_cast<size_t>(table.node_count()));
    table.Evaluate(*target_.symbols, 0, known, values);
    return tensor::ValueOf(dim, values);
  }

  // An operator without an entry that is defined as a function: its body is lowered in place.
  Status ExpandNode(const Node& node) {
    if (target_.functions == nullptr || nesting_ >= kMaxNesting) return Unknown(node);
    std::vector<Type> types;
    ValueIds inputs;
    for (ValueId id : node.inputs) {
      Type& type = types.emplace_back();
      if (id == kNoValue) continue;
      ONNXIFI_RETURN_IF_ERROR(values_.Resolve(id));
      type = TypeOf(values_.TypeOf(id));
      inputs.push_back(id);
      const Operand* operand = values_.operand(id);
      if (operand == nullptr) continue;
      for (size_t axis = 0; axis < operand->shape.size(); ++axis) {
        const Dim& dim = operand->shape[axis];
        if (dim.is_constant()) (*type.extents)[axis].number = dim.constant();
      }
    }
    Result<std::unique_ptr<Graph>> expanded = target_.functions->Expand(node, types);
    if (!expanded.ok()) {
      return expanded.status().code() == Code::kUnsupportedOperator ? Unknown(node)
                                                                    : std::move(expanded).status();
    }
    Graph& body = **expanded;
    for (Node& inner : body.nodes) inner.index = node.index;
    DeclareRanks(node, body);
    if (inputs.size() < body.inputs.size() || body.outputs.size() < node.outputs.size()) {
      return Status(Code::kInternalError,
                    "The function body of " + node.op_type + " does not fit its node.");
    }
    GraphLowering lowering(body, target_.WithoutChoices(), /*outer=*/nullptr, nesting_ + 1);
    for (size_t k = 0; k < body.inputs.size(); ++k) {
      lowering.values_.TakeOver(body.inputs[k], values_, inputs[k]);
    }
    return LowerExpanded(node, body, lowering);
  }

  // Outputs of a definition whose rank its inputs do not tell, and what they are other names for,
  // have the rank that the model declares of the node's.
  void DeclareRanks(const Node& node, Graph& body) const {
    for (size_t k = 0; k < node.outputs.size() && k < body.outputs.size(); ++k) {
      if (node.outputs[k] == kNoValue) continue;
      const Type& declared = graph_.values[node.outputs[k]].type;
      if (declared.kind != Type::Kind::kTensor || !declared.extents) continue;
      ValueId id = body.outputs[k];
      for (auto inner = body.nodes.rbegin(); inner != body.nodes.rend(); ++inner) {
        if (inner->outputs.empty() || inner->outputs[0] != id) continue;
        Type& type = body.values[id].type;
        if (type.kind == Type::Kind::kUnknown) {
          type = {.kind = Type::Kind::kTensor, .element = declared.element};
        }
        if (type.kind != Type::Kind::kTensor || type.extents) break;
        type.extents.emplace(declared.extents->size());
        if (inner->op_type != "Identity" || !inner->domain.empty()) break;
        id = inner->inputs[0];
      }
    }
  }

  // The condition of an If whose branches can stand in its place, as far as extents tell it.
  std::optional<Dim> FindCondition(const Node& node) {
    if (!node.domain.empty() || node.op_type != "If" || node.inputs.size() != 1) {
      return std::nullopt;
    }
    for (const Branch branch : {Branch::kThen, Branch::kElse}) {
      const Graph* graph = FindGraph(node, branch);
      if (graph == nullptr || !graph->inputs.empty() ||
          graph->outputs.size() != node.outputs.size()) {
        return std::nullopt;
      }
    }
    const ValueId id = node.inputs[0];
    if (id == kNoValue || !values_.Resolve(id).ok()) return std::nullopt;
    const Operand* condition = values_.operand(id);
    if (condition == nullptr || condition->type() != ElementType::kBool) return std::nullopt;
    const std::optional<Dims> known = target_.numbers.Find(*condition);
    return known && known->size() == 1 ? std::optional(known->front()) : std::nullopt;
  }

  static const Graph* FindGraph(const Node& node, Branch branch) {
    const auto* graph = node.FindAttribute<std::shared_ptr<const Graph>>(
        branch == Branch::kThen ? "then_branch" : "else_branch");
    return graph == nullptr ? nullptr : graph->get();
  }

  // The branch that an If is lowered as, if it is one alone.
  std::optional<Branch> FindBranch(const Node& node, const Dim& condition) const {
    if (condition.is_constant()) return condition.constant() != 0 ? Branch::kThen : Branch::kElse;
    return target_.choices != nullptr ? target_.choices->Find(node) : std::nullopt;
  }

  // In place of the node: results have the ranks of this branch alone, whatever is declared, which
  // may be of the other.
  Status LowerBranch(const Node& node, const Dim& condition, Branch branch) {
    const Graph* graph = FindGraph(node, branch);
    if (nesting_ >= kMaxNesting) return Unknown(node);
    if (!condition.is_constant()) Require(node, condition, branch);
    GraphLowering lowering(*graph, target_, &values_, nesting_ + 1);
    return LowerExpanded(node, *graph, lowering, /*is_branch=*/true);
  }

  // That a run takes the branch. Before what the branch requires itself.
  void Require(const Node& node, const Dim& condition, Branch branch) {
    const bool is_then = branch == Branch::kThen;
    const Dim is_false = Equal(condition, 0);
    Status violation(Code::kUnsupportedShape,
                     std::string("If: The extents of the run take its ") +
                         (is_then ? "else_branch" : "then_branch") +
                         ", and the graph is lowered for the rank that its " +
                         (is_then ? "then_branch" : "else_branch") + " gives.");
    violation.Context("while running " + graph::Describe(node));
    Dims shown;
    AddSymbols(condition, shown);
    target_.program.requirements.push_back(
        {is_then ? Equal(is_false, 0) : is_false, std::move(violation), std::move(shown)});
  }

  // The symbols of an expression, as far as a sentence has use for them.
  static void AddSymbols(const Dim& dim, Dims& symbols) {
    constexpr size_t kMaxShown = 4;
    if (dim.is_constant() || symbols.size() == kMaxShown) return;
    const tensor::DimNode& node = *dim.node();
    if (node.kind == tensor::DimNode::Kind::kSymbol) {
      if (std::ranges::find(symbols, dim) == symbols.end()) symbols.push_back(dim);
      return;
    }
    for (const Dim& operand : node.operands) AddSymbols(operand, symbols);
    for (const tensor::DimNode::Term& term : node.terms) {
      for (const tensor::DimNode* atom : term.atoms) AddSymbols(Dim(*atom), symbols);
    }
  }

  // Its definition as a function is of the graph that it owns, so it is made here.
  Status LowerSequenceMap(const Node& node) {
    std::vector<bool> is_sequence;
    for (ValueId id : node.inputs) {
      if (id != kNoValue) ONNXIFI_RETURN_IF_ERROR(values_.Resolve(id));
      is_sequence.push_back(id != kNoValue && values_.TypeOf(id).is_sequence());
    }
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> body,
                             ExpandSequenceMap(node, is_sequence));
    GraphLowering lowering(*body, target_.WithoutChoices(), &values_, nesting_ + 1);
    return LowerExpanded(node, *body, lowering);
  }

  // Its definition is of the nodes before it.
  Status LowerGradient(const Node& node) {
    const FindTensor find = [&](ValueId id) {
      return values_.Resolve(id).ok() ? values_.operand(id) : nullptr;
    };
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> made, ExpandGradient(graph_, node, find));
    GraphLowering lowering(*made, target_.WithoutChoices(), &values_, nesting_ + 1);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      ONNXIFI_ASSIGN_OR_RETURN(Operand input, values_.Find(node.inputs[k]));
      ONNXIFI_RETURN_IF_ERROR(lowering.values_.Set(made->inputs[k], std::move(input)));
    }
    return LowerExpanded(node, *made, lowering);
  }

  // Likewise; the graphs that it owns are lowered in place, between those of its definition.
  Status LowerFlexAttention(const Node& node) {
    std::vector<Operand> inputs;
    for (ValueId id : node.inputs) {
      if (id == kNoValue) break;
      ONNXIFI_ASSIGN_OR_RETURN(inputs.emplace_back(), values_.Find(id));
    }
    if (inputs.size() != 3 || node.outputs.size() != 1) {
      return Status(Code::kInvalidModel, "FlexAttention: It has not Q, K, V and one output.");
    }
    ONNXIFI_ASSIGN_OR_RETURN(FlexAttention flex,
                             ExpandFlexAttention(node, inputs[0], inputs[1], inputs[2]));
    for (program::Requirement& requirement : flex.requirements) {
      requirement.violation.Context("while running " + graph::Describe(node));
      target_.program.requirements.push_back(std::move(requirement));
    }
    ONNXIFI_ASSIGN_OR_RETURN(Operand scores,
                             LowerInPlace(node, flex.scores, {inputs[0], inputs[1]}));
    ONNXIFI_ASSIGN_OR_RETURN(scores, LowerModifier(node, flex.score_mod.get(), scores));
    ONNXIFI_ASSIGN_OR_RETURN(Operand shares, LowerInPlace(node, flex.softmax, {scores}));
    ONNXIFI_ASSIGN_OR_RETURN(shares, LowerModifier(node, flex.prob_mod.get(), shares));
    ONNXIFI_ASSIGN_OR_RETURN(Operand result, LowerInPlace(node, flex.product, {shares, inputs[2]}));
    if (node.outputs[0] == kNoValue) return base::Ok();
    return values_.Set(node.outputs[0], std::move(result));
  }

  // A graph that gives its input in other values, or null.
  Result<Operand> LowerModifier(const Node& node, const Graph* modifier, const Operand& input) {
    if (modifier == nullptr) return input;
    ONNXIFI_ASSIGN_OR_RETURN(Operand result, LowerInPlace(node, *modifier, {input}));
    if (result.type() != input.type() || result.rank() != input.rank()) {
      return Status(Code::kInvalidModel, "FlexAttention: A graph that it owns gives another " +
                                             std::string("type or rank than it gets."));
    }
    return result;
  }

  // The one output, a tensor, of a graph that is lowered in place of `node` or inside it.
  Result<Operand> LowerInPlace(const Node& node, const Graph& graph,
                               const std::vector<Operand>& inputs) {
    if (nesting_ >= kMaxNesting) return Unknown(node);
    GraphLowering lowering(graph, target_.WithoutChoices(), &values_, nesting_ + 1);
    for (size_t k = 0; k < inputs.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(lowering.values_.Set(graph.inputs[k], inputs[k]));
    }
    Status status = lowering.LowerNodes();
    if (!status.ok()) return std::move(status).Context("in the function body of " + node.op_type);
    return lowering.values_.Find(graph.outputs[0]);
  }

  // Lowers the definition of a node, whose lowering has its inputs, in place of the node.
  Status LowerExpanded(const Node& node, const Graph& body, GraphLowering& lowering,
                       bool is_branch = false) {
    Status status = lowering.LowerNodes();
    if (!status.ok()) return std::move(status).Context("in the function body of " + node.op_type);
    const bool is_uninferred = is_branch || FollowsUninferred(node);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id = node.outputs[k];
      if (id == kNoValue) continue;
      ONNXIFI_RETURN_IF_ERROR(lowering.values_.ResolveAnyRank(body.outputs[k]));
      values_.TakeOver(id, lowering.values_, body.outputs[k]);
      ONNXIFI_RETURN_IF_ERROR(values_.CheckDeclared(id, /*has_rank=*/!is_uninferred));
      if (is_uninferred) uninferred_.insert(id);
    }
    return base::Ok();
  }

  const Graph& graph_;
  const Target target_;
  const int nesting_;
  GraphValues values_;
  std::unordered_set<ValueId> uninferred_;  // ONNX knows no extents of these
  size_t lowered_nodes_ = 0;
};

}  // namespace

bool BodyLowering::Body::KeepsExtents(int output, const Input& input) const {
  const std::vector<std::optional<Dim>>& extents = output_extents[output];
  if (extents.size() != input.extents.size()) return false;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (input.extents[axis] && extents[axis] != input.extents[axis]) return false;
  }
  return true;
}

namespace {

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
                                           BranchChoices& choices, size_t& out_lowered_nodes) {
  auto program = std::make_unique<Program>();
  SymbolicValues numbers(*program);
  bool is_emulated = false;
  std::vector<int64_t> symbols;
  GraphLowering lowering(graph,
                         {*program, numbers, functions, check, is_emulated, &choices,
                          inputs.empty() ? nullptr : &symbols},
                         /*outer=*/nullptr, /*nesting=*/0);
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
  bool is_emulated = false;
  GraphLowering lowering(graph, {program, numbers, functions, check, is_emulated, &choices},
                         /*outer=*/nullptr, /*nesting=*/0);
  SupportAnswer answer;
  lowering.CheckSupportOfNodes(answer);
  lowering.CheckEdges(carrier, answer);
  return answer;
}

size_t CountRefusals(const SupportAnswer& answer) {
  return static_cast<size_t>(std::ranges::count_if(
             answer.nodes, [](const Status& status) { return !status.ok(); })) +
         (answer.edges.ok() ? 0 : 1);
}

}  // namespace

Result<std::unique_ptr<Program>> LowerGraph(const Graph& graph, const FunctionSource* functions,
                                            const StepCheck& check, BranchRequest* branches) {
  const std::span<const tensor::Extents> inputs =
      branches != nullptr ? branches->inputs : std::span<const tensor::Extents>();
  BranchChoices choices;
  // Of the attempt that lowered most nodes: what ended the others were their choices.
  Status refusal;
  size_t furthest = 0;
  do {
    size_t lowered_nodes = 0;
    Result<std::unique_ptr<Program>> program =
        LowerOnce(graph, functions, check, inputs, choices, lowered_nodes);
    if (program.ok()) {
      if (branches != nullptr) branches->are_chosen = choices.any();
      return program;
    }
    // Of a run's own branches the reason is that which they have.
    const bool is_further =
        lowered_nodes > furthest || (lowered_nodes == furthest && !inputs.empty());
    if (!refusal.ok() && !is_further) continue;
    refusal = std::move(program).status();
    furthest = lowered_nodes;
  } while (choices.Next());
  return refusal;
}

SupportAnswer LowerEachNode(const Graph& graph, const FunctionSource* functions,
                            const StepCheck& check, Carrier carrier) {
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
  return best;
}

}  // namespace onnxifi::ops
