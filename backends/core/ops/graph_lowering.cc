// SPDX-License-Identifier: Apache-2.0
//
// GraphLowering: nodes by their operators' entries, inputs and outputs, and bodies.

#include "backends/core/ops/graph_lowering.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "backends/core/ops/declared_type.h"
#include "backends/core/ops/graph_builder.h"

namespace onnxifi::ops {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueIds;
using program::Buffer;
using program::Program;
using program::SymbolicValues;

Status Unknown(const Node& node) {
  return Status(Code::kUnsupportedOperator,
                "Operator " + (node.domain.empty() ? "" : node.domain + ".") + node.op_type +
                    " of version " + std::to_string(node.since_version) + " is not supported.");
}

Status GraphLowering::DeclareInputs() {
  for (ValueId id : graph_.inputs) {
    ONNXIFI_RETURN_IF_ERROR(CheckDeclaration("Graph input", graph_.values[id]));
    values_.Assume(id);
  }
  return base::Ok();
}

Status GraphLowering::LowerNodes() {
  for (const Node& node : graph_.nodes) {
    Status status = LowerOfOpenRank(node);
    if (!status.ok()) return std::move(status).Context("while lowering " + graph::Describe(node));
    ++lowered_nodes_;
  }
  return base::Ok();
}

Status GraphLowering::DeclareOutputs(const std::vector<bool>& is_whole) {
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

void GraphLowering::CheckSupportOfNodes(SupportAnswer& answer) {
  for (ValueId id : graph_.inputs) values_.Assume(id);
  answer.nodes.reserve(graph_.nodes.size());
  for (const Node& node : graph_.nodes) {
    target_.is_emulated = false;
    answer.nodes.push_back(LowerOfOpenRank(node));
    answer.is_emulated.push_back(target_.is_emulated);
    if (answer.nodes.back().ok()) continue;
    for (ValueId id : node.outputs) {
      if (id != kNoValue && !values_.IsKnown(id)) values_.Assume(id);
    }
  }
}

template <typename List>
int GraphLowering::FindNode(List list, ValueId id) const {
  for (size_t k = 0; k < graph_.nodes.size(); ++k) {
    const ValueIds& values = *list(graph_.nodes[k]);
    if (std::find(values.begin(), values.end(), id) != values.end()) return static_cast<int>(k);
  }
  return -1;
}

void GraphLowering::CheckEdges(Carrier carrier, SupportAnswer& answer) {
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

template <typename Lower>
Status GraphLowering::LowerWith(const Node& node, std::vector<std::optional<Operand>> inputs,
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

Result<std::vector<std::optional<Operand>>> GraphLowering::InputsOf(const Node& node,
                                                                    const Operator& entry) {
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

Status GraphLowering::KeepOutputs(const Node& node, Lowering& lowering) {
  // ONNX infers no extents of these, and converters declare others than they have.
  const bool is_uninferred = node.domain == "ai.onnx.ml" || FollowsUninferred(node);
  // Its tensor follows from nothing, and ONNX Runtime's model builder declares [1] as [].
  const bool is_constant = node.domain.empty() && node.op_type == "Constant";
  const bool is_conditional = node.domain.empty() && node.op_type == "If";
  const Node* const conditional = is_conditional ? &node : FindConditional(node);
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
    if (conditional != nullptr) chosen_by_[id] = conditional;
    if (is_open) SetOpenRank(node, id, open->second);
  }
  return base::Ok();
}

bool GraphLowering::FollowsUninferred(const Node& node) const {
  return std::ranges::any_of(node.inputs, [&](ValueId id) { return uninferred_.contains(id); });
}

const Node* GraphLowering::FindConditional(const Node& node) const {
  const Node* conditional = nullptr;
  const auto look_at = [&](ValueId id) {
    const auto found = chosen_by_.find(id);
    if (conditional == nullptr && found != chosen_by_.end()) conditional = found->second;
  };
  if (chosen_by_.empty()) return nullptr;
  std::ranges::for_each(node.inputs, look_at);
  graph::ForEachSubgraph(node, [&](const std::shared_ptr<const Graph>& body) {
    for (const graph::Value& value : body->values) look_at(value.outer);
  });
  return conditional;
}

Status GraphLowering::LowerNode(const Node& node) {
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
  if (entry == nullptr && node.domain == "ai.onnx.preview.training" && node.op_type == "Gradient") {
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
  if (IsSqueezeOfOnes(node)) {
    return LowerSqueezeOfOnes(node, std::move(inputs), *entry);
  }
  return LowerWith(node, std::move(inputs), entry->lower);
}

template <typename Lower>
Result<BodyLowering::Body> GraphLowering::LowerInside(const Graph& body,
                                                      const std::vector<Input>& inputs,
                                                      const std::vector<bool>& is_whole,
                                                      Lower lower) {
  if (nesting_ >= kMaxNesting) {
    return Status(Code::kInvalidModel, "Subgraphs are nested deeper than the limit of " +
                                           std::to_string(kMaxNesting) + ".");
  }
  Body result;
  result.program = std::make_unique<Program>();
  result.program->strings = target_.program.strings;
  result.program->draws = target_.program.draws;
  SymbolicValues numbers(*result.program);
  GraphLowering lowering(body,
                         {*result.program, numbers, target_.functions, target_.check,
                          target_.is_emulated, target_.choices, /*symbols=*/nullptr,
                          /*depends_on_ones=*/nullptr, target_.squeezed},
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

Result<BodyLowering::Body> GraphLowering::LowerBody(const Graph& body,
                                                    const std::vector<Input>& inputs,
                                                    const std::vector<bool>& is_whole) {
  return LowerInside(body, inputs, is_whole,
                     [](GraphLowering& lowering) { return lowering.LowerNodes(); });
}

Result<BodyLowering::Body> GraphLowering::MakeBody(const Node& node,
                                                   const std::vector<Input>& inputs,
                                                   const std::vector<Operand>& captures,
                                                   int output_count, const WriteBody& write) {
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
  const Node inside = MakeNode(node, node.op_type, node.since_version, graph.inputs, graph.outputs);
  ONNXIFI_ASSIGN_OR_RETURN(Body body, LowerInside(graph, all, {}, [&](GraphLowering& lowering) {
                             std::vector<std::optional<Operand>> operands;
                             for (const ValueId id : graph.inputs)
                               operands.push_back(*lowering.values_.operand(id));
                             return lowering.LowerWith(inside, std::move(operands), write);
                           }));
  body.captures = captures;
  return body;
}

bool BodyLowering::Body::KeepsExtents(int output, const Input& input) const {
  const std::vector<std::optional<Dim>>& extents = output_extents[output];
  if (extents.size() != input.extents.size()) return false;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (input.extents[axis] && extents[axis] != input.extents[axis]) return false;
  }
  return true;
}

}  // namespace onnxifi::ops
