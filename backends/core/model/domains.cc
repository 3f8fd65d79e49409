// SPDX-License-Identifier: Apache-2.0
//
// Domains: an index of what is declared, read when it is first asked for, and the adapter from the
// library's inference to definitions.

#include "backends/core/model/domains.h"

#include <onnx/defs/data_type_utils.h>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>

#include "backends/core/model/declaration.h"
#include "backends/core/model/definition.h"
#include "backends/core/model/import_options.h"
#include "backends/core/model/schema_table.h"
#include "backends/core/model/versions.h"

namespace onnxifi::model {
namespace {

using base::Code;
using base::Result;
using base::Status;

// A node as the library's inference shows it.
class InferredNode final : public DefinedNode {
 public:
  explicit InferredNode(onnx::InferenceContext& context) : context_(context) {}

  const onnx::AttributeProto* FindAttribute(const std::string& name) const override {
    return context_.getAttribute(name);
  }
  int input_count() const override { return static_cast<int>(context_.getNumInputs()); }
  bool Has(int input) const override {
    return input < input_count() && context_.hasInput(static_cast<size_t>(input));
  }
  const onnx::TypeProto* FindType(int input) const override {
    return Has(input) ? context_.getInputType(static_cast<size_t>(input)) : nullptr;
  }
  int output_count() const override { return static_cast<int>(context_.getNumOutputs()); }
  bool Wants(int output) const override {
    return output < output_count() && context_.hasOutput(static_cast<size_t>(output));
  }

 private:
  onnx::InferenceContext& context_;
};

// The schemas as the library's inference asks for them.
class Registry final : public onnx::ISchemaRegistry {
 public:
  explicit Registry(const Domains& domains) : domains_(domains) {}

  // NOLINTNEXTLINE(google-default-arguments): as the library declares it.
  const onnx::OpSchema* GetSchema(const std::string& op_type, int opset,
                                  const std::string& domain = "") const override {
    return domains_.FindSchema(op_type, domain, opset);
  }

 private:
  const Domains& domains_;
};

// What the formal parameter `index` stands for, also past the end of a list whose last is variadic.
const onnx::OpSchema::FormalParameter& FormalOf(const onnx::OpSchema& schema, int index) {
  const auto& formals = schema.inputs();
  return formals[std::min(static_cast<size_t>(index), formals.size() - 1)];
}

// Inputs whose types are one variable have one type.
Status CheckVariables(const onnx::OpSchema& schema, const DefinedNode& node) {
  std::map<std::string_view, std::pair<int, std::string>> bound;
  for (int input = 0; input < node.input_count(); ++input) {
    const onnx::TypeProto* type = node.FindType(input);
    if (type == nullptr || type->value_case() == onnx::TypeProto::VALUE_NOT_SET) continue;
    const auto& formal = FormalOf(schema, input);
    if (formal.GetOption() == onnx::OpSchema::Variadic) continue;  // each has its own
    const std::string& given = *onnx::Utils::DataTypeUtils::ToType(*type);
    const auto [known, is_new] = bound.try_emplace(formal.GetTypeStr(), input, given);
    if (is_new || known->second.second == given) continue;
    return {Code::kMismatchingDatatype, schema.Name() + ": Inputs " +
                                            std::to_string(known->second.first) + " and " +
                                            std::to_string(input) + " are " + known->second.second +
                                            " and " + given + "; they must be of one type."};
  }
  return base::Ok();
}

}  // namespace

Domains::Domains(std::span<const Domain* const> domains)
    : domains_(domains.begin(), domains.end()) {
  for (const Domain* domain : domains_) {
    for (const DomainOperator& operation : domain->operators) {
      entries_[{domain->name, DeclaredName(operation.declaration)}].try_emplace(
          operation.since_version, Entry{&operation, nullptr});
    }
  }
}

Domains::~Domains() = default;

const onnx::OpSchema* Domains::FindSchema(std::string_view op_type, std::string_view domain,
                                          int opset) const {
  if (const onnx::OpSchema* schema = model::FindSchema(op_type, domain, opset)) return schema;
  const auto found = entries_.find({domain, op_type});
  if (found == entries_.end()) return nullptr;
  const auto newer = found->second.upper_bound(opset);
  if (newer == found->second.begin()) return nullptr;
  return Make(domain, std::prev(newer)->second);
}

bool Domains::HasSchema(std::string_view op_type, std::string_view domain) const {
  return model::HasSchema(op_type, domain) || entries_.contains({domain, op_type});
}

std::string_view Domains::ReasonToRefuse(std::string_view op_type, std::string_view domain) const {
  for (const Domain* known : domains_) {
    if (known->name != domain) continue;
    const auto found = std::ranges::find(known->refused, op_type, &RefusedOperator::name);
    if (found != known->refused.end()) return found->reason;
  }
  return {};
}

std::optional<int64_t> Domains::NewestOpset(std::string_view domain) const {
  if (const std::optional<int64_t> newest = model::NewestOpset(domain)) return newest;
  std::optional<int64_t> newest;
  for (const Domain* known : domains_) {
    if (known->name == domain)
      newest = std::max<int64_t>(newest.value_or(1), known->newest_version);
  }
  return newest;
}

std::string_view Domains::NoteOf(std::string_view domain) const {
  for (const Domain* known : domains_) {
    if (known->name == domain && !known->note.empty()) return known->note;
  }
  return {};
}

std::string Domains::SupportedOpsets() const {
  std::string text = model::SupportedOpsets();
  std::map<std::string_view, int> versions;
  for (const Domain* domain : domains_) {
    if (model::NewestOpset(domain->name)) continue;
    versions[domain->name] = std::max(versions[domain->name], domain->newest_version);
  }
  for (const auto& [name, version] : versions) {
    text += " " + std::string(name) + ":" + std::to_string(version);
  }
  return text;
}

const onnx::OpSchema* Domains::Make(std::string_view domain, Entry& entry) const {
  const std::lock_guard lock(mutex_);
  if (entry.made != nullptr) return entry.made.get();
  auto schema = std::make_unique<onnx::OpSchema>();
  schema->SinceVersion(entry.operation->since_version);
  if (!ReadDeclaration(entry.operation->declaration, domain, *schema).ok()) return nullptr;
  if (entry.operation->infer != nullptr) {
    schema->TypeAndShapeInferenceFunction(entry.operation->infer);
  } else if (entry.operation->define != nullptr) {
    schema->TypeAndShapeInferenceFunction(
        [this, made = schema.get()](onnx::InferenceContext& context) { Infer(*made, context); });
  }
  schema->Finalize();
  entry.made = std::move(schema);
  return entry.made.get();
}

Status Domains::CheckDeclarations() const {
  for (const Domain* domain : domains_) {
    for (const DomainOperator& operation : domain->operators) {
      onnx::OpSchema schema;
      Status read = ReadDeclaration(operation.declaration, domain->name, schema);
      if (!read.ok()) {
        return std::move(read).Context("in operator " +
                                       std::string(DeclaredName(operation.declaration)));
      }
    }
  }
  return base::Ok();
}

const DomainOperator* Domains::FindOperator(const onnx::OpSchema& schema) const {
  const auto found = entries_.find({schema.domain(), schema.Name()});
  if (found == entries_.end()) return nullptr;
  const auto version = found->second.find(schema.SinceVersion());
  return version == found->second.end() ? nullptr : version->second.operation;
}

bool Domains::HasDefinition(const onnx::OpSchema& schema) const {
  const DomainOperator* operation = FindOperator(schema);
  return operation != nullptr && operation->define != nullptr;
}

Result<onnx::FunctionProto> Domains::Define(const onnx::OpSchema& schema,
                                            const DefinedNode& node) const {
  ONNXIFI_RETURN_IF_ERROR(CheckVariables(schema, node));
  onnx::FunctionProto body;
  Definition definition(node, schema, body);
  ONNXIFI_RETURN_IF_ERROR(FindOperator(schema)->define(definition));
  for (int output = 0; output < node.output_count(); ++output) {
    if (definition.HasReturned(output)) continue;
    if (node.Wants(output)) {
      return definition.Unsupported("Output " + std::to_string(output) + " is not supported.");
    }
    // A function has every output of its call, those too that the node omits.
    definition.Return(output, definition.Int0D(0));
  }
  return body;
}

Status Domains::CheckConstant(const onnx::OpSchema& schema, int input,
                              const tensor::Tensor& constant) const {
  const DomainOperator* operation = FindOperator(schema);
  if (operation == nullptr || operation->check_constant == nullptr) return base::Ok();
  return operation->check_constant(input, constant);
}

void Domains::Infer(const onnx::OpSchema& schema, onnx::InferenceContext& context) const {
  const Result<onnx::FunctionProto> body = Define(schema, InferredNode(context));
  if (!body.ok()) return;  // what devices refuse, they tell
  onnx::shape_inference::DataValueMap numbers;
  const Registry registry(*this);
  onnx::shape_inference::InferShapeForFunctionNode(
      *body, &registry, context,
      onnx::ShapeInferenceOptions(/*check_type_val=*/false, /*strict_mode_val=*/0,
                                  /*data_prop_val=*/true),
      {}, nullptr, &numbers);
}

const Domains& NoDomains() {
  static const Domains none({});
  return none;
}

const Domains& DomainsOf(const ImportOptions& options) {
  return options.domains != nullptr ? *options.domains : NoDomains();
}

}  // namespace onnxifi::model
