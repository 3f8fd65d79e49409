// SPDX-License-Identifier: Apache-2.0
//
// Lowering of a graph: walks the nodes in order, hands each to its operator's entry, and keeps what
// every value became.

#include "backends/core/ops/lower_graph.h"

#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "backends/core/ops/lowering.h"
#include "backends/core/ops/operator.h"

namespace onnxifi::ops {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Type;
using graph::ValueId;
using program::Buffer;
using program::Program;
using program::SymbolicValues;

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

// Refuses a value whose declared type no operand can have; `role` says what it is in the graph.
Status RefuseType(std::string_view role, const graph::Value& value) {
  const Type& type = value.type;
  const auto what = [&] { return std::string(role) + " " + Quoted(value.name); };
  switch (type.kind) {
    case Type::Kind::kUnknown:
      return Status(Code::kUnsupportedShape, what() + " has no declared type.");
    case Type::Kind::kSequence:
      return Status(Code::kUnsupportedDatatype,
                    what() + " is a sequence; only tensors can be run.");
    case Type::Kind::kOptional:
      return Status(Code::kUnsupportedDatatype,
                    what() + " is an optional; only tensors can be run.");
    case Type::Kind::kMap:
      return Status(Code::kUnsupportedDatatype, what() + " is a map; only tensors can be run.");
    case Type::Kind::kTensor:
      break;
  }
  if (type.element == ElementType::kString) {
    return Status(Code::kUnsupportedDatatype,
                  what() + " is a tensor of strings; only numeric tensors can be run.");
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
        operands_(graph.values.size()) {}

  // The graph's own inputs become the program's, with extents as declared.
  Status DeclareInputs() {
    for (ValueId id : graph_.inputs) {
      const graph::Value& value = graph_.values[id];
      ONNXIFI_RETURN_IF_ERROR(RefuseType("Graph input", value));
      operands_[id] = AddInput(value.name, value.type.element, DeclaredShape(value));
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
    for (ValueId id : graph_.inputs) operands_[id] = AssumeDeclared(graph_.values[id]);
  }

  std::vector<Status> JudgeNodes() {
    std::vector<Status> verdicts;
    for (const Node& node : graph_.nodes) {
      verdicts.push_back(LowerNode(node));
      if (verdicts.back().ok() && !sequences_.empty()) verdicts.back() = CheckTensorOutputs(node);
      if (verdicts.back().ok()) continue;
      for (ValueId id : node.outputs) {
        if (id != kNoValue && !operands_[id]) operands_[id] = AssumeDeclared(graph_.values[id]);
      }
    }
    return verdicts;
  }

  // The graph's outputs become the program's: each a dense buffer of its own.
  Status DeclareOutputs() {
    std::vector<program::BufferId> taken;
    for (ValueId id : graph_.outputs) {
      const graph::Value& value = graph_.values[id];
      ONNXIFI_ASSIGN_OR_RETURN(Operand operand, Find(id));
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

  Result<Body> LowerBody(const Graph& body, const std::vector<Input>& inputs) override {
    if (nesting_ >= kMaxNesting) {
      return Status(Code::kInvalidModel, "Subgraphs are nested deeper than the limit of " +
                                             std::to_string(kMaxNesting) + ".");
    }
    Body result;
    result.program = std::make_unique<Program>();
    SymbolicValues values(*result.program);
    GraphLowering lowering(body, *result.program, values, functions_, check_, this, nesting_ + 1);
    for (size_t k = 0; k < inputs.size() && k < body.inputs.size(); ++k) {
      Shape shape;
      for (const std::optional<Dim>& extent : inputs[k].extents) {
        shape.push_back(extent ? lowering.Import(*extent)
                               : result.program->dims->NewSymbol(body.values[body.inputs[k]].name,
                                                                 /*is_data=*/false));
      }
      lowering.operands_[body.inputs[k]] =
          lowering.AddInput(body.values[body.inputs[k]].name, inputs[k].type, shape);
    }
    ONNXIFI_RETURN_IF_ERROR(lowering.LowerNodes());
    ONNXIFI_RETURN_IF_ERROR(lowering.DeclareOutputs());
    result.captures = std::move(lowering.captures_);
    for (const program::Port& port : result.program->outputs) {
      std::vector<std::optional<Dim>>& extents = result.output_extents.emplace_back();
      for (const Dim& extent : port.shape) extents.push_back(lowering.Export(extent));
    }
    return result;
  }

 private:
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
    buffer.type = type;
    buffer.shape = shape;
    buffer.index = static_cast<int>(program_.inputs.size());
    program::BufferId id = program_.AddBuffer(std::move(buffer));
    program_.inputs.push_back({name, id, shape});
    program::View view = program::DenseView(id, type, shape);
    return {std::move(view), std::move(shape)};
  }

  // Sequences stay inside the graph.
  Status CheckTensorOutputs(const Node& node) const {
    for (ValueId id : node.outputs) {
      const bool is_output =
          std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end();
      if (!is_output || !sequences_.contains(id)) continue;
      return Status(Code::kUnsupportedDatatype, "Graph output " + Quoted(graph_.values[id].name) +
                                                    " is a sequence; only tensors can be given.");
    }
    return base::Ok();
  }

  // Stands in for a value whose producer cannot be lowered.
  std::optional<Operand> AssumeDeclared(const graph::Value& value) {
    if (!RefuseType("Value", value).ok()) return std::nullopt;
    return AddInput(value.name, value.type.element, DeclaredShape(value));
  }

  Result<Operand> Find(ValueId id) {
    if (operands_[id]) return *operands_[id];
    const graph::Value& value = graph_.values[id];
    if (sequences_.contains(id)) {
      return Status(Code::kUnsupportedDatatype,
                    "Value " + Quoted(value.name) + " is a sequence where a tensor is needed.");
    }
    if (value.constant) {
      operands_[id] = AddConstant(*value.constant);
    } else if (value.is_weight && RefuseType("Value", value).ok()) {
      ONNXIFI_ASSIGN_OR_RETURN(operands_[id], AddAbsentWeight(value));
    } else if (value.outer != kNoValue && outer_ != nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(Operand outside, outer_->Find(value.outer));
      operands_[id] = Capture(value.name, outside);
    } else {
      Status refused = RefuseType("Value", value);
      if (!refused.ok()) return refused;
      return Status(Code::kUnsupportedShape,
                    "Value " + Quoted(value.name) + " is computed by a node that cannot be run.");
    }
    if (!operands_[id]) {
      return Status(Code::kUnsupportedDatatype,
                    "Constant " + Quoted(value.name) + " is a tensor of strings.");
    }
    return *operands_[id];
  }

  std::optional<Operand> AddConstant(const tensor::Tensor& constant) {
    if (constant.type() == ElementType::kString) return std::nullopt;
    Buffer buffer;
    buffer.kind = Buffer::Kind::kConstant;
    buffer.type = constant.type();
    buffer.shape.assign(constant.extents().begin(), constant.extents().end());
    buffer.index = static_cast<int>(program_.constants.size());
    program_.constants.push_back(constant);
    Shape shape = buffer.shape;
    program::BufferId id = program_.AddBuffer(std::move(buffer));
    return Operand{program::DenseView(id, constant.type(), shape), shape};
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
    return *AddConstant(tensor::Tensor::Borrow(value.type.element, extents, nullptr, nullptr));
  }

  // A value of the enclosing program becomes an input of this one; a constant is shared.
  Operand Capture(const std::string& name, const Operand& outside) {
    const Buffer& buffer = outer_->program_.buffers[outside.view.buffer];
    if (buffer.kind == Buffer::Kind::kConstant && program::IsDense(outside)) {
      return *AddConstant(outer_->program_.constants[buffer.index]);
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
    buffer.type = operand.type();
    buffer.shape = operand.shape;
    program::BufferId id = program_.AddBuffer(std::move(buffer));
    program::Step step;
    step.domain = operand.shape;
    step.reads = {operand.view};
    step.writes = {program::DenseView(id, operand.type(), operand.shape)};
    step.body = program::Map{{Load(program_.exprs, operand.type(), 0).id()}};
    program_.steps.push_back(std::move(step));
    return {program::DenseView(id, operand.type(), operand.shape), operand.shape};
  }

  Status LowerNode(const Node& node) {
    const Operator* entry = FindOperator(node.domain, node.op_type);
    if (entry == nullptr) return ExpandNode(node);
    if (node.since_version > entry->newest_version) {
      return Status(Code::kUnsupportedVersion, node.op_type + " of version " +
                                                   std::to_string(node.since_version) +
                                                   " is newer than the newest supported version (" +
                                                   std::to_string(entry->newest_version) + ").");
    }
    std::vector<std::optional<Operand>> inputs;
    std::vector<std::pair<int, const Sequence*>> sequences;
    inputs.reserve(node.inputs.size());
    for (ValueId id : node.inputs) {
      if (id == kNoValue) {
        inputs.emplace_back();
        continue;
      }
      if (entry->takes_sequences && sequences_.contains(id)) {
        sequences.emplace_back(static_cast<int>(inputs.size()), &sequences_.at(id));
        inputs.emplace_back();
        continue;
      }
      ONNXIFI_ASSIGN_OR_RETURN(Operand operand, Find(id));
      inputs.push_back(std::move(operand));
    }
    std::vector<bool> wanted;
    for (ValueId id : node.outputs) wanted.push_back(id != kNoValue);
    size_t first_step = program_.steps.size();
    size_t first_buffer = program_.buffers.size();
    Lowering lowering(node, program_, values_, std::move(inputs), std::move(wanted), *this);
    for (const auto& [input, tensors] : sequences) lowering.GiveSequence(input, *tensors);
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
      ONNXIFI_RETURN_IF_ERROR(CheckDeclared(graph_.values[id], tensors));
      sequence_tensors_ += tensors.size();
      if (sequence_tensors_ > kMostSequenceTensors) {
        return Status(Code::kUnsupportedShape,
                      "The sequences up to value " + Quoted(graph_.values[id].name) + " hold " +
                          std::to_string(sequence_tensors_) +
                          " tensors, more than the largest supported number (" +
                          std::to_string(kMostSequenceTensors) + ").");
      }
      sequences_[id] = std::move(tensors);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] == kNoValue || sequences_.contains(node.outputs[k])) continue;
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
    std::vector<Operand> inputs;
    for (ValueId id : node.inputs) {
      Type& type = types.emplace_back();
      if (id == kNoValue) continue;
      ONNXIFI_ASSIGN_OR_RETURN(Operand operand, Find(id));
      type.kind = Type::Kind::kTensor;
      type.element = operand.type();
      type.extents.emplace();
      for (const Dim& dim : operand.shape) {
        graph::Extent extent;
        if (dim.is_constant()) extent.number = dim.constant();
        type.extents->push_back(std::move(extent));
      }
      inputs.push_back(std::move(operand));
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
    for (size_t k = 0; k < body.inputs.size(); ++k) lowering.operands_[body.inputs[k]] = inputs[k];
    Status status = lowering.LowerNodes();
    if (!status.ok()) return std::move(status).Context("in the function body of " + node.op_type);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (node.outputs[k] == kNoValue) continue;
      ONNXIFI_ASSIGN_OR_RETURN(Operand operand, lowering.Find(body.outputs[k]));
      ONNXIFI_RETURN_IF_ERROR(CheckDeclared(graph_.values[node.outputs[k]], operand));
      operands_[node.outputs[k]] = std::move(operand);
    }
    return base::Ok();
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

  Status CheckDeclared(const graph::Value& value, const Sequence& tensors) const {
    const Type& type = value.type;
    if (type.kind == Type::Kind::kUnknown) return base::Ok();
    const bool is_sequence = type.kind == Type::Kind::kSequence;
    const ElementType declared =
        is_sequence && type.inner ? type.inner->element : ElementType::kUndefined;
    for (const Operand& tensor : tensors) {
      if (declared == ElementType::kUndefined || declared == tensor.type()) continue;
      return Status(Code::kMismatchingDatatype, "Value " + Quoted(value.name) +
                                                    " is declared a sequence of " +
                                                    std::string(Name(declared)) + " but holds " +
                                                    std::string(Name(tensor.type())) + ".");
    }
    if (is_sequence) return base::Ok();
    return Status(Code::kMismatchingDatatype,
                  "Value " + Quoted(value.name) + " is declared no sequence but is one.");
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

Status CheckInputs(const Graph& graph) {
  for (ValueId id : graph.inputs) {
    const graph::Value& value = graph.values[id];
    ONNXIFI_RETURN_IF_ERROR(RefuseType("Graph input", value));
  }
  return base::Ok();
}

std::vector<Status> LowerEachNode(const Graph& graph, const FunctionSource* functions,
                                  const StepCheck& check) {
  Program program;
  SymbolicValues values(program);
  GraphLowering lowering(graph, program, values, functions, check, nullptr, 0);
  lowering.DeclareKnownInputs();
  return lowering.JudgeNodes();
}

}  // namespace onnxifi::ops
