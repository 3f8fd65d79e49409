// SPDX-License-Identifier: Apache-2.0
//
// GraphValues: inputs as declared, constants and captures as they are asked for.

#include "backends/core/ops/graph_values.h"

#include <memory>
#include <utility>

#include "backends/core/ops/declared_type.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::ops {

using graph::kNoValue;
using graph::Type;
using graph::ValueId;
using program::Buffer;
using program::ValueType;

namespace {

// Of all sequences of a graph together: a chain of insertions lists its tensors again and again.
constexpr size_t kMaxSequenceTensors = 65536;

// A body gets a sequence of more tensors as one value: an iteration that takes one of them would
// bind and gather all.
constexpr size_t kMaxCapturedTensors = 16;

}  // namespace

GraphValues::GraphValues(const graph::Graph& graph, program::Program& program, GraphValues* outer)
    : graph_(graph),
      program_(program),
      outer_(outer),
      outputs_(graph.outputs.begin(), graph.outputs.end()),
      operands_(graph.values.size()) {
  if (!program_.buffers.empty()) return;
  // A value is a buffer, more or less.
  program_.buffers.reserve(graph.values.size());
  program_.inputs.reserve(graph.inputs.size());
}

void GraphValues::Assume(ValueId id) {
  const graph::Value& value = graph_.values[id];
  if (!CheckDeclaration("Value", value).ok()) return;
  if (value.type.kind != Type::Kind::kTensor) {
    AddInput(id, ValueTypeOf(value.type));
  } else {
    AddInput(id, value.type.element, DeclaredShape(value));
  }
}

void GraphValues::AddInput(ValueId id, ElementType type, Shape shape) {
  operands_[id] = NewInput(graph_.values[id].name, type, std::move(shape));
}

void GraphValues::AddInput(ValueId id, ValueType type) {
  non_tensor_values_[id] = NewInput(graph_.values[id].name, std::move(type));
}

Shape GraphValues::DeclaredShape(const graph::Value& value) {
  Shape shape;
  shape.reserve(value.type.extents->size());
  for (const graph::Extent& extent : *value.type.extents) {
    shape.push_back(DeclaredExtent(extent, value.name, shape.size()));
  }
  return shape;
}

Dim GraphValues::DeclaredExtent(const graph::Extent& extent, const std::string& value_name,
                                size_t axis) {
  if (extent.is_known()) return Dim(extent.number);
  std::string name =
      extent.symbol.empty() ? value_name + "." + std::to_string(axis) : extent.symbol;
  auto [found, is_new] = named_symbols_.try_emplace(name);
  if (is_new) found->second = program_.dims->NewSymbol(name, /*is_data=*/false);
  return found->second;
}

Operand GraphValues::NewInput(const std::string& name, ElementType type, Shape shape) {
  Buffer buffer;
  buffer.kind = Buffer::Kind::kInput;
  buffer.type = StoredType(type);
  buffer.holds_strings = type == ElementType::kString;
  buffer.shape = shape;
  buffer.index = static_cast<int>(program_.inputs.size());
  program::BufferId id = program_.AddBuffer(std::move(buffer));
  program_.inputs.push_back({name, id, shape});
  program::View view = program::DenseView(id, type, shape);
  return {std::move(view), std::move(shape)};
}

NonTensorValue GraphValues::NewInput(const std::string& name, ValueType type) {
  Buffer buffer;
  buffer.kind = Buffer::Kind::kInput;
  buffer.index = static_cast<int>(program_.inputs.size());
  buffer.value = type;
  program::BufferId id = program_.AddBuffer(std::move(buffer));
  program_.inputs.push_back({name, id, {}});
  return {id, std::move(type)};
}

Status GraphValues::Resolve(ValueId id) {
  ONNXIFI_RETURN_IF_ERROR(ResolveAnyRank(id));
  const auto open = open_ranks_.find(id);
  if (open == open_ranks_.end()) return base::Ok();
  const auto& [choices, node, first, is_only, is_of_data] = open->second;
  if (choices != nullptr && is_of_data) choices->AskToSink(*node);
  if (choices != nullptr && !is_of_data) choices->Ask(*node, first, is_only);
  return Status(Code::kUnsupportedShape,
                "Value " + Quoted(graph_.values[id].name) + " has " +
                    std::to_string(operands_[id]->rank()) +
                    " axes or fewer, by the branch of an If that runs; a known number is needed.");
}

Status GraphValues::ResolveAnyRank(ValueId id) {
  if (IsKnown(id)) return base::Ok();
  const graph::Value& value = graph_.values[id];
  if (value.constant) {
    operands_[id] = Constant(*value.constant);
  } else if (value.is_weight && value.type.kind == Type::Kind::kTensor &&
             CheckDeclaration("Value", value).ok()) {
    ONNXIFI_ASSIGN_OR_RETURN(operands_[id], AbsentWeight(value));
  } else if (value.outer != kNoValue && outer_ != nullptr) {
    ONNXIFI_RETURN_IF_ERROR(Capture(id, value));
  } else {
    ONNXIFI_RETURN_IF_ERROR(CheckDeclaration("Value", value));
    return Status(Code::kUnsupportedShape,
                  "Value " + Quoted(value.name) + " is computed by a node that cannot be run.");
  }
  return base::Ok();
}

bool GraphValues::IsKnown(ValueId id) const {
  return operands_[id].has_value() || sequences_.contains(id) || non_tensor_values_.contains(id);
}

ValueType GraphValues::TypeOf(ValueId id) const {
  if (operands_[id]) return ValueType::Tensor(operands_[id]->type(), operands_[id]->rank());
  if (const Sequence* known = sequence(id)) return known->type();
  return non_tensor_values_.at(id).type;
}

const Sequence* GraphValues::sequence(ValueId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : &found->second;
}

const NonTensorValue* GraphValues::whole(ValueId id) const {
  const auto found = non_tensor_values_.find(id);
  return found == non_tensor_values_.end() ? nullptr : &found->second;
}

Result<Operand> GraphValues::Find(ValueId id) {
  ONNXIFI_RETURN_IF_ERROR(Resolve(id));
  return FindAnyRank(id);
}

Result<Operand> GraphValues::FindAnyRank(ValueId id) {
  ONNXIFI_RETURN_IF_ERROR(ResolveAnyRank(id));
  if (operands_[id]) return *operands_[id];
  return Status(Code::kUnsupportedDatatype, "Value " + Quoted(graph_.values[id].name) + " is " +
                                                NameOfWhole(TypeOf(id)) +
                                                " where a tensor is needed.");
}

NonTensorValue GraphValues::AsNonTensorValue(ValueId id) {
  if (const NonTensorValue* known = whole(id)) return *known;
  Buffer buffer;
  buffer.kind = Buffer::Kind::kDynamic;
  buffer.value = TypeOf(id);
  program::Step step;
  program::Host host;
  std::vector<Operand> parts;
  if (operands_[id]) {
    host.function = std::make_shared<const program::HostFunction>(program::PassValue());
    parts.push_back(*operands_[id]);
  } else {
    host.function = std::make_shared<const program::HostFunction>(program::MakeSequence());
    parts = sequences_.at(id).tensors;
  }
  for (const Operand& part : parts) {
    const Operand dense = program::IsDense(part) ? part : Copy(part);
    step.reads.push_back(dense.view);
    step.reads.back().type = StoredType(dense.type());
    host.read_shapes.push_back(dense.shape);
  }
  NonTensorValue whole{program_.AddBuffer(buffer), *buffer.value};
  step.writes.push_back(whole.operand().view);
  host.first_symbol.push_back(0);
  host.context = "while giving " + Quoted(graph_.values[id].name);
  step.body = std::move(host);
  program_.steps.push_back(std::move(step));
  return whole;
}

Operand GraphValues::Copy(const Operand& operand) {
  Buffer buffer;
  const ElementType type = StoredType(operand.type());
  buffer.type = type;
  buffer.holds_strings = operand.type() == ElementType::kString;
  buffer.shape = operand.shape;
  program::BufferId id = program_.AddBuffer(std::move(buffer));
  program::Step step;
  step.domain = operand.shape;
  step.reads = {operand.view};
  step.reads[0].type = type;
  step.writes = {program::DenseView(id, type, operand.shape)};
  step.body = program::Map{{Load(program_.exprs, type, 0).id()}};
  program_.steps.push_back(std::move(step));
  return {program::DenseView(id, operand.type(), operand.shape), operand.shape};
}

// Exporters declare ranks inside of branches that other runs take, and optimizers leave extents of
// values whose nodes they have changed: what is between the nodes has the extents that follow.
Status GraphValues::CheckMade(ValueId id, const Operand& operand, bool is_inferable) const {
  const graph::Value& value = graph_.values[id];
  if (!is_inferable || outer_ != nullptr || !compares_shapes_) {
    return CheckFits(value, ValueType::Tensor(operand.type(), ValueType::kAnyRank));
  }
  return CheckFits(value, operand, /*has_extents=*/outputs_.contains(id));
}

Status GraphValues::Set(ValueId id, Operand operand, bool is_inferable) {
  ONNXIFI_RETURN_IF_ERROR(CheckMade(id, operand, is_inferable));
  operands_[id] = std::move(operand);
  return base::Ok();
}

Status GraphValues::Set(ValueId id, Sequence sequence) {
  ONNXIFI_RETURN_IF_ERROR(CheckFits(graph_.values[id], sequence.type()));
  sequence_tensors_ += sequence.tensors.size();
  if (sequence_tensors_ > kMaxSequenceTensors) {
    return Status(Code::kUnsupportedShape,
                  "The sequences up to value " + Quoted(graph_.values[id].name) + " hold " +
                      std::to_string(sequence_tensors_) +
                      " tensors, more than the largest supported number (" +
                      std::to_string(kMaxSequenceTensors) + ").");
  }
  sequences_[id] = std::move(sequence);
  return base::Ok();
}

Status GraphValues::Set(ValueId id, NonTensorValue whole) {
  ONNXIFI_RETURN_IF_ERROR(CheckFits(graph_.values[id], whole.type));
  non_tensor_values_[id] = std::move(whole);
  return base::Ok();
}

void GraphValues::TakeOver(ValueId id, const GraphValues& from, ValueId from_id) {
  operands_[id] = from.operands_[from_id];
  const auto open = from.open_ranks_.find(from_id);
  if (open != from.open_ranks_.end()) SetOpenRank(id, open->second);
  if (const Sequence* known = from.sequence(from_id)) sequences_[id] = *known;
  if (const NonTensorValue* known = from.whole(from_id)) non_tensor_values_[id] = *known;
}

Status GraphValues::CheckDeclared(ValueId id, bool has_rank) const {
  has_rank = has_rank && !HasOpenRank(id);
  if (operands_[id]) return CheckMade(id, *operands_[id], has_rank);
  ValueType type = TypeOf(id);
  if (!has_rank) type.rank = ValueType::kAnyRank;
  return CheckFits(graph_.values[id], type);
}

Operand GraphValues::Constant(tensor::Tensor constant) {
  const ElementType type = constant.type();
  const program::BufferId id = AddConstant(program_, std::move(constant));
  const Shape& shape = program_.buffers[id].shape;
  return {program::DenseView(id, type, shape), shape};
}

// A weight whose values are not at hand: a constant of which only type and extents are known.
Result<Operand> GraphValues::AbsentWeight(const graph::Value& value) {
  tensor::Extents extents;
  for (const graph::Extent& extent : *value.type.extents) {
    if (!extent.is_known()) {
      return Status(Code::kUnsupportedShape,
                    "Weight " + Quoted(value.name) + " has an extent that is not a number.");
    }
    extents.push_back(extent.number);
  }
  const ElementType type = value.type.element;
  Operand weight =
      Constant(tensor::Tensor::Borrow(StoredType(type), extents, nullptr, /*owner=*/nullptr));
  program_.buffers[weight.view.buffer].holds_strings = type == ElementType::kString;
  weight.view.type = type;
  return weight;
}

// A value of the enclosing graph. Where that has a program of its own, it becomes an input of this
// one.
Status GraphValues::Capture(ValueId id, const graph::Value& value) {
  ONNXIFI_RETURN_IF_ERROR(outer_->Resolve(value.outer));
  const bool is_inside = &outer_->program_ == &program_;
  if (const Operand* outside = outer_->operand(value.outer)) {
    operands_[id] = is_inside ? *outside : Capture(value.name, *outside);
  } else if (outer_->sequence(value.outer) != nullptr &&
             (is_inside || !outer_->IsCapturedWhole(value.outer))) {
    Sequence inside = *outer_->sequence(value.outer);
    for (Operand& tensor : inside.tensors) {
      if (!is_inside) tensor = Capture(value.name, tensor);
    }
    sequences_[id] = std::move(inside);
  } else {
    const NonTensorValue whole = outer_->AsNonTensorValue(value.outer);
    if (!is_inside) captures_.push_back(whole.operand());
    non_tensor_values_[id] = is_inside ? whole : NewInput(value.name, whole.type);
  }
  return base::Ok();
}

// Tensors of several ranks stay apart, since the type of the whole has no rank then.
bool GraphValues::IsCapturedWhole(ValueId id) const {
  const Sequence& sequence = sequences_.at(id);
  return sequence.tensors.size() > kMaxCapturedTensors && sequence.type().inner[0].rank >= 0;
}

// A tensor of the enclosing program becomes an input of this one; a constant is shared.
Operand GraphValues::Capture(const std::string& name, const Operand& outside) {
  const Buffer& buffer = outer_->program_.buffers[outside.view.buffer];
  if (buffer.kind == Buffer::Kind::kConstant && program::IsDense(outside)) {
    Operand inside = Constant(outer_->program_.constants[buffer.index]);
    program_.buffers[inside.view.buffer].holds_strings = buffer.holds_strings;
    inside.view.type = outside.type();
    return inside;
  }
  Shape shape;
  for (const Dim& extent : outside.shape) shape.push_back(Import(extent));
  captures_.push_back(program::IsDense(outside) ? outside : outer_->Copy(outside));
  return NewInput(name, outside.type(), shape);
}

Dim GraphValues::Import(const Dim& outside) {
  if (outside.is_constant()) return outside;
  auto found = imported_.find(outside.node()->id);
  if (found != imported_.end()) return found->second;
  Dim symbol = program_.dims->NewSymbol(outside.ToString(), /*is_data=*/false);
  imported_.emplace(outside.node()->id, symbol);
  exported_.emplace(symbol.node()->id, outside);
  return symbol;
}

std::optional<Dim> GraphValues::Export(const Dim& inside) const {
  if (inside.is_constant()) return inside;
  auto found = exported_.find(inside.node()->id);
  if (found == exported_.end()) return std::nullopt;
  return found->second;
}

}  // namespace onnxifi::ops
