// SPDX-License-Identifier: Apache-2.0
//
// Scope: definitions, declarations before them, and captures from enclosing graphs.

#include "backends/core/model/scope.h"

#include <utility>

#include "backends/core/model/refusal.h"

namespace onnxifi::model {

using base::Code;
using base::Result;
using base::Status;
using graph::kNoValue;
using graph::Type;
using graph::Value;
using graph::ValueId;

void Scope::Declare(std::string_view name, Type type) {
  Entry& entry = names[name];
  if (entry.id == kNoValue) {
    entry.id = graph->AddValue({.name = std::string(name), .type = std::move(type)});
    return;
  }
  Value& value = graph->values[static_cast<size_t>(entry.id)];
  if (value.type.kind == Type::Kind::kUnknown) value.type = std::move(type);
}

Result<ValueId> Scope::Define(std::string_view name, Value value) {
  Entry& entry = names[name];
  if (entry.is_defined) {
    return Invalid("Value " + Quote(name) + " is defined twice, or read before its definition.");
  }
  entry.is_defined = true;
  if (entry.id == kNoValue) {
    entry.id = graph->AddValue(std::move(value));
  } else {
    // Declared before: what the definition itself says of the type is more exact.
    Value& declared = graph->values[static_cast<size_t>(entry.id)];
    if (value.type.kind == Type::Kind::kUnknown) value.type = std::move(declared.type);
    declared = std::move(value);
  }
  return entry.id;
}

std::optional<ValueId> Scope::Resolve(std::string_view name) {
  const auto found = names.find(name);
  if (found != names.end() && found->second.is_defined) {
    found->second.is_read = true;
    return found->second.id;
  }
  Value value{.name = std::string(name)};
  if (outer != nullptr) {
    const std::optional<ValueId> captured = outer->Resolve(name);
    if (!captured || *captured == kNoValue) return captured;
    value.type = outer->graph->values[static_cast<size_t>(*captured)].type;
    value.outer = *captured;
  } else if (!takes_undeclared) {
    return std::nullopt;
  }
  const Result<ValueId> id = Define(name, std::move(value));
  if (!id.ok()) return std::nullopt;
  if (outer == nullptr) graph->inputs.push_back(*id);
  return *id;
}

Result<std::vector<ValueId>> Scope::ResolveInputs(const onnx::NodeProto& node) {
  std::vector<ValueId> inputs;
  inputs.reserve(static_cast<size_t>(node.input_size()));
  for (const std::string& input : node.input()) {
    if (input.empty()) {
      inputs.push_back(kNoValue);
      continue;
    }
    const std::optional<ValueId> id = Resolve(input);
    if (!id) {
      return Invalid("Input " + Quote(input) + " is defined by nothing before the node.");
    }
    inputs.push_back(*id);
  }
  return inputs;
}

Status Scope::CheckDepth() const {
  if (depth < kDeepestScope) return base::Ok();
  return {Code::kUnsupportedOperator, "Subgraphs and functions nest " + std::to_string(depth + 1) +
                                          " deep, beyond the deepest supported (" +
                                          std::to_string(kDeepestScope) + ")."};
}

}  // namespace onnxifi::model
