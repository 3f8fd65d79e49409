// SPDX-License-Identifier: Apache-2.0
//
// Scope: definitions, declarations before them, and captures from enclosing graphs.

#include "backends/core/model/scope.h"

#include <functional>
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
using graph::ValueIds;

int32_t Scope::Names::Position(std::string_view name, size_t hash) const {
  return by_hash_.Find(hash,
                       [&](int32_t k) { return named_[static_cast<size_t>(k)].name == name; });
}

Scope::Entry* Scope::Names::Find(std::string_view name) {
  const int32_t position = Position(name, std::hash<std::string_view>()(name));
  if (position == base::HashIndex::kNone) return nullptr;
  return &named_[static_cast<size_t>(position)].entry;
}

Scope::Entry& Scope::Names::operator[](std::string_view name) {
  const size_t hash = std::hash<std::string_view>()(name);
  const int32_t position = Position(name, hash);
  if (position != base::HashIndex::kNone) return named_[static_cast<size_t>(position)].entry;
  // The names of a model of one node.
  constexpr size_t kFew = 8;
  if (named_.empty()) named_.reserve(kFew);
  by_hash_.Add(hash, static_cast<int32_t>(named_.size()));
  return named_.emplace_back(Named{name, {}}).entry;
}

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
  Entry* found = names.Find(name);
  if (found != nullptr && found->is_defined) {
    found->is_read = true;
    return found->id;
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

Result<ValueIds> Scope::ResolveInputs(const onnx::NodeProto& node) {
  ValueIds inputs;
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
