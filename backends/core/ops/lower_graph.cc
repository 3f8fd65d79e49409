// SPDX-License-Identifier: Apache-2.0
//
// Lowering of a graph: walks the nodes in order, hands each to its operator's entry, and keeps what
// every value became.

#include "backends/core/ops/lower_graph.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/operator.h"
#include "backends/core/ops/sequence_map.h"
#include "backends/core/program/host_function.h"

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
using program::ValueType;

constexpr int kMaxNesting = 32;
// Of all sequences of a graph together: a chain of insertions lists its tensors again and again.
constexpr size_t kMostSequenceTensors = 65536;

std::string Quoted(const std::string& name) { return "'" + name + "'"; }

constexpr int64_t kLargestBytes = std::numeric_limits<int64_t>::max();

// Whether an address space could hold so many elements, as far as that is a number.
bool IsAddressable(ElementType type, const Dim& count) {
  return !count.is_constant() || tensor::SizeBytes(type, count.constant()) < kLargestBytes;
}

Status RefuseSize(const std::string& what, const Shape& shape) {
  return Status(Code::kUnsupportedShape, what + " of shape " + tensor::ToString(shape) +
                                             " has more bytes than the largest size (" +
                                             std::to_string(kLargestBytes) + ").");
}

// Refuses a value of which too little is declared; `role` says what it is in the graph.
Status RefuseType(std::string_view role, const graph::Value& value) {
  const Type& type = value.type;
  const auto what = [&] { return std::string(role) + " " + Quoted(value.name); };
  if (type.kind == Type::Kind::kUnknown) {
    return Status(Code::kUnsupportedShape, what() + " has no declared type.");
  }
  if (type.kind != Type::Kind::kTensor) {
    return type.inner != nullptr && type.inner->kind != Type::Kind::kUnknown
               ? base::Ok()
               : Status(Code::kUnsupportedDatatype, what() + " has no declared element type.");
  }
  if (!type.extents) return Status(Code::kUnsupportedShape, what() + " has no declared rank.");
  Dim known = 1;
  for (const graph::Extent& extent : *type.extents) {
    if (extent.is_known()) known = known * Dim(extent.number);
  }
  if (IsAddressable(type.element, known)) return base::Ok();
  Shape shape;
  for (const graph::Extent& extent : *type.extents) {
    if (extent.is_known()) shape.push_back(extent.number);
  }
  return RefuseSize(what(), shape);
}

// A type as the program has it; anything that is not known of a tensor may be anything.
ValueType ValueTypeOf(const Type& type) {
  switch (type.kind) {
    case Type::Kind::kSequence:
      return ValueType::Sequence(ValueTypeOf(*type.inner));
    case Type::Kind::kOptional:
      return ValueTypeOf(*type.inner).Optional();
    case Type::Kind::kMap:
      return ValueType::Map(type.element, ValueTypeOf(*type.inner));
    default:
      return ValueType::Tensor(type.element, type.extents ? static_cast<int>(type.extents->size())
                                                          : ValueType::kAnyRank);
  }
}

// The reverse, for the definitions of functions.
Type TypeOf(const ValueType& value) {
  Type type;
  type.element = value.element;
  if (value.is_tensor()) {
    type.kind = Type::Kind::kTensor;
    if (value.rank >= 0) type.extents.emplace(static_cast<size_t>(value.rank));
  } else {
    type.kind = value.is_sequence() ? Type::Kind::kSequence : Type::Kind::kMap;
    type.inner = std::make_shared<const Type>(TypeOf(value.inner[0]));
  }
  if (!value.may_be_missing) return type;
  Type optional;
  optional.kind = Type::Kind::kOptional;
  optional.inner = std::make_shared<const Type>(std::move(type));
  return optional;
}

// Whether a value fits its declaration in what element types and kinds tell; ranks inside sequences
// are often declared as something else than they turn out to be.
bool FitsDeclaration(const ValueType& value, const Type& declared) {
  if (declared.kind == Type::Kind::kUnknown) return true;
  if (declared.kind == Type::Kind::kOptional) {
    return declared.inner == nullptr || FitsDeclaration(value, *declared.inner);
  }
  constexpr Type::Kind kKinds[] = {Type::Kind::kTensor, Type::Kind::kSequence, Type::Kind::kMap};
  if (declared.kind != kKinds[static_cast<size_t>(value.kind)]) return false;
  if (!value.is_sequence() && declared.element != ElementType::kUndefined &&
      value.element != ElementType::kUndefined && declared.element != value.element) {
    return false;
  }
  return value.inner.empty() || declared.inner == nullptr ||
         FitsDeclaration(value.inner[0], *declared.inner);
}

// What no descriptor of the interface can carry, in words; empty for a tensor of numbers.
std::string NameOfWhole(const ValueType& type) {
  if (type.may_be_missing) return "an optional";
  switch (type.kind) {
    case ValueType::Kind::kTensor:
      return type.element == ElementType::kString ? "a tensor of strings" : "";
    case ValueType::Kind::kSequence:
      return "a sequence";
    case ValueType::Kind::kMap:
      return "a map";
  }
  return "";
}

Status CheckCarried(std::string_view role, const graph::Value& value, const ValueType& type) {
  const std::string name = NameOfWhole(type);
  if (name.empty()) return base::Ok();
  return Status(Code::kUnsupportedDatatype, std::string(role) + " " + Quoted(value.name) + " is " +
                                                name +
                                                "; descriptors carry tensors of numbers only.");
}

class GraphLowering : public BodyLowering {
 public:
  GraphLowering(const Graph& graph, Program& program, SymbolicValues& values,
                const FunctionSource* functions, const StepCheck& check, GraphLowering* outer,
                int nesting)
      : graph_(graph),
        program_(program),
        values_(values),
        functions_(functions),
        check_(check),
        outer_(outer),
        nesting_(nesting),
        operands_(graph.values.size()) {
    if (!program_.buffers.empty()) return;
    // A value is a buffer, more or less, and a node a step.
    program_.buffers.reserve(graph.values.size());
    program_.inputs.reserve(graph.inputs.size());
  }

  // The graph's own inputs become the program's, with extents as declared.
  Status DeclareInputs() {
    for (ValueId id : graph_.inputs) {
      const graph::Value& value = graph_.values[id];
      ONNXIFI_RETURN_IF_ERROR(RefuseType("Graph input", value));
      Assume(id);
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

  // Inputs that are declared well enough; nodes that read another one are refused when they look
  // for it.
  void DeclareKnownInputs() {
    for (ValueId id : graph_.inputs) Assume(id);
  }

  std::vector<Status> JudgeNodes() {
    std::vector<Status> verdicts;
    verdicts.reserve(graph_.nodes.size());
    for (const Node& node : graph_.nodes) {
      verdicts.push_back(LowerNode(node));
      if (verdicts.back().ok()) continue;
      for (ValueId id : node.outputs) {
        if (id != kNoValue && !IsKnown(id)) Assume(id);
      }
    }
    return verdicts;
  }

  // Whether what is declared of the inputs, and known of the outputs, can be carried.
  void CheckEdges(Carrier carrier, Judgement& judgement) {
    for (ValueId id : graph_.inputs) {
      const graph::Value& value = graph_.values[id];
      judgement.edges = RefuseType("Graph input", value);
      if (judgement.edges.ok() && carrier == Carrier::kDescriptors) {
        judgement.edges = CheckCarried("Graph input", value, ValueTypeOf(value.type));
      }
      if (judgement.edges.ok()) continue;
      judgement.edge_node = FindNode([&](const Node& node) { return &node.inputs; }, id);
      return;
    }
    for (ValueId id : graph_.outputs) {
      // A node that cannot make it says why.
      if (carrier == Carrier::kValues || !Resolve(id).ok()) continue;
      judgement.edges = CheckCarried("Graph output", graph_.values[id], KnownType(id));
      if (judgement.edges.ok()) continue;
      judgement.edge_node = FindNode([&](const Node& node) { return &node.outputs; }, id);
      return;
    }
  }

  // The graph's outputs become the program's: each a dense buffer of its own, or a whole value.
  Status DeclareOutputs(const std::vector<bool>& is_whole = {}) {
    std::vector<program::BufferId> taken;
    for (size_t k = 0; k < graph_.outputs.size(); ++k) {
      const ValueId id = graph_.outputs[k];
      const graph::Value& value = graph_.values[id];
      ONNXIFI_RETURN_IF_ERROR(Resolve(id));
      if (!operands_[id] || (k < is_whole.size() && is_whole[k])) {
        program_.outputs.push_back({value.name, AsWhole(id).buffer, {}});
        continue;
      }
      Operand operand = *operands_[id];
      const Buffer& buffer = program_.buffers[operand.view.buffer];
      bool is_own = buffer.kind == Buffer::Kind::kTemporary && program::IsDense(operand) &&
                    tensor::Product(buffer.shape) == tensor::Product(operand.shape) &&
                    std::find(taken.begin(), taken.end(), operand.view.buffer) == taken.end();
      if (!is_own) operand = Copy(operand);
      taken.push_back(operand.view.buffer);
      program_.outputs.push_back({value.name, operand.view.buffer, operand.shape});
    }
    return base::Ok();
  }

  Result<Body> LowerBody(const Graph& body, const std::vector<Input>& inputs,
                         const std::vector<bool>& is_whole) override {
    if (nesting_ >= kMaxNesting) {
      return Status(Code::kInvalidModel, "Subgraphs are nested deeper than the limit of " +
                                             std::to_string(kMaxNesting) + ".");
    }
    Body result;
    result.program = std::make_unique<Program>();
    result.program->strings = program_.strings;
    SymbolicValues values(*result.program);
    GraphLowering lowering(body, *result.program, values, functions_, check_, this, nesting_ + 1);
    for (size_t k = 0; k < inputs.size() && k < body.inputs.size(); ++k) {
      const ValueId id = body.inputs[k];
      if (inputs[k].value) {
        lowering.wholes_[id] = lowering.AddWholeInput(body.values[id].name, *inputs[k].value);
        continue;
      }
      Shape shape;
      for (const std::optional<Dim>& extent : inputs[k].extents) {
        shape.push_back(extent ? lowering.Import(*extent)
                               : result.program->dims->NewSymbol(body.values[id].name,
                                                                 /*is_data=*/false));
      }
      lowering.operands_[id] = lowering.AddInput(body.values[id].name, inputs[k].type, shape);
    }
    ONNXIFI_RETURN_IF_ERROR(lowering.LowerNodes());
    ONNXIFI_RETURN_IF_ERROR(lowering.DeclareOutputs(is_whole));
    result.captures = std::move(lowering.captures_);
    for (const program::Port& port : result.program->outputs) {
      std::vector<std::optional<Dim>>& extents = result.output_extents.emplace_back();
      for (const Dim& extent : port.shape) extents.push_back(lowering.Export(extent));
    }
    return result;
  }

 private:
  // The first node of which `id` is among the values that `list` gives; -1 if there is none.
  template <typename List>
  int FindNode(List list, ValueId id) const {
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      const ValueIds& values = *list(graph_.nodes[k]);
      if (std::find(values.begin(), values.end(), id) != values.end()) return static_cast<int>(k);
    }
    return -1;
  }

  Dim DeclaredExtent(const graph::Extent& extent, const std::string& value_name, size_t axis) {
    if (extent.is_known()) return Dim(extent.number);
    std::string name =
        extent.symbol.empty() ? value_name + "." + std::to_string(axis) : extent.symbol;
    auto [found, is_new] = named_symbols_.try_emplace(name);
    if (is_new) found->second = program_.dims->NewSymbol(name, /*is_data=*/false);
    return found->second;
  }

  Shape DeclaredShape(const graph::Value& value) {
    Shape shape;
    shape.reserve(value.type.extents->size());
    for (const graph::Extent& extent : *value.type.extents) {
      shape.push_back(DeclaredExtent(extent, value.name, shape.size()));
    }
    return shape;
  }

  Operand AddInput(const std::string& name, ElementType type, Shape shape) {
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

  Whole AddWholeInput(const std::string& name, ValueType type) {
    Buffer buffer;
    buffer.kind = Buffer::Kind::kInput;
    buffer.index = static_cast<int>(program_.inputs.size());
    buffer.value = type;
    program::BufferId id = program_.AddBuffer(std::move(buffer));
    program_.inputs.push_back({name, id, {}});
    return {id, std::move(type)};
  }

  // Makes a value an input of the program, as it is declared: a graph input, or a stand-in for what
  // a node that cannot be lowered makes. Nothing where too little is declared.
  void Assume(ValueId id) {
    const graph::Value& value = graph_.values[id];
    if (!RefuseType("Value", value).ok()) return;
    if (value.type.kind != Type::Kind::kTensor) {
      wholes_[id] = AddWholeInput(value.name, ValueTypeOf(value.type));
      return;
    }
    operands_[id] = AddInput(value.name, value.type.element, DeclaredShape(value));
  }

  bool IsKnown(ValueId id) const {
    return operands_[id].has_value() || sequences_.contains(id) || wholes_.contains(id);
  }

  // Of a value that is known.
  ValueType KnownType(ValueId id) const {
    if (operands_[id]) return ValueType::Tensor(operands_[id]->type(), operands_[id]->rank());
    const auto sequence = sequences_.find(id);
    return sequence != sequences_.end() ? sequence->second.type() : wholes_.at(id).type;
  }

  // Makes the value known: as a tensor, a sequence of known length or a whole value.
  Status Resolve(ValueId id) {
    if (IsKnown(id)) return base::Ok();
    const graph::Value& value = graph_.values[id];
    if (value.constant) {
      operands_[id] = Constant(*value.constant);
    } else if (value.is_weight && value.type.kind == Type::Kind::kTensor &&
               RefuseType("Value", value).ok()) {
      ONNXIFI_ASSIGN_OR_RETURN(operands_[id], AddAbsentWeight(value));
    } else if (value.outer != kNoValue && outer_ != nullptr) {
      ONNXIFI_RETURN_IF_ERROR(Capture(id, value));
    } else {
      Status refused = RefuseType("Value", value);
      if (!refused.ok()) return refused;
      return Status(Code::kUnsupportedShape,
                    "Value " + Quoted(value.name) + " is computed by a node that cannot be run.");
    }
    return base::Ok();
  }

  Result<Operand> Find(ValueId id) {
    ONNXIFI_RETURN_IF_ERROR(Resolve(id));
    if (operands_[id]) return *operands_[id];
    return Status(Code::kUnsupportedDatatype, "Value " + Quoted(graph_.values[id].name) + " is " +
                                                  NameOfWhole(KnownType(id)) +
                                                  " where a tensor is needed.");
  }

  // A known value as one that a buffer holds whole.
  Whole AsWhole(ValueId id) {
    if (const auto whole = wholes_.find(id); whole != wholes_.end()) return whole->second;
    Buffer buffer;
    buffer.kind = Buffer::Kind::kDynamic;
    buffer.value = KnownType(id);
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
    const Whole whole{program_.AddBuffer(buffer), *buffer.value};
    step.writes.push_back(whole.operand().view);
    host.first_symbol.push_back(0);
    host.context = "while giving " + Quoted(graph_.values[id].name);
    step.body = std::move(host);
    program_.steps.push_back(std::move(step));
    return whole;
  }

  Operand Constant(tensor::Tensor constant) {
    const ElementType type = constant.type();
    const program::BufferId id = AddConstant(program_, std::move(constant));
    const Shape& shape = program_.buffers[id].shape;
    return {program::DenseView(id, type, shape), shape};
  }

  // A weight whose values are not at hand: a constant of which only type and extents are known.
  Result<Operand> AddAbsentWeight(const graph::Value& value) {
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

  // A value of the enclosing graph. Where that has a program of its own, it becomes an input of
  // this one.
  Status Capture(ValueId id, const graph::Value& value) {
    ONNXIFI_RETURN_IF_ERROR(outer_->Resolve(value.outer));
    const bool is_inside = &outer_->program_ == &program_;
    if (const std::optional<Operand>& outside = outer_->operands_[value.outer]) {
      operands_[id] = is_inside ? *outside : Capture(value.name, *outside);
    } else if (const auto found = outer_->sequences_.find(value.outer);
               found != outer_->sequences_.end()) {
      Sequence inside = found->second;
      for (Operand& tensor : inside.tensors) {
        if (!is_inside) tensor = Capture(value.name, tensor);
      }
      sequences_[id] = std::move(inside);
    } else {
      const Whole& whole = outer_->wholes_.at(value.outer);
      if (!is_inside) captures_.push_back(whole.operand());
      wholes_[id] = is_inside ? whole : AddWholeInput(value.name, whole.type);
    }
    return base::Ok();
  }

  // A tensor of the enclosing program becomes an input of this one; a constant is shared.
  Operand Capture(const std::string& name, const Operand& outside) {
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
    return AddInput(name, outside.type(), shape);
  }

  // An extent of the enclosing program as one of this: the same symbol for the same expression.
  Dim Import(const Dim& outside) {
    if (outside.is_constant()) return outside;
    auto found = imported_.find(outside.node()->id);
    if (found != imported_.end()) return found->second;
    Dim symbol = program_.dims->NewSymbol(outside.ToString(), /*is_data=*/false);
    imported_.emplace(outside.node()->id, symbol);
    exported_.emplace(symbol.node()->id, outside);
    return symbol;
  }

  // The reverse, where it can be said with plain symbols and numbers.
  std::optional<Dim> Export(const Dim& inside) const {
    if (inside.is_constant()) return inside;
    auto found = exported_.find(inside.node()->id);
    if (found == exported_.end()) return std::nullopt;
    return found->second;
  }

  Operand Copy(const Operand& operand) {
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

  Status LowerNode(const Node& node) {
    const Operator* entry = FindOperator(node.domain, node.op_type);
    if (entry == nullptr && node.domain.empty() && node.op_type == "SequenceMap") {
      return LowerSequenceMap(node);
    }
    if (entry == nullptr) return ExpandNode(node);
    if (node.since_version > entry->newest_version) {
      return Status(Code::kUnsupportedVersion, node.op_type + " of version " +
                                                   std::to_string(node.since_version) +
                                                   " is newer than the newest supported version (" +
                                                   std::to_string(entry->newest_version) + ").");
    }
    std::vector<std::optional<Operand>> inputs;
    inputs.reserve(node.inputs.size());
    for (ValueId id : node.inputs) {
      inputs.emplace_back();
      if (id == kNoValue) continue;
      if (entry->takes == Takes::kValues) {
        ONNXIFI_RETURN_IF_ERROR(Resolve(id));
        inputs.back() = operands_[id];
        continue;
      }
      ONNXIFI_ASSIGN_OR_RETURN(inputs.back(), Find(id));
      if (inputs.back()->type() == ElementType::kString && entry->takes == Takes::kNumbers) {
        return Status(Code::kUnsupportedDatatype, "Value " + Quoted(graph_.values[id].name) +
                                                      " is a tensor of strings, which " +
                                                      node.op_type + " does not take.");
      }
    }
    size_t first_step = program_.steps.size();
    size_t first_buffer = program_.buffers.size();
    Lowering lowering(graph_, node, program_, values_, std::move(inputs), *this);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const auto sequence = sequences_.find(node.inputs[k]);
      if (sequence != sequences_.end()) {
        lowering.GiveSequence(static_cast<int>(k), sequence->second);
      }
      const auto whole = wholes_.find(node.inputs[k]);
      if (whole != wholes_.end()) lowering.GiveWhole(static_cast<int>(k), whole->second);
    }
    ONNXIFI_RETURN_IF_ERROR(entry->lower(lowering));
    for (size_t b = first_buffer; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (IsAddressable(buffer.type, tensor::Product(buffer.shape))) continue;
      return RefuseSize(node.op_type + ": An intermediate or output tensor", buffer.shape);
    }
    std::vector<std::optional<Operand>> outputs = lowering.TakeOutputs();
    for (auto& [output, tensors] : lowering.TakeSequences()) {
      const ValueId id = node.outputs[output];
      if (id == kNoValue) continue;
      ONNXIFI_RETURN_IF_ERROR(CheckDeclared(graph_.values[id], tensors.type()));
      sequence_tensors_ += tensors.tensors.size();
      if (sequence_tensors_ > kMostSequenceTensors) {
        return Status(Code::kUnsupportedShape,
                      "The sequences up to value " + Quoted(graph_.values[id].name) + " hold " +
                          std::to_string(sequence_tensors_) +
                          " tensors, more than the largest supported number (" +
                          std::to_string(kMostSequenceTensors) + ").");
      }
      sequences_[id] = std::move(tensors);
    }
    for (auto& [output, whole] : lowering.TakeWholes()) {
      const ValueId id = node.outputs[output];
      if (id == kNoValue) continue;
      ONNXIFI_RETURN_IF_ERROR(CheckDeclared(graph_.values[id], whole.type));
      wholes_[id] = std::move(whole);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] == kNoValue || sequences_.contains(node.outputs[k]) ||
          wholes_.contains(node.outputs[k])) {
        continue;
      }
      if (!outputs[k]) {
        return Status(Code::kUnsupportedAttribute,
                      node.op_type + ": Output " + std::to_string(k) + " is not supported.");
      }
      ONNXIFI_RETURN_IF_ERROR(CheckDeclared(graph_.values[node.outputs[k]], *outputs[k]));
      operands_[node.outputs[k]] = std::move(outputs[k]);
    }
    return check_ ? check_(program_, first_step) : base::Ok();
  }

  // An operator without an entry that ONNX defines as a function: its body is lowered in place.
  Status ExpandNode(const Node& node) {
    if (functions_ == nullptr || nesting_ >= kMaxNesting) return Unknown(node);
    std::vector<Type> types;
    ValueIds inputs;
    for (ValueId id : node.inputs) {
      Type& type = types.emplace_back();
      if (id == kNoValue) continue;
      ONNXIFI_RETURN_IF_ERROR(Resolve(id));
      type = TypeOf(KnownType(id));
      inputs.push_back(id);
      if (!operands_[id]) continue;
      for (size_t axis = 0; axis < operands_[id]->shape.size(); ++axis) {
        const Dim& dim = operands_[id]->shape[axis];
        if (dim.is_constant()) (*type.extents)[axis].number = dim.constant();
      }
    }
    Result<std::unique_ptr<Graph>> expanded = functions_->Expand(node, types);
    if (!expanded.ok()) {
      return expanded.status().code() == Code::kUnsupportedOperator ? Unknown(node)
                                                                    : std::move(expanded).status();
    }
    Graph& body = **expanded;
    for (Node& inner : body.nodes) inner.index = node.index;
    GraphLowering lowering(body, program_, values_, functions_, check_, nullptr, nesting_ + 1);
    if (inputs.size() < body.inputs.size() || body.outputs.size() < node.outputs.size()) {
      return Status(Code::kInternalError,
                    "The function body of " + node.op_type + " does not fit its node.");
    }
    for (size_t k = 0; k < body.inputs.size(); ++k) {
      lowering.TakeOver(body.inputs[k], *this, inputs[k]);
    }
    return LowerExpanded(node, body, lowering);
  }

  // Lowers the definition of a node, whose lowering has its inputs, in place of the node.
  Status LowerExpanded(const Node& node, const Graph& body, GraphLowering& lowering) {
    Status status = lowering.LowerNodes();
    if (!status.ok()) return std::move(status).Context("in the function body of " + node.op_type);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id = node.outputs[k];
      if (id == kNoValue) continue;
      ONNXIFI_RETURN_IF_ERROR(lowering.Resolve(body.outputs[k]));
      TakeOver(id, lowering, body.outputs[k]);
      if (operands_[id]) {
        ONNXIFI_RETURN_IF_ERROR(CheckDeclared(graph_.values[id], *operands_[id]));
      } else {
        ONNXIFI_RETURN_IF_ERROR(CheckDeclared(graph_.values[id], KnownType(id)));
      }
    }
    return base::Ok();
  }

  // Makes `id` here what `from_id` is in a lowering to the same program.
  void TakeOver(ValueId id, const GraphLowering& from, ValueId from_id) {
    operands_[id] = from.operands_[from_id];
    if (const auto found = from.sequences_.find(from_id); found != from.sequences_.end()) {
      sequences_[id] = found->second;
    }
    if (const auto found = from.wholes_.find(from_id); found != from.wholes_.end()) {
      wholes_[id] = found->second;
    }
  }

  // Its definition as a function is of the graph that it owns, so it is made here.
  Status LowerSequenceMap(const Node& node) {
    std::vector<bool> is_sequence;
    for (ValueId id : node.inputs) {
      if (id != kNoValue) ONNXIFI_RETURN_IF_ERROR(Resolve(id));
      is_sequence.push_back(id != kNoValue && KnownType(id).is_sequence());
    }
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> body,
                             ExpandSequenceMap(node, is_sequence));
    GraphLowering lowering(*body, program_, values_, functions_, check_, this, nesting_ + 1);
    return LowerExpanded(node, *body, lowering);
  }

  Status Unknown(const Node& node) const {
    return Status(Code::kUnsupportedOperator,
                  "Operator " + (node.domain.empty() ? "" : node.domain + ".") + node.op_type +
                      " of version " + std::to_string(node.since_version) + " is not supported.");
  }

  Status CheckDeclared(const graph::Value& value, const Operand& operand) const {
    const Type& type = value.type;
    if (type.kind == Type::Kind::kUnknown) return base::Ok();
    if (type.kind != Type::Kind::kTensor ||
        (type.element != ElementType::kUndefined && type.element != operand.type())) {
      return Status(Code::kMismatchingDatatype,
                    "Value " + Quoted(value.name) + " is declared " +
                        (type.kind == Type::Kind::kTensor ? std::string(Name(type.element))
                                                          : std::string("as no tensor")) +
                        " but is " + std::string(Name(operand.type())) + ".");
    }
    if (!type.extents) return base::Ok();
    bool fits = static_cast<int>(type.extents->size()) == operand.rank();
    for (int axis = 0; fits && axis < operand.rank(); ++axis) {
      const graph::Extent& extent = (*type.extents)[axis];
      fits = !extent.is_known() || !operand.shape[axis].is_constant() ||
             extent.number == operand.shape[axis].constant();
    }
    if (fits) return base::Ok();
    std::string declared = "[";
    for (const graph::Extent& extent : *type.extents) {
      if (declared.size() > 1) declared += ", ";
      declared += extent.is_known() ? std::to_string(extent.number)
                                    : (extent.symbol.empty() ? "?" : extent.symbol);
    }
    return Status(Code::kMismatchingShape, "Value " + Quoted(value.name) + " is declared " +
                                               declared + "] but is " +
                                               tensor::ToString(operand.shape) + ".");
  }

  Status CheckDeclared(const graph::Value& value, const ValueType& type) const {
    if (FitsDeclaration(type, value.type)) return base::Ok();
    return Status(Code::kMismatchingDatatype, "Value " + Quoted(value.name) + " is declared " +
                                                  ToString(ValueTypeOf(value.type)) + " but is " +
                                                  ToString(type) + ".");
  }

  const Graph& graph_;
  Program& program_;
  SymbolicValues& values_;
  const FunctionSource* functions_;
  const StepCheck& check_;
  GraphLowering* outer_;
  int nesting_;
  std::vector<std::optional<Operand>> operands_;  // by ValueId
  std::unordered_map<ValueId, Sequence> sequences_;
  std::unordered_map<ValueId, Whole> wholes_;
  size_t sequence_tensors_ = 0;
  std::map<std::string, Dim> named_symbols_;
  std::vector<Operand> captures_;
  std::unordered_map<int, Dim> imported_;  // outer node id -> symbol here
  std::unordered_map<int, Dim> exported_;  // symbol's node id here -> outer Dim
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
  SymbolicValues values(*program);
  GraphLowering lowering(graph, *program, values, functions, check, nullptr, 0);
  ONNXIFI_RETURN_IF_ERROR(lowering.DeclareInputs());
  ONNXIFI_RETURN_IF_ERROR(lowering.LowerNodes());
  ONNXIFI_RETURN_IF_ERROR(lowering.DeclareOutputs());
  return program;
}

Judgement LowerEachNode(const Graph& graph, const FunctionSource* functions, const StepCheck& check,
                        Carrier carrier) {
  Program program;
  SymbolicValues values(program);
  GraphLowering lowering(graph, program, values, functions, check, nullptr, 0);
  lowering.DeclareKnownInputs();
  Judgement judgement;
  judgement.nodes = lowering.JudgeNodes();
  lowering.CheckEdges(carrier, judgement);
  return judgement;
}

}  // namespace onnxifi::ops
