// SPDX-License-Identifier: Apache-2.0
//
// Lowering and StepBuilder: the parts that every operator's lowering is put together from.

#include "backends/core/ops/lowering.h"

#include <algorithm>
#include <new>

namespace onnxifi::ops {

program::ValueType Sequence::type() const {
  int rank = program::ValueType::kNoRank;
  for (const Operand& tensor : tensors) {
    if (rank == program::ValueType::kNoRank) rank = tensor.rank();
    if (rank != tensor.rank()) rank = program::ValueType::kAnyRank;
  }
  return program::ValueType::Sequence(program::ValueType::Tensor(element, rank));
}

program::BufferId AddConstant(program::Program& program, tensor::Tensor tensor) {
  program::Buffer buffer;
  buffer.kind = program::Buffer::Kind::kConstant;
  buffer.type = StoredType(tensor.type());
  buffer.holds_strings = tensor.type() == ElementType::kString;
  buffer.shape.assign(tensor.extents().begin(), tensor.extents().end());
  buffer.index = static_cast<int>(program.constants.size());
  if (buffer.holds_strings) {
    base::Result<tensor::Tensor> numbers = program.strings->NumbersOf(tensor);
    if (!numbers.ok()) throw std::bad_alloc();
    tensor = *std::move(numbers);
  }
  program.constants.push_back(std::move(tensor));
  return program.AddBuffer(std::move(buffer));
}

Lowering::Lowering(const graph::Graph& graph, const graph::Node& node, program::Program& program,
                   program::SymbolicValues& values, std::vector<std::optional<Operand>> inputs,
                   BodyLowering& bodies)
    : graph_(graph),
      node_(node),
      program_(program),
      values_(values),
      inputs_(std::move(inputs)),
      outputs_(node.outputs.size()),
      bodies_(bodies) {}

int64_t Lowering::Int(std::string_view name, int64_t fallback) const {
  const int64_t* value = node_.FindAttribute<int64_t>(name);
  return value ? *value : fallback;
}

float Lowering::Float(std::string_view name, float fallback) const {
  const float* value = node_.FindAttribute<float>(name);
  return value ? *value : fallback;
}

std::string Lowering::String(std::string_view name, std::string_view fallback) const {
  const std::string* value = node_.FindAttribute<std::string>(name);
  return value ? *value : std::string(fallback);
}

const std::vector<int64_t>* Lowering::Ints(std::string_view name) const {
  return node_.FindAttribute<std::vector<int64_t>>(name);
}

const std::vector<float>* Lowering::Floats(std::string_view name) const {
  return node_.FindAttribute<std::vector<float>>(name);
}

bool Lowering::HasAttribute(std::string_view name) const {
  return node_.attributes.find(name) != node_.attributes.end();
}

Status Lowering::NeedInputs(int count) const {
  for (int k = 0; k < count; ++k) {
    if (!Has(k)) {
      return InvalidModel("Input " + std::to_string(k) + " is missing; " + std::to_string(count) +
                          " are required.");
    }
  }
  return base::Ok();
}

const Sequence* Lowering::InSequence(int input) const {
  const auto found = sequences_.find(input);
  return found == sequences_.end() ? nullptr : found->second;
}

const NonTensorValue* Lowering::InNonTensorValue(int input) const {
  const auto found = non_tensor_values_.find(input);
  return found == non_tensor_values_.end() ? nullptr : found->second;
}

bool Lowering::HasAny(int input) const {
  return Has(input) || InSequence(input) != nullptr || InNonTensorValue(input) != nullptr;
}

program::ValueType Lowering::InType(int input) const {
  if (const NonTensorValue* whole = InNonTensorValue(input)) return whole->type;
  if (const Sequence* sequence = InSequence(input)) return sequence->type();
  return program::ValueType::Tensor(In(input).type(), In(input).rank());
}

std::optional<int> Lowering::DeclaredRank(int output) const {
  if (!Wants(output)) return std::nullopt;
  const graph::Type& type = graph_.values[node_.outputs[output]].type;
  if (type.kind != graph::Type::Kind::kTensor || !type.extents) return std::nullopt;
  return static_cast<int>(type.extents->size());
}

std::optional<Dims> Lowering::Integers(int input) const {
  if (!Has(input)) return std::nullopt;
  return values_.Find(In(input));
}

Result<Dims> Lowering::IntegersOrRuntime(int input, std::optional<int64_t> count) {
  const Operand& operand = In(input);
  const ElementType type = operand.type();
  if (tensor::IsInteger(type) || tensor::IsBool(type)) {
    if (std::optional<Dims> known = Integers(input)) return *known;
  }
  if (!tensor::IsInteger(type)) return UnsupportedType(input);
  const bool is_open = operand.rank() == 1 && !operand.shape[0].is_constant();
  if (operand.rank() > 1 || (is_open && count.value_or(-1) < 0)) {
    return UnsupportedShape("Input " + std::to_string(input) + " of shape " +
                            tensor::ToString(operand.shape) +
                            " gives extents and must have one axis of a known extent.");
  }
  if (is_open) {
    ONNXIFI_RETURN_IF_ERROR(
        RequireEqual(operand.shape[0], *count,
                     "The extent of input " + std::to_string(input) + " and the number needed"));
  } else {
    count = operand.rank() == 0 ? 1 : operand.shape[0].constant();
  }
  if (*count > program::SymbolicValues::kMaxElements) {
    return UnsupportedShape("Input " + std::to_string(input) + " gives " + std::to_string(*count) +
                            " extents, more than the " +
                            std::to_string(program::SymbolicValues::kMaxElements) + " supported.");
  }
  Operand flat = Reshaped(operand, {Dim(*count)});
  return ReadAtRunTime(flat, static_cast<int>(*count));
}

const tensor::Tensor* Lowering::Constant(int input) const {
  if (!Has(input)) return nullptr;
  const Operand& operand = In(input);
  const program::Buffer& buffer = program_.buffers[operand.view.buffer];
  if (buffer.kind != program::Buffer::Kind::kConstant || !program::IsDense(operand)) return nullptr;
  const tensor::Tensor& constant = program_.constants[buffer.index];
  if (constant.data() == nullptr && constant.element_count() > 0) return nullptr;
  return &constant;
}

const tensor::Tensor* Lowering::SmallConstant(int input) const {
  const tensor::Tensor* constant = Constant(input);
  if (constant == nullptr) return nullptr;
  return constant->element_count() <= program::SymbolicValues::kMaxElements ? constant : nullptr;
}

Result<int> Lowering::Axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) {
    return InvalidModel("Axis " + std::to_string(axis) + " is outside [" + std::to_string(-rank) +
                        ", " + std::to_string(rank - 1) + "].");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<std::vector<int>> Lowering::Axes(const std::vector<int64_t>& axes, int rank) const {
  std::vector<int> normal;
  for (int64_t axis : axes) {
    ONNXIFI_ASSIGN_OR_RETURN(int position, Axis(axis, rank));
    if (std::find(normal.begin(), normal.end(), position) != normal.end()) {
      return InvalidModel("Axis " + std::to_string(axis) + " is given twice.");
    }
    normal.push_back(position);
  }
  return normal;
}

Status Lowering::Require(Dim condition, Code code, std::string sentence, Dims shown) {
  if (condition.is_constant()) {
    if (condition.constant() != 0) return base::Ok();
    return Status(code, node_.op_type + ": " + sentence);
  }
  Status violation(code, node_.op_type + ": " + sentence);
  violation.Context("while running " + graph::Describe(node_));
  program_.requirements.push_back({condition, std::move(violation), std::move(shown)});
  return base::Ok();
}

Status Lowering::RequireEqual(Dim a, Dim b, std::string_view what) {
  if (a == b) return base::Ok();
  return Require(Equal(a, b), Code::kMismatchingShape,
                 std::string(what) + " differ: " + a.ToString() + " and " + b.ToString() + ".",
                 {a, b});
}

Result<Shape> Lowering::Broadcast(const Shape& a, const Shape& b) {
  size_t rank = std::max(a.size(), b.size());
  Shape shape(rank);
  for (size_t k = 0; k < rank; ++k) {
    Dim x = k < rank - a.size() ? Dim(1) : a[k - (rank - a.size())];
    Dim y = k < rank - b.size() ? Dim(1) : b[k - (rank - b.size())];
    if (x == y || y == Dim(1)) {
      shape[k] = x;
    } else if (x == Dim(1)) {
      shape[k] = y;
    } else {
      Dim fits = Max(Equal(x, y), Max(Equal(x, Dim(1)), Equal(y, Dim(1))));
      ONNXIFI_RETURN_IF_ERROR(Require(
          fits, Code::kMismatchingShape,
          "Shapes " + tensor::ToString(a) + " and " + tensor::ToString(b) + " do not broadcast.",
          {x, y}));
      // A number above 1 wins over a symbol: the symbol is that number or 1.
      if (x.is_constant()) {
        shape[k] = x;
      } else if (y.is_constant()) {
        shape[k] = y;
      } else {
        shape[k] = Select(Equal(x, Dim(1)), y, x);
      }
    }
  }
  return shape;
}

Operand Lowering::Temporary(ElementType type, Shape shape) {
  program::Buffer buffer;
  buffer.kind = program::Buffer::Kind::kTemporary;
  buffer.type = StoredType(type);
  buffer.holds_strings = type == ElementType::kString;
  buffer.shape = shape;
  program::BufferId id = program_.AddBuffer(std::move(buffer));
  return {program::DenseView(id, type, shape), std::move(shape)};
}

Operand Lowering::ConstantTensor(tensor::Tensor tensor) {
  const ElementType type = tensor.type();
  const program::BufferId id = AddConstant(program_, std::move(tensor));
  const Shape& shape = program_.buffers[id].shape;
  return {program::DenseView(id, type, shape), shape};
}

Operand Lowering::Dynamic(ElementType type, const std::vector<std::optional<Dim>>& extents,
                          const std::string& name, int& first_symbol) {
  tensor::DimTable& dims = *program_.dims;
  // A run holds the numbers of all symbols for each segment: an unused one costs each of them.
  const bool is_known =
      std::ranges::all_of(extents, [](const auto& dim) { return dim.has_value(); });
  first_symbol = is_known ? -1 : dims.symbol_count();
  program::Buffer buffer;
  buffer.kind = program::Buffer::Kind::kDynamic;
  buffer.type = StoredType(type);
  buffer.holds_strings = type == ElementType::kString;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (is_known) {
      buffer.shape.push_back(*extents[axis]);
      continue;
    }
    Dim symbol = dims.NewSymbol(
        node_.op_type + std::to_string(node_.index) + "." + name + "." + std::to_string(axis),
        /*is_data=*/true);
    buffer.shape.push_back(extents[axis] ? *extents[axis] : symbol);
  }
  Shape shape = buffer.shape;
  const program::BufferId id = program_.AddBuffer(std::move(buffer));
  return {program::DenseView(id, type, shape), std::move(shape)};
}

NonTensorValue Lowering::DynamicNonTensorValue(program::ValueType type) {
  program::Buffer buffer;
  buffer.kind = program::Buffer::Kind::kDynamic;
  buffer.value = type;
  return {program_.AddBuffer(std::move(buffer)), std::move(type)};
}

void Lowering::Emit(program::Step step) {
  step.node = node_.index;
  for (View& view : step.reads) view.type = StoredType(view.type);
  for (View& view : step.writes) view.type = StoredType(view.type);
  program_.steps.push_back(std::move(step));
  values_.Observe(program_.steps.back());
}

Operand Lowering::Dense(const Operand& operand) {
  if (program::IsDense(operand)) return operand;
  StepBuilder copy(*this, operand.shape);
  return copy.WriteMap(copy.ReadView(operand.view), operand.type());
}

Operand Lowering::Reshaped(const Operand& operand, const Shape& shape) {
  if (std::optional<Operand> view = program::Reshape(operand, shape)) return *view;
  Operand dense = Dense(operand);
  return {program::DenseView(dense.view.buffer, dense.type(), shape), shape};
}

Operand Lowering::CastTo(const Operand& operand, ElementType type) {
  if (operand.type() == type) return operand;
  StepBuilder cast(*this, operand.shape);
  return cast.WriteMap(cast.ReadView(operand.view), type);
}

Dims Lowering::ReadAtRunTime(const Operand& operand, int count, int64_t lower) {
  Operand numbers = CastTo(operand, ElementType::kInt64);
  program::Cut cut;
  cut.first_symbol = program_.dims->symbol_count();
  cut.count = count;
  Dims symbols;
  for (int k = 0; k < count; ++k) {
    symbols.push_back(program_.dims->NewSymbol(
        node_.op_type + std::to_string(node_.index) + "_" + std::to_string(k), /*is_data=*/true,
        lower));
  }
  program::Step step;
  step.domain = {Dim(count)};
  step.reads.push_back(numbers.view);
  step.body = cut;
  Emit(std::move(step));
  return symbols;
}

Status Lowering::UnsupportedAttribute(std::string sentence) const {
  return Status(Code::kUnsupportedAttribute, node_.op_type + ": " + sentence);
}

Status Lowering::UnsupportedShape(std::string sentence) const {
  return Status(Code::kUnsupportedShape, node_.op_type + ": " + sentence);
}

Status Lowering::UnsupportedType(int input) const {
  return Status(Code::kUnsupportedDatatype, node_.op_type + ": Element type " +
                                                std::string(Name(In(input).type())) + " of input " +
                                                std::to_string(input) + " is not supported.");
}

Status Lowering::InvalidModel(std::string sentence) const {
  return Status(Code::kInvalidModel, node_.op_type + ": " + sentence);
}

Expr StepBuilder::Read(const Operand& operand) {
  return ReadView(program::BroadcastTo(operand, domain_));
}

Expr StepBuilder::ReadArithmetic(const Operand& operand) {
  return Cast(Read(operand), tensor::ArithmeticType(operand.type()));
}

Expr StepBuilder::ReadView(const View& view) {
  for (int read : loaded_) {
    if (reads_[read] == view) return Load(exprs(), StoredType(view.type), read);
  }
  loaded_.push_back(AddRead(view));
  return Load(exprs(), StoredType(view.type), loaded_.back());
}

Expr StepBuilder::ReadAt(const Operand& operand, const std::vector<Expr>& coordinates) {
  View view = operand.view;
  for (int axis = 0; axis < operand.rank(); ++axis) {
    program::Guard guard;
    guard.coefficients.assign(operand.rank(), Dim(0));
    guard.coefficients[axis] = Dim(1);
    guard.extent = operand.shape[axis];
    view.guards.push_back(std::move(guard));
  }
  return LoadAt(exprs(), StoredType(view.type), AddRead(view), coordinates);
}

Expr StepBuilder::ReadAtUnchecked(const Operand& operand, const std::vector<Expr>& coordinates) {
  return LoadAt(exprs(), StoredType(operand.type()), AddRead(operand.view), coordinates);
}

int StepBuilder::AddRead(View view) {
  reads_.push_back(std::move(view));
  return static_cast<int>(reads_.size()) - 1;
}

Expr StepBuilder::Coordinate(int axis) { return program::Coordinate(exprs(), axis); }

Expr StepBuilder::Extent(Dim dim) { return DimExpr(exprs(), dim); }

Operand StepBuilder::WriteMap(Expr value, ElementType type) {
  Operand out = lowering_.Temporary(type, domain_);
  const Expr stored = Cast(value, StoredType(type));
  WriteMapTo(std::span(&out, 1), std::span(&stored, 1));
  return out;
}

void StepBuilder::WriteMapTo(std::span<const Operand> targets, std::span<const Expr> values) {
  program::Map map;
  std::vector<View> writes;
  writes.reserve(targets.size());
  for (size_t k = 0; k < targets.size(); ++k) {
    map.roots.push_back(values[k].id());
    writes.push_back(targets[k].view);
  }
  Finish(std::move(map), std::move(writes));
}

void StepBuilder::Finish(program::Body body, std::vector<View> writes) {
  program::Step step;
  step.domain = domain_;
  step.reads = reads_;
  step.writes = std::move(writes);
  step.body = std::move(body);
  lowering_.Emit(std::move(step));
}

}  // namespace onnxifi::ops
