// SPDX-License-Identifier: Apache-2.0
//
// Lowering of a graph: walks the nodes in order and hands each to its operator's entry, or lowers
// what the operator is defined as in its place. What values became is kept in GraphValues.

#include "backends/core/ops/lower_graph.h"

#include <algorithm>
#include <utility>

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
    }
    return base::Ok();
  }

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
    GraphLowering lowering(
        body, {*result.program, numbers, target_.functions, target_.check, target_.is_emulated},
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
    if (const Graph* branch = FindKnownBranch(node)) return LowerBranch(node, *branch);
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
      // ONNX infers no extents of these, and converters declare others than they have.
      const bool is_open = lowering.open_outputs().contains(static_cast<int>(k));
      const bool is_inferable = node.domain != "ai.onnx.ml" && !is_open;
      ONNXIFI_RETURN_IF_ERROR(values_.Set(id, *std::move(tensors[k]), is_inferable));
      if (is_open) values_.SetOpenRank(id);
    }
    return base::Ok();
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
    GraphLowering lowering(body, target_, /*outer=*/nullptr, nesting_ + 1);
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

  // The branch that an If takes where its condition is known while lowering, else null.
  const Graph* FindKnownBranch(const Node& node) {
    if (!node.domain.empty() || node.op_type != "If" || node.inputs.size() != 1) return nullptr;
    const ValueId id = node.inputs[0];
    if (id == kNoValue || !values_.Resolve(id).ok()) return nullptr;
    const Operand* condition = values_.operand(id);
    if (condition == nullptr || condition->type() != ElementType::kBool) return nullptr;
    const std::optional<Dims> known = target_.numbers.Find(*condition);
    if (!known || known->size() != 1 || !known->front().is_constant()) return nullptr;
    const auto* branch = node.FindAttribute<std::shared_ptr<const Graph>>(
        known->front().constant() != 0 ? "then_branch" : "else_branch");
    if (branch == nullptr || !(*branch)->inputs.empty()) return nullptr;
    return (*branch)->outputs.size() == node.outputs.size() ? branch->get() : nullptr;
  }

  // In place of the node: results have the ranks of this branch alone.
  Status LowerBranch(const Node& node, const Graph& branch) {
    if (nesting_ >= kMaxNesting) return Unknown(node);
    GraphLowering lowering(branch, target_, &values_, nesting_ + 1);
    return LowerExpanded(node, branch, lowering);
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
    GraphLowering lowering(*body, target_, &values_, nesting_ + 1);
    return LowerExpanded(node, *body, lowering);
  }

  // Its definition is of the nodes before it.
  Status LowerGradient(const Node& node) {
    const FindTensor find = [&](ValueId id) {
      return values_.Resolve(id).ok() ? values_.operand(id) : nullptr;
    };
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> made, ExpandGradient(graph_, node, find));
    GraphLowering lowering(*made, target_, &values_, nesting_ + 1);
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
    GraphLowering lowering(graph, target_, &values_, nesting_ + 1);
    for (size_t k = 0; k < inputs.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(lowering.values_.Set(graph.inputs[k], inputs[k]));
    }
    Status status = lowering.LowerNodes();
    if (!status.ok()) return std::move(status).Context("in the function body of " + node.op_type);
    return lowering.values_.Find(graph.outputs[0]);
  }

  // Lowers the definition of a node, whose lowering has its inputs, in place of the node.
  Status LowerExpanded(const Node& node, const Graph& body, GraphLowering& lowering) {
    Status status = lowering.LowerNodes();
    if (!status.ok()) return std::move(status).Context("in the function body of " + node.op_type);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id = node.outputs[k];
      if (id == kNoValue) continue;
      ONNXIFI_RETURN_IF_ERROR(lowering.values_.ResolveAnyRank(body.outputs[k]));
      values_.TakeOver(id, lowering.values_, body.outputs[k]);
      ONNXIFI_RETURN_IF_ERROR(values_.CheckDeclared(id));
    }
    return base::Ok();
  }

  const Graph& graph_;
  const Target target_;
  const int nesting_;
  GraphValues values_;
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

Result<std::unique_ptr<Program>> LowerGraph(const Graph& graph, const FunctionSource* functions,
                                            const StepCheck& check) {
  auto program = std::make_unique<Program>();
  SymbolicValues numbers(*program);
  bool is_emulated = false;
  GraphLowering lowering(graph, {*program, numbers, functions, check, is_emulated},
                         /*outer=*/nullptr, /*nesting=*/0);
  ONNXIFI_RETURN_IF_ERROR(lowering.DeclareInputs());
  ONNXIFI_RETURN_IF_ERROR(lowering.LowerNodes());
  ONNXIFI_RETURN_IF_ERROR(lowering.DeclareOutputs());
  return program;
}

SupportAnswer LowerEachNode(const Graph& graph, const FunctionSource* functions,
                            const StepCheck& check, Carrier carrier) {
  Program program;
  SymbolicValues numbers(program);
  bool is_emulated = false;
  GraphLowering lowering(graph, {program, numbers, functions, check, is_emulated},
                         /*outer=*/nullptr, /*nesting=*/0);
  SupportAnswer answer;
  lowering.CheckSupportOfNodes(answer);
  lowering.CheckEdges(carrier, answer);
  return answer;
}

}  // namespace onnxifi::ops
