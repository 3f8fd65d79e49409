// SPDX-License-Identifier: Apache-2.0
//
// Tokenizer of com.microsoft: what vectorizers of text are exported with.

#include "backends/core/host/pattern.h"
#include "backends/core/ops/host_step.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using Rule = program::TokenizeStrings::Rule;

Result<program::TokenizeStrings> ReadAttributes(const Lowering& lowering) {
  program::TokenizeStrings attributes;
  attributes.marks_ends = lowering.Int("mark", 0) != 0;
  attributes.padding = lowering.String("pad_value", "");
  attributes.shortest = lowering.Int("mincharnum", 0);
  if (attributes.shortest < 1) {
    return lowering.InvalidModel("Attribute mincharnum is " + std::to_string(attributes.shortest) +
                                 ", below the smallest (1).");
  }
  const auto* separators = lowering.node().FindAttribute<std::vector<std::string>>("separators");
  const std::string token = lowering.String("tokenexp", "");
  if (separators != nullptr && !separators->empty()) {
    attributes.rule = Rule::kBetweenMatches;
    attributes.patterns = *separators;
  } else if (!token.empty()) {
    attributes.rule = Rule::kMatches;
    attributes.patterns = {token};
  } else {
    return lowering.InvalidModel(
        "Attributes separators and tokenexp are both missing or empty; one is required.");
  }
  const bool is_any_character =
      attributes.rule == Rule::kMatches ? token == "." : *separators == std::vector{std::string()};
  if (!is_any_character) return attributes;
  if (attributes.shortest > 1) {
    return lowering.InvalidModel("Attribute mincharnum is " + std::to_string(attributes.shortest) +
                                 "; of tokens of one character it is 1.");
  }
  attributes.rule = Rule::kCharacters;
  attributes.patterns.clear();
  return attributes;
}

Status LowerTokenizer(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  if (lowering.In(0).type() != ElementType::kString) return lowering.UnsupportedType(0);
  const Shape& shape = lowering.In(0).shape;
  if (shape.empty() || shape.size() > 2) {
    return lowering.InvalidModel("Input 0 has " + std::to_string(shape.size()) +
                                 " axes; one or two are required.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(program::TokenizeStrings attributes, ReadAttributes(lowering));
  for (const std::string& text : attributes.patterns) {
    const Result<host::Pattern> pattern = host::Pattern::Compile(text);
    if (!pattern.ok()) return lowering.InvalidModel(std::string(pattern.status().sentence()));
  }
  HostStep step(lowering, std::move(attributes));
  step.Read(lowering.In(0));
  std::vector<std::optional<Dim>> tokens(shape.begin(), shape.end());
  tokens.emplace_back();
  lowering.Set(0, step.WriteTensor(ElementType::kString, tokens));
  step.Emit();
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Tokenizer", 1, LowerTokenizer, "com.microsoft", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> TokenizerOperators() { return kOperators; }

}  // namespace onnxifi::ops
