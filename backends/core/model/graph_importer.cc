// SPDX-License-Identifier: Apache-2.0
//
// GraphImporter: one pass over each graph in the order initializers, inputs, declared types, nodes,
// outputs.

#include "backends/core/model/graph_importer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/core/model/type_proto.h"
#include "backends/core/model/versions.h"

namespace onnxifi::model {
namespace {

using base::Code;
using base::Result;
using base::Status;
using graph::kNoValue;
using graph::Type;
using graph::Value;
using graph::ValueId;
using onnx::AttributeProto;

Status Invalid(std::string sentence) { return {Code::kInvalidModel, std::move(sentence)}; }

std::string Quote(std::string_view name) { return "'" + std::string(name) + "'"; }

Type TensorType(tensor::ElementType element, const tensor::Extents& extents) {
  Type type{.kind = Type::Kind::kTensor, .element = element};
  type.extents.emplace();
  type.extents->reserve(extents.size());
  for (const int64_t extent : extents) type.extents->push_back({.number = extent});
  return type;
}

// A weight or initializer against the declaration of the input of its name. Its element type wins
// over the declared one: published callers declare a Reshape's shape FLOAT and give INT64. In a
// weight descriptor an extent of 0 is a fault of its own (ONNXIFI, onnxInitGraph).
Status CheckDeclaredShape(const Value& value, const Type& declared, bool is_from_descriptor) {
  if (declared.kind == Type::Kind::kUnknown) return base::Ok();
  if (declared.kind != Type::Kind::kTensor) {
    return {Code::kMismatchingDatatype,
            "Value " + Quote(value.name) + " is a tensor but is declared to be none."};
  }
  if (!declared.extents) return base::Ok();
  const std::vector<graph::Extent>& actual = *value.type.extents;
  if (actual.size() != declared.extents->size()) {
    return {Code::kMismatchingShape, "Value " + Quote(value.name) + " has rank " +
                                         std::to_string(actual.size()) + " but is declared with " +
                                         std::to_string(declared.extents->size()) + "."};
  }
  for (size_t axis = 0; axis < actual.size(); ++axis) {
    const graph::Extent& expected = (*declared.extents)[axis];
    if (expected.is_known() && expected.number != actual[axis].number) {
      const bool is_zero = is_from_descriptor && actual[axis].number == 0;
      return {is_zero ? Code::kInvalidShape : Code::kMismatchingShape,
              "Value " + Quote(value.name) + " has extent " + std::to_string(actual[axis].number) +
                  " on axis " + std::to_string(axis) + " but is declared with " +
                  std::to_string(expected.number) + "."};
    }
  }
  return base::Ok();
}

AttributeProto::AttributeType TypeOfAttribute(const graph::Attribute& attribute) {
  // In the order of the variant's alternatives.
  constexpr AttributeProto::AttributeType kTypes[] = {
      AttributeProto::INT,    AttributeProto::FLOAT,     AttributeProto::STRING,
      AttributeProto::INTS,   AttributeProto::FLOATS,    AttributeProto::STRINGS,
      AttributeProto::TENSOR, AttributeProto::TENSORS,   AttributeProto::GRAPH,
      AttributeProto::GRAPHS, AttributeProto::TYPE_PROTO};
  static_assert(std::size(kTypes) == std::variant_size_v<graph::Attribute>);
  return kTypes[attribute.index()];
}

bool HasCaptures(const graph::Attribute& attribute) {
  const auto captures = [](const std::shared_ptr<const graph::Graph>& subgraph) {
    return std::ranges::any_of(subgraph->values,
                               [](const Value& value) { return value.outer != kNoValue; });
  };
  if (const auto* one = std::get_if<std::shared_ptr<const graph::Graph>>(&attribute)) {
    return captures(*one);
  }
  const auto* many = std::get_if<std::vector<std::shared_ptr<const graph::Graph>>>(&attribute);
  return many != nullptr && std::ranges::any_of(*many, captures);
}

// What a copy of the attribute costs; tensors and graphs are shared.
int64_t CopiedBytes(const graph::Attribute& attribute) {
  if (const auto* text = std::get_if<std::string>(&attribute)) {
    return static_cast<int64_t>(text->size());
  }
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute)) {
    return static_cast<int64_t>(ints->size() * sizeof(int64_t));
  }
  if (const auto* floats = std::get_if<std::vector<float>>(&attribute)) {
    return static_cast<int64_t>(floats->size() * sizeof(float));
  }
  int64_t size_bytes = 0;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute)) {
    for (const std::string& text : *texts) {
      size_bytes += static_cast<int64_t>(sizeof(text) + text.size());
    }
  }
  return size_bytes;
}

int64_t TensorBytes(const graph::Attribute& attribute) {
  if (const auto* one = std::get_if<tensor::Tensor>(&attribute)) return one->size_bytes();
  int64_t size_bytes = 0;
  if (const auto* many = std::get_if<std::vector<tensor::Tensor>>(&attribute)) {
    for (const tensor::Tensor& one : *many) size_bytes += one.size_bytes();
  }
  return size_bytes;
}

std::string FunctionKey(std::string_view domain, const std::string& name,
                        const std::string& overload) {
  std::string key(domain);
  key += '\0';
  key += name;
  key += '\0';
  return key + overload;
}

}  // namespace

Result<graph::Graph> GraphImporter::Run(const OpsetTable& opsets) {
  ONNXIFI_RETURN_IF_ERROR(IndexFunctions());
  ONNXIFI_RETURN_IF_ERROR(IndexWeights());
  graph::Graph result;
  Scope scope{.graph = &result, .outer = nullptr, .opsets = &opsets, .call = nullptr, .depth = 0};
  ONNXIFI_RETURN_IF_ERROR(ImportGraph(model_.graph(), scope));
  ONNXIFI_RETURN_IF_ERROR(CheckWeightsRead(scope));
  return result;
}

Status GraphImporter::IndexFunctions() {
  for (const onnx::FunctionProto& function : model_.functions()) {
    const std::string key =
        FunctionKey(CanonicalDomain(function.domain()), function.name(), function.overload());
    if (!functions_.emplace(key, &function).second) {
      return Invalid("The model defines function " + Quote(function.name()) + " of domain " +
                     Quote(function.domain()) + " twice.");
    }
  }
  return base::Ok();
}

Status GraphImporter::IndexWeights() {
  for (const Weight& weight : options_.weights) {
    if (!weights_.emplace(weight.name, &weight).second) {
      return {Code::kInvalidName, "Weight " + Quote(weight.name) + " is given twice."};
    }
  }
  return base::Ok();
}

const onnx::FunctionProto* GraphImporter::FindFunction(const onnx::NodeProto& proto,
                                                       std::string_view domain) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(FunctionKey(domain, proto.op_type(), proto.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

const Weight* GraphImporter::FindWeight(std::string_view name) const {
  if (weights_.empty()) return nullptr;
  const auto found = weights_.find(name);
  return found == weights_.end() ? nullptr : found->second;
}

std::optional<ValueId> GraphImporter::Resolve(std::string_view name, Scope& scope) {
  const auto found = scope.names.find(name);
  if (found != scope.names.end() && found->second.is_defined) {
    found->second.is_read = true;
    return found->second.id;
  }
  if (scope.outer != nullptr) {
    const std::optional<ValueId> outer = Resolve(name, *scope.outer);
    if (!outer || *outer == kNoValue) return outer;
    Value capture{.name = std::string(name),
                  .type = scope.outer->graph->values[static_cast<size_t>(*outer)].type,
                  .outer = *outer};
    Result<ValueId> id = Define(name, std::move(capture), scope);
    if (!id.ok()) return std::nullopt;
    return *id;
  }
  // Support questions come with inputs that are declared nowhere.
  if (scope.call == nullptr && !options_.lift_values) {
    Result<ValueId> id = Define(name, {.name = std::string(name)}, scope);
    if (!id.ok()) return std::nullopt;
    scope.graph->inputs.push_back(*id);
    return *id;
  }
  return std::nullopt;
}

Result<ValueId> GraphImporter::Define(std::string_view name, Value value, Scope& scope) {
  Entry& entry = scope.names[name];
  if (entry.is_defined) {
    return Invalid("Value " + Quote(name) + " is defined twice, or read before its definition.");
  }
  entry.is_defined = true;
  if (entry.id == kNoValue) {
    entry.id = scope.graph->AddValue(std::move(value));
  } else {
    // Declared before: what the definition itself says of the type is more exact.
    Value& declared = scope.graph->values[static_cast<size_t>(entry.id)];
    if (value.type.kind == Type::Kind::kUnknown) value.type = std::move(declared.type);
    declared = std::move(value);
  }
  return entry.id;
}

Status GraphImporter::Spend(int64_t count, int64_t size_bytes, const Scope& scope) {
  if (scope.call == nullptr) return base::Ok();
  inlined_ += count;
  inlined_bytes_ += size_bytes;
  if (inlined_ <= kMostInlined && inlined_bytes_ <= kMostInlinedBytes) return base::Ok();
  return {Code::kUnsupportedOperator,
          "The model's functions expand to more than the largest supported number of nodes, names "
          "and attributes (" +
              std::to_string(kMostInlined) + ") or of bytes in them (" +
              std::to_string(kMostInlinedBytes) + ")."};
}

Status GraphImporter::ImportGraph(const onnx::GraphProto& proto, Scope& scope) {
  graph::Graph& graph = *scope.graph;
  graph.name = proto.name();
  graph.nodes.reserve(static_cast<size_t>(proto.node_size()));
  graph.values.reserve(static_cast<size_t>(proto.initializer_size() + proto.input_size()) +
                       2 * static_cast<size_t>(proto.node_size()));
  ONNXIFI_RETURN_IF_ERROR(ImportInitializers(proto, scope));
  ONNXIFI_RETURN_IF_ERROR(ImportInputs(proto, scope));
  ONNXIFI_RETURN_IF_ERROR(DeclareTypes(proto.output(), scope));
  ONNXIFI_RETURN_IF_ERROR(DeclareTypes(proto.value_info(), scope));
  if (scope.outer == nullptr) ONNXIFI_RETURN_IF_ERROR(DefineNodeWeights(scope));
  for (int position = 0; position < proto.node_size(); ++position) {
    ONNXIFI_RETURN_IF_ERROR(ImportNode(proto.node(position), position, scope));
  }
  return ImportOutputs(proto, scope);
}

Status GraphImporter::ImportInitializers(const onnx::GraphProto& proto, Scope& scope) {
  const auto define = [&](const std::string& name, const auto& initializer) -> Status {
    if (name.empty()) return Invalid("An initializer has no name.");
    const Weight* weight = scope.outer == nullptr ? FindWeight(name) : nullptr;
    Result<Value> value = weight != nullptr ? ReadWeight(*weight) : ReadInitializer(initializer);
    if (!value.ok()) {
      return std::move(value).status().Context("while reading initializer " + Quote(name));
    }
    if (weight != nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(const TensorReader::Header header, tensors_.ReadHeader(initializer));
      ONNXIFI_RETURN_IF_ERROR(CheckDeclaredShape(*value, TensorType(header.type, header.extents),
                                                 /*is_from_descriptor=*/true));
    }
    value->name = name;
    if (value->constant) {
      ONNXIFI_RETURN_IF_ERROR(Spend(1, value->constant->size_bytes(), scope));
    }
    Result<ValueId> id = Define(name, *std::move(value), scope);
    if (!id.ok()) return std::move(id).status();
    if (weight != nullptr) scope.names[name].is_read = true;
    return base::Ok();
  };
  for (const onnx::TensorProto& initializer : proto.initializer()) {
    ONNXIFI_RETURN_IF_ERROR(define(initializer.name(), initializer));
  }
  for (const onnx::SparseTensorProto& initializer : proto.sparse_initializer()) {
    ONNXIFI_RETURN_IF_ERROR(define(initializer.values().name(), initializer));
  }
  return base::Ok();
}

Result<Value> GraphImporter::ReadInitializer(const onnx::TensorProto& proto) {
  ONNXIFI_ASSIGN_OR_RETURN(const TensorReader::Header header, tensors_.ReadHeader(proto));
  Value value;
  value.type = TensorType(header.type, header.extents);
  value.is_weight = header.element_count > graph::kLargestStructuralCount;
  const bool has_values = header.element_count == 0 || tensors_.HasData(proto);
  if (!options_.lift_values && (value.is_weight || !has_values)) {
    value.is_weight = true;
    return value;
  }
  ONNXIFI_ASSIGN_OR_RETURN(value.constant, tensors_.Read(proto));
  return value;
}

Result<Value> GraphImporter::ReadInitializer(const onnx::SparseTensorProto& proto) {
  ONNXIFI_ASSIGN_OR_RETURN(const TensorReader::Header header, tensors_.ReadHeader(proto));
  Value value;
  value.type = TensorType(header.type, header.extents);
  value.is_weight = header.element_count > graph::kLargestStructuralCount;
  if (!options_.lift_values && value.is_weight) return value;
  ONNXIFI_ASSIGN_OR_RETURN(value.constant, tensors_.Read(proto));
  return value;
}

Result<Value> GraphImporter::ReadWeight(const Weight& weight) {
  const std::string quoted = "Weight " + Quote(weight.name);
  for (const int64_t extent : weight.extents) {
    if (extent < 0) {
      return Status(Code::kInvalidShape, quoted + " has an extent (" +
                                             std::to_string(static_cast<uint64_t>(extent)) +
                                             ") above the largest possible (2^63 - 1).");
    }
  }
  if (weight.type == tensor::ElementType::kString ||
      weight.type == tensor::ElementType::kUndefined) {
    return Status(Code::kUnsupportedDatatype, quoted + " has element type " +
                                                  std::string(tensor::Name(weight.type)) +
                                                  ", which a weight cannot have.");
  }
  const int64_t element_count = tensor::ElementCount(weight.extents);
  if (weight.data == nullptr && element_count != 0) {
    return Status(Code::kInvalidMemoryLocation, quoted + " has no data.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor copy,
                           tensor::Tensor::Allocate(weight.type, weight.extents));
  if (element_count != 0) {
    std::memcpy(copy.mutable_data(), weight.data, static_cast<size_t>(copy.size_bytes()));
  }
  Value value{.name = weight.name, .type = TensorType(weight.type, weight.extents)};
  value.constant = std::move(copy);
  value.is_weight = element_count > graph::kLargestStructuralCount;
  return value;
}

Status GraphImporter::ImportInputs(const onnx::GraphProto& proto, Scope& scope) {
  const bool is_main = scope.outer == nullptr;
  for (const onnx::ValueInfoProto& input : proto.input()) {
    if (input.name().empty()) return Invalid("A graph input has no name.");
    const std::string context = "at graph input " + Quote(input.name());
    Result<Type> type = TypeFromProto(input.type());
    if (!type.ok()) return std::move(type).status().Context(context);
    Entry& entry = scope.names[input.name()];
    if (entry.is_input || (entry.is_defined && !is_main)) {
      return Invalid("Graph input " + Quote(input.name()) + " is defined twice.");
    }
    entry.is_input = true;
    const Weight* weight = is_main ? FindWeight(input.name()) : nullptr;
    if (weight != nullptr && !entry.is_defined) {
      Result<Value> value = ReadWeight(*weight);
      if (!value.ok()) return std::move(value).status().Context(context);
      Result<ValueId> id = Define(input.name(), *std::move(value), scope);
      if (!id.ok()) return std::move(id).status();
      entry.is_read = true;
    }
    if (entry.is_defined) {
      const Value& value = scope.graph->values[static_cast<size_t>(entry.id)];
      ONNXIFI_RETURN_IF_ERROR(
          CheckDeclaredShape(value, *type, /*is_from_descriptor=*/weight != nullptr)
              .Context(context));
      continue;
    }
    ONNXIFI_ASSIGN_OR_RETURN(
        const ValueId id,
        Define(input.name(), {.name = input.name(), .type = *std::move(type)}, scope));
    scope.graph->inputs.push_back(id);
  }
  return base::Ok();
}

Status GraphImporter::DeclareTypes(
    const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& declared, Scope& scope) {
  for (const onnx::ValueInfoProto& info : declared) {
    if (info.name().empty()) continue;
    Result<Type> type = TypeFromProto(info.type());
    if (!type.ok()) {
      return std::move(type).status().Context("at the declaration of " + Quote(info.name()));
    }
    Entry& entry = scope.names[info.name()];
    if (entry.id == kNoValue) {
      entry.id = scope.graph->AddValue({.name = info.name(), .type = *std::move(type)});
      continue;
    }
    Value& value = scope.graph->values[static_cast<size_t>(entry.id)];
    if (value.type.kind == Type::Kind::kUnknown) value.type = *std::move(type);
  }
  return base::Ok();
}

Status GraphImporter::DefineNodeWeights(Scope& scope) {
  for (const Weight& weight : options_.weights) {
    const auto found = scope.names.find(weight.name);
    if (found != scope.names.end() && found->second.is_defined) continue;
    ONNXIFI_ASSIGN_OR_RETURN(Value value, ReadWeight(weight));
    Result<ValueId> id = Define(weight.name, std::move(value), scope);
    if (!id.ok()) return std::move(id).status();
  }
  return base::Ok();
}

Status GraphImporter::CheckWeightsRead(const Scope& scope) const {
  for (const Weight& weight : options_.weights) {
    if (scope.names.at(weight.name).is_read) continue;
    return {Code::kInvalidName, "Weight " + Quote(weight.name) +
                                    " is neither a graph input, nor an initializer, nor the input "
                                    "of a node."};
  }
  return base::Ok();
}

Status GraphImporter::ImportOutputs(const onnx::GraphProto& proto, Scope& scope) {
  graph::Graph& graph = *scope.graph;
  const bool is_main = scope.outer == nullptr;
  for (const onnx::ValueInfoProto& output : proto.output()) {
    if (output.name().empty()) return Invalid("A graph output has no name.");
    const auto found = scope.names.find(output.name());
    // In the model's own graph an implicit input would hide that nothing computes the output.
    const bool is_defined = found != scope.names.end() && found->second.is_defined;
    std::optional<ValueId> id;
    if (is_defined || !is_main) id = Resolve(output.name(), scope);
    if (!id || *id == kNoValue) {
      return Invalid("Graph output " + Quote(output.name()) + " is computed by no node.");
    }
    // Outputs of the model are bound by name; those of a body by position.
    if (is_main && std::exchange(found->second.is_output, true)) {
      return Invalid("Graph output " + Quote(output.name()) + " is listed twice.");
    }
    graph.outputs.push_back(*id);
  }
  if (proto.output_size() > 0 || !is_main) return base::Ok();
  const std::vector<int> use_counts = graph.UseCounts();
  for (const graph::Node& node : graph.nodes) {
    for (const ValueId output : node.outputs) {
      if (output != kNoValue && use_counts[static_cast<size_t>(output)] == 0) {
        graph.outputs.push_back(output);
      }
    }
  }
  return base::Ok();
}

Status GraphImporter::ImportNode(const onnx::NodeProto& proto, int position, Scope& scope) {
  if (scope.call != nullptr) {
    const int64_t count = 1 + proto.input_size() + proto.output_size() + proto.attribute_size();
    const auto text_bytes = static_cast<int64_t>(scope.prefix.size() + proto.ByteSizeLong());
    ONNXIFI_RETURN_IF_ERROR(Spend(count, count * text_bytes, scope));
  }
  graph::Node node;
  node.name = scope.prefix.empty() ? proto.name() : scope.prefix + proto.name();
  node.op_type = proto.op_type();
  node.domain = CanonicalDomain(proto.domain());
  node.index = scope.call != nullptr ? scope.call->node_index : position;
  const auto describe = [&] { return "while importing " + graph::Describe(node); };
  if (proto.op_type().empty()) return Invalid("A node names no operator.").Context(describe());
  if (const onnx::FunctionProto* function = FindFunction(proto, node.domain)) {
    Status status = ImportCall(proto, *function, node, scope);
    return status.ok() ? status : std::move(status).Context(describe());
  }
  // Moves the node into the graph, but only when nothing is left that could fail.
  Status status = ImportOperator(proto, node, scope);
  return status.ok() ? status : std::move(status).Context(describe());
}

Status GraphImporter::ImportOperator(const onnx::NodeProto& proto, graph::Node& node,
                                     Scope& scope) {
  const std::optional<int64_t> opset = scope.opsets->Find(node.domain);
  if (!opset) {
    return Invalid("Operator set " + Quote(SpelledDomain(node.domain)) +
                   ", which the node needs, is not imported.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Schema schema, Schema::Find(node.op_type, node.domain, *opset));
  ONNXIFI_RETURN_IF_ERROR(schema.CheckNode(proto));
  node.since_version = schema.since_version();
  ONNXIFI_ASSIGN_OR_RETURN(node.inputs, ResolveInputs(proto, scope));
  for (const AttributeProto& attribute : proto.attribute()) {
    ONNXIFI_RETURN_IF_ERROR(ImportAttribute(attribute, &schema, scope, node.attributes));
  }
  ONNXIFI_RETURN_IF_ERROR(schema.CheckRequired(node.attributes));
  node.outputs.reserve(static_cast<size_t>(proto.output_size()));
  for (const std::string& output : proto.output()) {
    if (output.empty()) {
      node.outputs.push_back(kNoValue);
      continue;
    }
    if (scope.outer == nullptr && scope.call == nullptr && FindWeight(output) != nullptr) {
      return {Code::kInvalidName,
              "Weight " + Quote(output) + " names a value that the model computes."};
    }
    ONNXIFI_ASSIGN_OR_RETURN(const ValueId id,
                             Define(output, {.name = scope.prefix + output}, scope));
    node.outputs.push_back(id);
  }
  scope.graph->nodes.push_back(std::move(node));
  return base::Ok();
}

Result<std::vector<ValueId>> GraphImporter::ResolveInputs(const onnx::NodeProto& proto,
                                                          Scope& scope) {
  std::vector<ValueId> inputs;
  inputs.reserve(static_cast<size_t>(proto.input_size()));
  for (const std::string& input : proto.input()) {
    if (input.empty()) {
      inputs.push_back(kNoValue);
      continue;
    }
    const std::optional<ValueId> id = Resolve(input, scope);
    if (!id) {
      return Invalid("Input " + Quote(input) + " is defined by nothing before the node.");
    }
    inputs.push_back(*id);
  }
  return inputs;
}

Status GraphImporter::ImportAttribute(const AttributeProto& proto, const Schema* schema,
                                      Scope& scope, Attributes& attributes) {
  const std::string& name = proto.name();
  if (name.empty()) return Invalid("An attribute has no name.");
  if (schema != nullptr && name.starts_with("__")) return base::Ok();
  const AttributeProto::AttributeType expected =
      schema != nullptr ? schema->AttributeType(name) : AttributeProto::UNDEFINED;
  graph::Attribute value;
  if (!proto.ref_attr_name().empty()) {
    if (scope.call == nullptr) {
      return Invalid("Attribute " + Quote(name) + " refers to attribute " +
                     Quote(proto.ref_attr_name()) + " of a function, but is in none.");
    }
    const auto found = scope.call->attributes.find(proto.ref_attr_name());
    if (found == scope.call->attributes.end()) return base::Ok();
    const AttributeProto::AttributeType actual = TypeOfAttribute(found->second);
    const bool is_dense_form =
        expected == AttributeProto::SPARSE_TENSOR && actual == AttributeProto::TENSOR;
    if (expected != AttributeProto::UNDEFINED && actual != expected && !is_dense_form) {
      return Invalid("Attribute " + Quote(name) + " refers to attribute " +
                     Quote(proto.ref_attr_name()) + ", which has another type.");
    }
    if (scope.call->graph != scope.graph && HasCaptures(found->second)) {
      return {Code::kUnsupportedOperator,
              "Attribute " + Quote(name) +
                  " takes a graph with captured values into a subgraph of a function."};
    }
    ONNXIFI_RETURN_IF_ERROR(Spend(0, CopiedBytes(found->second), scope));
    value = found->second;
  } else {
    AttributeProto::AttributeType type = TypeOf(proto);
    if (type == AttributeProto::UNDEFINED) type = expected;
    Result<graph::Attribute> read = ReadAttribute(proto, type, scope);
    if (!read.ok()) return std::move(read).status().Context("at attribute " + Quote(name));
    value = *std::move(read);
    ONNXIFI_RETURN_IF_ERROR(Spend(0, CopiedBytes(value) + TensorBytes(value), scope));
  }
  if (!attributes.emplace(name, std::move(value)).second) {
    return Invalid("Attribute " + Quote(name) + " is given twice.");
  }
  return base::Ok();
}

Result<graph::Attribute> GraphImporter::ReadAttribute(const AttributeProto& proto,
                                                      AttributeProto::AttributeType type,
                                                      Scope& scope) {
  switch (type) {
    case AttributeProto::FLOAT:
      return graph::Attribute(proto.f());
    case AttributeProto::INT:
      return graph::Attribute(static_cast<int64_t>(proto.i()));
    case AttributeProto::STRING:
      return graph::Attribute(proto.s());
    case AttributeProto::FLOATS:
      return graph::Attribute(std::vector<float>(proto.floats().begin(), proto.floats().end()));
    case AttributeProto::INTS:
      return graph::Attribute(std::vector<int64_t>(proto.ints().begin(), proto.ints().end()));
    case AttributeProto::STRINGS:
      return graph::Attribute(
          std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
    case AttributeProto::TENSOR: {
      ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor value, tensors_.Read(proto.t()));
      return graph::Attribute(std::move(value));
    }
    case AttributeProto::SPARSE_TENSOR: {
      ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor value, tensors_.Read(proto.sparse_tensor()));
      return graph::Attribute(std::move(value));
    }
    case AttributeProto::TENSORS: {
      std::vector<tensor::Tensor> values;
      for (const onnx::TensorProto& one : proto.tensors()) {
        ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor value, tensors_.Read(one));
        values.push_back(std::move(value));
      }
      return graph::Attribute(std::move(values));
    }
    case AttributeProto::SPARSE_TENSORS: {
      std::vector<tensor::Tensor> values;
      for (const onnx::SparseTensorProto& one : proto.sparse_tensors()) {
        ONNXIFI_ASSIGN_OR_RETURN(tensor::Tensor value, tensors_.Read(one));
        values.push_back(std::move(value));
      }
      return graph::Attribute(std::move(values));
    }
    case AttributeProto::GRAPH: {
      ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const graph::Graph> value,
                               ImportSubgraph(proto.g(), scope));
      return graph::Attribute(std::move(value));
    }
    case AttributeProto::GRAPHS: {
      std::vector<std::shared_ptr<const graph::Graph>> values;
      for (const onnx::GraphProto& one : proto.graphs()) {
        ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const graph::Graph> value,
                                 ImportSubgraph(one, scope));
        values.push_back(std::move(value));
      }
      return graph::Attribute(std::move(values));
    }
    case AttributeProto::TYPE_PROTO: {
      ONNXIFI_ASSIGN_OR_RETURN(Type value, TypeFromProto(proto.tp()));
      return graph::Attribute(std::move(value));
    }
    default:
      return Status(Code::kUnsupportedAttribute,
                    "Attribute " + Quote(proto.name()) + " has type number " +
                        std::to_string(static_cast<int>(type)) + ", which is not supported.");
  }
}

Result<std::shared_ptr<const graph::Graph>> GraphImporter::ImportSubgraph(
    const onnx::GraphProto& proto, Scope& scope) {
  if (scope.depth + 1 > kDeepestScope) {
    return Status(Code::kUnsupportedOperator, "Subgraphs and functions nest " +
                                                  std::to_string(scope.depth + 1) +
                                                  " deep, beyond the deepest supported (" +
                                                  std::to_string(kDeepestScope) + ").");
  }
  ONNXIFI_RETURN_IF_ERROR(Spend(
      proto.input_size() + proto.output_size() + proto.value_info_size() + proto.initializer_size(),
      /*size_bytes=*/0, scope));
  auto subgraph = std::make_shared<graph::Graph>();
  Scope inner{.graph = subgraph.get(),
              .outer = &scope,
              .opsets = scope.opsets,
              .call = scope.call,
              .prefix = scope.prefix,
              .depth = scope.depth + 1};
  Status status = ImportGraph(proto, inner);
  if (!status.ok()) return std::move(status).Context("in subgraph " + Quote(proto.name()));
  return std::shared_ptr<const graph::Graph>(std::move(subgraph));
}

Status GraphImporter::ImportCall(const onnx::NodeProto& proto, const onnx::FunctionProto& function,
                                 const graph::Node& node, Scope& scope) {
  for (const Call* caller = scope.call; caller != nullptr; caller = caller->caller) {
    if (caller->function == &function) {
      return Invalid("Function " + Quote(function.name()) + " calls itself.");
    }
  }
  if (scope.depth + 1 > kDeepestScope) {
    return {Code::kUnsupportedOperator,
            "Subgraphs and functions nest " + std::to_string(scope.depth + 1) +
                " deep, beyond the deepest supported (" + std::to_string(kDeepestScope) + ")."};
  }
  const auto check_count = [&](int given, int most, const char* what) -> Status {
    if (given <= most) return base::Ok();
    return Invalid("The node has " + std::to_string(given) + " " + what + ", but function " +
                   Quote(function.name()) + " has " + std::to_string(most) + ".");
  };
  ONNXIFI_RETURN_IF_ERROR(check_count(proto.input_size(), function.input_size(), "inputs"));
  ONNXIFI_RETURN_IF_ERROR(check_count(proto.output_size(), function.output_size(), "outputs"));

  Call call{
      .function = &function, .caller = scope.call, .graph = scope.graph, .node_index = node.index};
  for (const AttributeProto& attribute : proto.attribute()) {
    ONNXIFI_RETURN_IF_ERROR(ImportAttribute(attribute, /*schema=*/nullptr, scope, call.attributes));
  }
  Result<OpsetTable> opsets = OpsetTable::Make(function.opset_import(), model_.ir_version());
  if (!opsets.ok()) {
    return std::move(opsets).status().Context("in function " + Quote(function.name()));
  }
  Scope body{.graph = scope.graph,
             .outer = nullptr,
             .opsets = &*opsets,
             .call = &call,
             .prefix = node.name + "/",
             .depth = scope.depth + 1};
  ONNXIFI_RETURN_IF_ERROR(
      Spend(function.input_size() + function.output_size() + function.attribute_proto_size(),
            /*size_bytes=*/0, body));
  for (const AttributeProto& fallback : function.attribute_proto()) {
    if (call.attributes.contains(fallback.name())) continue;
    ONNXIFI_RETURN_IF_ERROR(ImportAttribute(fallback, /*schema=*/nullptr, body, call.attributes));
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<ValueId> inputs, ResolveInputs(proto, scope));
  for (int index = 0; index < function.input_size(); ++index) {
    const auto position = static_cast<size_t>(index);
    const ValueId id = position < inputs.size() ? inputs[position] : kNoValue;
    if (!body.names.emplace(function.input(index), Entry{.id = id, .is_defined = true}).second) {
      return Invalid("Function " + Quote(function.name()) + " has input " +
                     Quote(function.input(index)) + " twice.");
    }
    body.names[function.input(index)].is_input = true;
  }
  for (int position = 0; position < function.node_size(); ++position) {
    Status status = ImportNode(function.node(position), position, body);
    if (!status.ok()) {
      return std::move(status).Context("in function " + Quote(function.name()));
    }
  }
  for (int index = 0; index < proto.output_size(); ++index) {
    if (proto.output(index).empty()) continue;
    ONNXIFI_RETURN_IF_ERROR(
        BindCallOutput(function.output(index), proto.output(index), node, body, scope));
  }
  return base::Ok();
}

// The caller's name becomes that of the value which the body computes. A value that has a name
// outside already - an input handed through, or an output used twice - goes through an Identity.
Status GraphImporter::BindCallOutput(const std::string& inner_name, const std::string& outer_name,
                                     const graph::Node& node, Scope& body, Scope& scope) {
  const auto found = body.names.find(inner_name);
  if (found == body.names.end() || !found->second.is_defined || found->second.id == kNoValue) {
    return Invalid("Output " + Quote(inner_name) + " is computed by no node of the function.");
  }
  const ValueId inner_id = found->second.id;
  if (!found->second.is_input) {
    Entry& entry = scope.names[outer_name];
    if (entry.is_defined) return Invalid("Value " + Quote(outer_name) + " is defined twice.");
    Value& value = scope.graph->values[static_cast<size_t>(inner_id)];
    value.name = scope.prefix + outer_name;
    if (entry.id != kNoValue && value.type.kind == Type::Kind::kUnknown) {
      value.type = scope.graph->values[static_cast<size_t>(entry.id)].type;
    }
    entry.id = inner_id;
    entry.is_defined = true;
    found->second.is_input = true;  // a second output of this name needs a value of its own
    return base::Ok();
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Schema identity, Schema::Find("Identity", "", *NewestOpset("")));
  graph::Node copy{.name = node.name,
                   .op_type = "Identity",
                   .since_version = identity.since_version(),
                   .index = node.index,
                   .inputs = {inner_id}};
  ONNXIFI_ASSIGN_OR_RETURN(const ValueId id,
                           Define(outer_name, {.name = scope.prefix + outer_name}, scope));
  copy.outputs.push_back(id);
  scope.graph->nodes.push_back(std::move(copy));
  return base::Ok();
}

}  // namespace onnxifi::model
