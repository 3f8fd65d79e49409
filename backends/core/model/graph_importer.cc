// SPDX-License-Identifier: Apache-2.0
//
// GraphImporter: one pass over each graph in the order initializers, inputs, declared types, nodes,
// outputs; a node's subgraphs, and the body of a function that it calls, in its place.

#include "backends/core/model/graph_importer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "backends/core/model/node_order.h"
#include "backends/core/model/refusal.h"
#include "backends/core/model/schema.h"
#include "backends/core/model/type_proto.h"
#include "backends/core/model/versions.h"

namespace onnxifi::model {

using base::Code;
using base::Result;
using base::Status;
using graph::kNoValue;
using graph::Type;
using graph::Value;
using graph::ValueId;
using graph::ValueIds;
using onnx::AttributeProto;

namespace {

// ONNX leaves names that begin with two underscores to implementations.
bool IsOwn(std::string_view attribute) { return attribute.starts_with("__"); }

}  // namespace

Result<graph::Graph> GraphImporter::Run(const OpsetTable& opsets) {
  ONNXIFI_RETURN_IF_ERROR(functions_.Add(model_));
  ONNXIFI_RETURN_IF_ERROR(weights_.Add(options_.weights));
  graph::Graph result;
  // Support questions come with inputs that are declared nowhere.
  Scope scope{.graph = &result,
              .outer = nullptr,
              .opsets = &opsets,
              .call = nullptr,
              .depth = 0,
              .takes_undeclared = !options_.lift_values};
  ONNXIFI_RETURN_IF_ERROR(ImportGraph(model_.graph(), scope));
  ONNXIFI_RETURN_IF_ERROR(CheckWeightsRead(scope));
  result.notes = std::move(notes_);
  return result;
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
  if (scope.is_main()) ONNXIFI_RETURN_IF_ERROR(DefineNodeWeights(scope));
  ONNXIFI_RETURN_IF_ERROR(ImportNodes(proto.node(), scope));
  return ImportOutputs(proto, scope);
}

Status GraphImporter::ImportNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                  Scope& scope) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<int> order, OrderNodes(nodes));
  for (int k = 0; k < nodes.size(); ++k) {
    const int position = order.empty() ? k : order[static_cast<size_t>(k)];
    ONNXIFI_RETURN_IF_ERROR(ImportNode(nodes[position], position, scope));
  }
  return base::Ok();
}

Status GraphImporter::ImportInitializers(const onnx::GraphProto& proto, Scope& scope) {
  const auto define = [&](const std::string& name, const auto& initializer) -> Status {
    if (name.empty()) return Invalid("An initializer has no name.");
    const Weight* weight = scope.is_main() ? weights_.Find(name) : nullptr;
    Result<Value> value = weight != nullptr
                              ? ReadWeight(*weight)
                              : ReadInitializer(initializer, options_.lift_values, tensors_);
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
      ONNXIFI_RETURN_IF_ERROR(budget_.Spend(1, /*size_bytes=*/0, scope));
      ONNXIFI_RETURN_IF_ERROR(
          budget_.SpendRepeated(initializer, value->constant->size_bytes(), scope));
    }
    Result<ValueId> id = scope.Define(name, *std::move(value));
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

Status GraphImporter::ImportInputs(const onnx::GraphProto& proto, Scope& scope) {
  const bool is_main = scope.is_main();
  for (const onnx::ValueInfoProto& input : proto.input()) {
    if (input.name().empty()) return Invalid("A graph input has no name.");
    const auto context = [&] { return "at graph input " + Quote(input.name()); };
    Result<Type> type = TypeFromProto(input.type());
    if (!type.ok()) return std::move(type).status().Context(context());
    Scope::Entry& entry = scope.names[input.name()];
    if (is_main && entry.is_input) {
      // Clients list what a node reads twice as two inputs.
      ONNXIFI_RETURN_IF_ERROR(CheckSameInput(proto, input));
      continue;
    }
    if (entry.is_input || (entry.is_defined && !is_main)) {
      return Invalid("Graph input " + Quote(input.name()) + " is defined twice.");
    }
    entry.is_input = true;
    const Weight* weight = is_main ? weights_.Find(input.name()) : nullptr;
    if (weight != nullptr && !entry.is_defined) {
      Result<Value> value = ReadWeight(*weight);
      if (!value.ok()) return std::move(value).status().Context(context());
      Result<ValueId> id = scope.Define(input.name(), *std::move(value));
      if (!id.ok()) return std::move(id).status();
      entry.is_read = true;
    }
    if (entry.is_defined) {
      const Value& value = scope.graph->values[static_cast<size_t>(entry.id)];
      Status fits = CheckDeclaredShape(value, *type, /*is_from_descriptor=*/weight != nullptr);
      if (!fits.ok()) return std::move(fits).Context(context());
      continue;
    }
    ONNXIFI_ASSIGN_OR_RETURN(
        const ValueId id,
        scope.Define(input.name(), {.name = input.name(), .type = *std::move(type)}));
    scope.graph->inputs.push_back(id);
  }
  return base::Ok();
}

Status GraphImporter::CheckSameInput(const onnx::GraphProto& proto,
                                     const onnx::ValueInfoProto& input) {
  const auto first =
      std::find_if(proto.input().begin(), proto.input().end(),
                   [&](const onnx::ValueInfoProto& other) { return other.name() == input.name(); });
  if (first->type().SerializeAsString() == input.type().SerializeAsString()) return base::Ok();
  return Invalid("Graph input " + Quote(input.name()) + " is declared twice, with two types.");
}

Status GraphImporter::DeclareTypes(
    const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& declared, Scope& scope) {
  for (const onnx::ValueInfoProto& info : declared) {
    if (info.name().empty()) continue;
    Result<Type> type = TypeFromProto(info.type());
    if (!type.ok()) {
      return std::move(type).status().Context("at the declaration of " + Quote(info.name()));
    }
    scope.Declare(info.name(), *std::move(type));
  }
  return base::Ok();
}

Status GraphImporter::DefineNodeWeights(Scope& scope) {
  for (const Weight& weight : options_.weights) {
    const Scope::Entry* known = scope.names.Find(weight.name);
    if (known != nullptr && known->is_defined) continue;
    ONNXIFI_ASSIGN_OR_RETURN(Value value, ReadWeight(weight));
    Result<ValueId> id = scope.Define(weight.name, std::move(value));
    if (!id.ok()) return std::move(id).status();
  }
  return base::Ok();
}

Status GraphImporter::CheckWeightsRead(const Scope& scope) const {
  for (const Weight& weight : options_.weights) {
    if (scope.names.Find(weight.name)->is_read) continue;
    return {Code::kInvalidName, "Weight " + Quote(weight.name) +
                                    " is neither a graph input, nor an initializer, nor the input "
                                    "of a node."};
  }
  return base::Ok();
}

Status GraphImporter::ImportOutputs(const onnx::GraphProto& proto, Scope& scope) {
  graph::Graph& graph = *scope.graph;
  const bool is_main = scope.is_main();
  for (const onnx::ValueInfoProto& output : proto.output()) {
    if (output.name().empty()) return Invalid("A graph output has no name.");
    Scope::Entry* found = scope.names.Find(output.name());
    // In the model's own graph an implicit input would hide that nothing computes the output.
    const bool is_defined = found != nullptr && found->is_defined;
    std::optional<ValueId> id;
    if (is_defined || !is_main) id = scope.Resolve(output.name());
    if (!id || *id == kNoValue) {
      return Invalid("Graph output " + Quote(output.name()) + " is computed by no node.");
    }
    // Outputs of the model are bound by name, so that one listed twice is one; those of a body by
    // position.
    if (is_main && std::exchange(found->is_output, true)) continue;
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
    const int64_t text_bytes = static_cast<int64_t>(scope.prefix.size()) + TextBytes(proto);
    ONNXIFI_RETURN_IF_ERROR(budget_.Spend(count, count * text_bytes, scope));
  }
  graph::Node node;
  node.name = scope.prefix.empty() ? proto.name() : scope.prefix + proto.name();
  node.op_type = proto.op_type();
  node.domain = CanonicalDomain(proto.domain());
  node.index = scope.call != nullptr ? scope.call->node_index : position;
  const auto describe = [&] { return "while importing " + graph::Describe(node); };
  if (proto.op_type().empty()) return Invalid("A node names no operator.").Context(describe());
  if (const onnx::FunctionProto* function = functions_.Find(proto, node.domain)) {
    Status status = ImportCall(proto, *function, node, scope);
    return status.ok() ? status : std::move(status).Context(describe());
  }
  // Moves the node into the graph, but only when nothing is left that could fail.
  Status status = ImportOperator(proto, node, scope);
  return status.ok() ? status : std::move(status).Context(describe());
}

// ONNX asks for an import of each domain. Quantizers put nodes of com.microsoft into models and add
// none; ONNX Runtime takes the newest version of a domain that it knows, but not in functions,
// whose imports are their interface. ONNX's own operators differ too much between versions to
// guess.
std::optional<int64_t> GraphImporter::VersionOf(const std::string& domain,
                                                const Scope& scope) const {
  const std::optional<int64_t> imported = scope.opsets->Find(domain);
  if (imported || domain.empty() || scope.call != nullptr) return imported;
  return DomainsOf(options_).NewestOpset(domain);
}

Status GraphImporter::ImportOperator(const onnx::NodeProto& proto, graph::Node& node,
                                     Scope& scope) {
  const std::optional<int64_t> opset = VersionOf(node.domain, scope);
  if (!opset) {
    return Invalid("Operator set " + Quote(SpelledDomain(node.domain)) +
                   ", which the node needs, is not imported.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Schema schema,
                           Schema::Find(node.op_type, node.domain, *opset, DomainsOf(options_)));
  ONNXIFI_RETURN_IF_ERROR(schema.CheckNode(proto));
  const std::string_view note = DomainsOf(options_).NoteOf(node.domain);
  if (!note.empty() && std::ranges::find(notes_, note) == notes_.end()) notes_.emplace_back(note);
  if (const onnx::TensorProto* left_out = FindLeftOutConstant(proto, node)) {
    ONNXIFI_ASSIGN_OR_RETURN(Value value,
                             ReadInitializer(*left_out, /*lifts_values=*/false, tensors_));
    value.name = scope.prefix + proto.output(0);
    const Result<ValueId> id = scope.Define(proto.output(0), std::move(value));
    return id.ok() ? base::Ok() : id.status();
  }
  node.since_version = schema.since_version();
  ONNXIFI_ASSIGN_OR_RETURN(node.inputs, scope.ResolveInputs(proto));
  for (size_t input = 0; input < node.inputs.size(); ++input) {
    if (node.inputs[input] == kNoValue) continue;
    const Value& value = scope.graph->values[static_cast<size_t>(node.inputs[input])];
    if (!value.constant || value.is_weight) continue;
    ONNXIFI_RETURN_IF_ERROR(schema.CheckConstant(static_cast<int>(input), *value.constant));
  }
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
    if (scope.is_main() && weights_.Find(output) != nullptr) {
      return {Code::kInvalidName,
              "Weight " + Quote(output) + " names a value that the model computes."};
    }
    ONNXIFI_ASSIGN_OR_RETURN(const ValueId id,
                             scope.Define(output, {.name = scope.prefix + output}));
    node.outputs.push_back(id);
  }
  scope.graph->nodes.push_back(std::move(node));
  return base::Ok();
}

// The tensor of a Constant that lies in an external file, in a support question, which has no
// folder: a weight without values, as such initializers are.
const onnx::TensorProto* GraphImporter::FindLeftOutConstant(const onnx::NodeProto& proto,
                                                            const graph::Node& node) const {
  const bool is_constant = node.op_type == "Constant" && node.domain.empty();
  if (options_.lift_values || !is_constant || proto.attribute_size() != 1) return nullptr;
  const AttributeProto& value = proto.attribute(0);
  const bool is_external = value.name() == "value" && value.ref_attr_name().empty() &&
                           value.t().data_location() == onnx::TensorProto::EXTERNAL;
  return is_external ? &value.t() : nullptr;
}

Status GraphImporter::ImportAttribute(const AttributeProto& proto, const Schema* schema,
                                      Scope& scope, Attributes& attributes) {
  const std::string& name = proto.name();
  if (name.empty()) return Invalid("An attribute has no name.");
  if (schema != nullptr && !schema->Knows(name) && !(options_.is_definition && IsOwn(name))) {
    NoteIgnored(name, *schema);
    return base::Ok();
  }
  const AttributeProto::AttributeType expected =
      schema != nullptr ? schema->AttributeType(name) : AttributeProto::UNDEFINED;
  graph::Attribute value;
  if (!proto.ref_attr_name().empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(const graph::Attribute* given,
                             FindCallAttribute(proto, expected, scope));
    if (given == nullptr) return base::Ok();
    ONNXIFI_RETURN_IF_ERROR(budget_.Spend(0, CopiedBytes(*given), scope));
    value = *given;
  } else {
    AttributeProto::AttributeType type = TypeOf(proto);
    if (type == AttributeProto::UNDEFINED) type = expected;
    Result<graph::Attribute> read = ReadAttribute(
        proto, type, tensors_,
        [&](const onnx::GraphProto& subgraph) { return ImportSubgraph(subgraph, scope); });
    if (!read.ok()) return std::move(read).status().Context("at attribute " + Quote(name));
    value = *std::move(read);
    ONNXIFI_RETURN_IF_ERROR(
        budget_.SpendRepeated(proto, CopiedBytes(value) + TensorBytes(value), scope));
  }
  if (!attributes.emplace(name, std::move(value)).second) {
    return Invalid("Attribute " + Quote(name) + " is given twice.");
  }
  return base::Ok();
}

void GraphImporter::NoteIgnored(const std::string& attribute, const Schema& schema) {
  if (IsOwn(attribute) || !ignored_.insert(attribute).second) return;
  notes_.push_back("Attribute " + Quote(attribute) + " is ignored: no version of operator " +
                   Quote(schema.op_type()) + ", the first that has it, knows it.");
}

Result<std::shared_ptr<const graph::Graph>> GraphImporter::ImportSubgraph(
    const onnx::GraphProto& proto, Scope& scope) {
  ONNXIFI_RETURN_IF_ERROR(scope.CheckDepth());
  ONNXIFI_RETURN_IF_ERROR(budget_.Spend(
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
  ONNXIFI_RETURN_IF_ERROR(CheckCall(proto, function, scope));
  Call call{
      .function = &function, .caller = scope.call, .graph = scope.graph, .node_index = node.index};
  for (const AttributeProto& attribute : proto.attribute()) {
    ONNXIFI_RETURN_IF_ERROR(ImportAttribute(attribute, /*schema=*/nullptr, scope, call.attributes));
  }
  Result<OpsetTable> opsets =
      OpsetTable::Make(function.opset_import(), model_.ir_version(), DomainsOf(options_));
  if (!opsets.ok()) {
    return std::move(opsets).status().Context("in function " + Quote(function.name()));
  }
  Scope body{.graph = scope.graph,
             .outer = nullptr,
             .opsets = &*opsets,
             .call = &call,
             .prefix = node.name + "/",
             .depth = scope.depth + 1};
  ONNXIFI_RETURN_IF_ERROR(budget_.Spend(
      function.input_size() + function.output_size() + function.attribute_proto_size(),
      /*size_bytes=*/0, body));
  for (const AttributeProto& fallback : function.attribute_proto()) {
    if (call.attributes.contains(fallback.name())) continue;
    ONNXIFI_RETURN_IF_ERROR(ImportAttribute(fallback, /*schema=*/nullptr, body, call.attributes));
  }
  ONNXIFI_ASSIGN_OR_RETURN(const ValueIds inputs, scope.ResolveInputs(proto));
  ONNXIFI_RETURN_IF_ERROR(BindCallInputs(function, inputs, body));
  Status status = ImportNodes(function.node(), body);
  if (!status.ok()) return std::move(status).Context("in function " + Quote(function.name()));
  for (int index = 0; index < proto.output_size(); ++index) {
    if (proto.output(index).empty()) continue;
    ONNXIFI_RETURN_IF_ERROR(
        BindCallOutput(function.output(index), proto.output(index), node, body, scope));
  }
  return base::Ok();
}

}  // namespace onnxifi::model
