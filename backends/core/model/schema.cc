// SPDX-License-Identifier: Apache-2.0
//
// Schema: look-ups in the table of schemas, and the checks of its OpSchema::Verify with sentences
// instead of exceptions.

#include "backends/core/model/schema.h"

#include <onnx/defs/data_type_utils.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "backends/core/model/attribute_proto.h"
#include "backends/core/model/definition.h"
#include "backends/core/model/refusal.h"
#include "backends/core/model/versions.h"

namespace onnxifi::model {
namespace {

using base::Code;
using base::Result;
using base::Status;
using onnx::AttributeProto;
using onnx::OpSchema;

// What the ONNX library throws, as a status.
Status FromException(const std::exception& error, const std::string& op_type) {
  return {Code::kUnsupportedOperator,
          "The ONNX library cannot expand operator '" + op_type + "': " + error.what() + "."};
}

std::string Spell(const std::string& op_type, const std::string& domain) {
  return "Operator '" + op_type + "' of domain '" + std::string(SpelledDomain(domain)) + "'";
}

bool IsList(AttributeProto::AttributeType type) {
  switch (type) {
    case AttributeProto::FLOATS:
    case AttributeProto::INTS:
    case AttributeProto::STRINGS:
    case AttributeProto::TENSORS:
    case AttributeProto::GRAPHS:
    case AttributeProto::SPARSE_TENSORS:
    case AttributeProto::TYPE_PROTOS:
      return true;
    default:
      return false;
  }
}

std::string_view NameOf(AttributeProto::AttributeType type) {
  switch (type) {
    case AttributeProto::FLOAT:
      return "a float";
    case AttributeProto::INT:
      return "an integer";
    case AttributeProto::STRING:
      return "a string";
    case AttributeProto::TENSOR:
      return "a tensor";
    case AttributeProto::GRAPH:
      return "a graph";
    case AttributeProto::SPARSE_TENSOR:
      return "a sparse tensor";
    case AttributeProto::TYPE_PROTO:
      return "a type";
    case AttributeProto::FLOATS:
      return "a list of floats";
    case AttributeProto::INTS:
      return "a list of integers";
    case AttributeProto::STRINGS:
      return "a list of strings";
    case AttributeProto::TENSORS:
      return "a list of tensors";
    case AttributeProto::GRAPHS:
      return "a list of graphs";
    case AttributeProto::SPARSE_TENSORS:
      return "a list of sparse tensors";
    case AttributeProto::TYPE_PROTOS:
      return "a list of types";
    default:
      return "of no type";
  }
}

// Shared by inputs and outputs, which differ only in their words.
template <typename Names>
Status CheckParameters(const Names& names, const std::vector<OpSchema::FormalParameter>& formals,
                       int fewest, int most, std::string_view what) {
  const int count = names.size();
  if (count < fewest || count > most) {
    return Invalid("The number of " + std::string(what) + "s (" + std::to_string(count) +
                   ") is outside the operator's range [" + std::to_string(fewest) + ", " +
                   (most == INT32_MAX ? "any" : std::to_string(most)) + "].");
  }
  for (int index = 0; index < count; ++index) {
    // Past the end only where the last formal parameter is variadic.
    if (static_cast<size_t>(index) >= formals.size()) break;
    const OpSchema::FormalParameter& formal = formals[static_cast<size_t>(index)];
    if (names[index].empty() && formal.GetOption() == OpSchema::Single) {
      return Invalid("The " + std::string(what) + " " + std::to_string(index) + " ('" +
                     formal.GetName() + "') is omitted, but the operator requires it.");
    }
  }
  return base::Ok();
}

}  // namespace

Result<Schema> Schema::Find(const std::string& op_type, const std::string& domain, int64_t opset,
                            const Domains& domains) {
  const auto version = static_cast<int>(std::min<int64_t>(opset, INT32_MAX));
  const OpSchema* schema = domains.FindSchema(op_type, domain, version);
  if (schema == nullptr) {
    if (!domains.HasSchema(op_type, domain)) {
      const std::string_view reason = domains.ReasonToRefuse(op_type, domain);
      if (!reason.empty()) {
        return Status(Code::kUnsupportedOperator,
                      Spell(op_type, domain) + " is not supported. " + std::string(reason));
      }
      return Status(Code::kUnsupportedOperator,
                    Spell(op_type, domain) + " is defined neither by ONNX nor by the model.");
    }
    return Status(Code::kUnsupportedOperator, Spell(op_type, domain) +
                                                  " does not exist yet in operator set " +
                                                  std::to_string(opset) + ".");
  }
  if (schema->Deprecated()) {
    return Invalid(Spell(op_type, domain) + " is deprecated since operator set " +
                   std::to_string(schema->SinceVersion()) + ", and the model uses " +
                   std::to_string(opset) + ".");
  }
  return Schema(*schema, domains);
}

const std::string& Schema::op_type() const { return schema_->Name(); }
int Schema::since_version() const { return schema_->SinceVersion(); }

Status Schema::CheckNode(const onnx::NodeProto& node) const {
  ONNXIFI_RETURN_IF_ERROR(CheckParameters(node.input(), schema_->inputs(), schema_->min_input(),
                                          schema_->max_input(), "input"));
  ONNXIFI_RETURN_IF_ERROR(CheckParameters(node.output(), schema_->outputs(), schema_->min_output(),
                                          schema_->max_output(), "output"));
  const auto& known = schema_->attributes();
  for (int index = 0; index < node.attribute_size(); ++index) {
    const AttributeProto& attribute = node.attribute(index);
    const std::string& name = attribute.name();
    const auto found = known.find(name);
    if (found == known.end()) {
      if (!IsOfAnotherVersion(name)) continue;
      return Invalid("Attribute '" + name + "' is not one of the operator's in version " +
                     std::to_string(since_version()) + ", but of another version.");
    }
    const AttributeProto::AttributeType expected = found->second.type;
    const AttributeProto::AttributeType actual = TypeOf(attribute);
    const bool is_empty_list = actual == AttributeProto::UNDEFINED && IsList(expected);
    const bool is_reference = !attribute.ref_attr_name().empty();
    if (actual != expected && !is_empty_list &&
        !(is_reference && actual == AttributeProto::UNDEFINED)) {
      return Invalid("Attribute '" + name + "' is " + std::string(NameOf(actual)) +
                     ", but the operator's is " + std::string(NameOf(expected)) + ".");
    }
    const bool is_missing =
        (expected == AttributeProto::TENSOR && !attribute.has_t()) ||
        (expected == AttributeProto::GRAPH && !attribute.has_g()) ||
        (expected == AttributeProto::SPARSE_TENSOR && !attribute.has_sparse_tensor()) ||
        (expected == AttributeProto::TYPE_PROTO && !attribute.has_tp());
    if (is_missing && !is_reference) {
      return Invalid("Attribute '" + name + "' is declared " + std::string(NameOf(expected)) +
                     " but holds none.");
    }
  }
  return base::Ok();
}

bool Schema::Knows(const std::string& attribute) const {
  return schema_->attributes().contains(attribute);
}

bool Schema::IsOfAnotherVersion(const std::string& attribute) const {
  // Versions from the newest down: each schema tells where the one before it ends.
  for (int version = INT32_MAX; version > 0;) {
    const OpSchema* schema = domains_->FindSchema(schema_->Name(), schema_->domain(), version);
    if (schema == nullptr) return false;
    if (schema->attributes().contains(attribute)) return true;
    version = schema->SinceVersion() - 1;
  }
  return false;
}

AttributeProto::AttributeType Schema::AttributeType(const std::string& name) const {
  const auto found = schema_->attributes().find(name);
  return found == schema_->attributes().end() ? AttributeProto::UNDEFINED : found->second.type;
}

Status Schema::CheckRequired(
    const std::map<std::string, graph::Attribute, std::less<>>& attributes) const {
  for (const auto& [name, attribute] : schema_->attributes()) {
    if (!attribute.required || attributes.contains(name)) continue;
    return Invalid("Attribute '" + name + "' is missing, but the operator requires it.");
  }
  return base::Ok();
}

Status Schema::CheckInputTypes(const std::vector<onnx::TypeProto>& types) const {
  const std::vector<onnx::OpSchema::FormalParameter>& declared = schema_->inputs();
  if (declared.empty()) return base::Ok();
  for (size_t index = 0; index < types.size(); ++index) {
    if (types[index].value_case() == onnx::TypeProto::VALUE_NOT_SET) continue;
    const onnx::OpSchema::FormalParameter& parameter =
        declared[std::min(index, declared.size() - 1)];
    const std::string& given = *onnx::Utils::DataTypeUtils::ToType(types[index]);
    std::string allowed;
    bool is_allowed = false;
    for (const std::string* type : parameter.GetTypes()) {
      is_allowed = is_allowed || *type == given;
      allowed += (allowed.empty() ? "" : ", ") + *type;
    }
    if (!is_allowed) {
      std::string sentence = Spell(schema_->Name(), schema_->domain()) + " of version " +
                             std::to_string(schema_->SinceVersion()) + " takes no " + given;
      sentence += " as input " + std::to_string(index) + " ('" + parameter.GetName();
      sentence += "'), only " + allowed + ".";
      return {Code::kUnsupportedDatatype, std::move(sentence)};
    }
  }
  return base::Ok();
}

bool Schema::HasFunction() const {
  return schema_->HasFunction() || schema_->HasContextDependentFunction() ||
         domains_->HasDefinition(*schema_);
}

namespace {

class NodeWithTypes final : public DefinedNode {
 public:
  NodeWithTypes(const onnx::NodeProto& node, const std::vector<onnx::TypeProto>& types,
                const std::vector<bool>& wants)
      : node_(node), types_(types), wants_(wants) {}

  const AttributeProto* FindAttribute(const std::string& name) const override {
    const auto found = std::ranges::find(node_.attribute(), name, &AttributeProto::name);
    return found == node_.attribute().end() ? nullptr : &*found;
  }
  int input_count() const override { return node_.input_size(); }
  bool Has(int input) const override {
    return input < input_count() && !node_.input(input).empty();
  }
  const onnx::TypeProto* FindType(int input) const override {
    if (!Has(input) || static_cast<size_t>(input) >= types_.size()) return nullptr;
    const onnx::TypeProto& type = types_[static_cast<size_t>(input)];
    return type.value_case() == onnx::TypeProto::VALUE_NOT_SET ? nullptr : &type;
  }
  int output_count() const override { return node_.output_size(); }
  bool Wants(int output) const override {
    return output < output_count() && wants_[static_cast<size_t>(output)];
  }

 private:
  const onnx::NodeProto& node_;
  const std::vector<onnx::TypeProto>& types_;
  const std::vector<bool>& wants_;
};

}  // namespace

Result<onnx::FunctionProto> Schema::BuildFunction(const onnx::NodeProto& node,
                                                  const std::vector<onnx::TypeProto>& types,
                                                  const std::vector<bool>& wants) const {
  if (domains_->HasDefinition(*schema_)) {
    return domains_->Define(*schema_, NodeWithTypes(node, types, wants));
  }
  const std::string& op_type = schema_->Name();
  // A body may be written for a later operator set than the operator's own version; the first one
  // fits it.
  const auto version_for = [this](const std::vector<int>& versions) {
    return std::max(schema_->SinceVersion(), *std::ranges::min_element(versions));
  };
  // The library's bodies name attributes without the defaults of the operator.
  const auto with_defaults = [this](onnx::FunctionProto function) {
    for (const auto& [name, attribute] : schema_->attributes()) {
      if (attribute.default_value.type() == AttributeProto::UNDEFINED) continue;
      AttributeProto& fallback = *function.add_attribute_proto();
      fallback = attribute.default_value;
      fallback.set_name(name);
    }
    return function;
  };
  try {
    if (schema_->HasContextDependentFunction()) {
      onnx::FunctionProto function;
      const onnx::FunctionBodyBuildContextImpl context(node, types);
      const int version = version_for(schema_->context_dependent_function_opset_versions());
      if (schema_->BuildContextDependentFunction(context, function, version)) {
        return with_defaults(std::move(function));
      }
      // Some operators have a plain body for what their builder declines.
    }
    if (schema_->HasFunction()) {
      const int version = version_for(schema_->function_opset_versions());
      if (const onnx::FunctionProto* body = schema_->GetFunction(version)) {
        return with_defaults(*body);
      }
    }
  } catch (const std::exception& error) {
    return FromException(error, op_type);
  }
  return Status(Code::kUnsupportedOperator,
                Spell(op_type, schema_->domain()) +
                    " has no definition as a function for these input types.");
}

}  // namespace onnxifi::model
