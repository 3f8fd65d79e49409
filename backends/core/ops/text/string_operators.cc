// SPDX-License-Identifier: Apache-2.0
//
// RegexFullMatch, StringConcat, StringSplit, StringNormalizer: host functions of whole tensors of
// strings.

#include "backends/core/host/letter_case.h"
#include "backends/core/host/pattern.h"
#include "backends/core/ops/host_step.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status NeedStrings(const Lowering& lowering, int count) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(count));
  for (int k = 0; k < count; ++k) {
    if (lowering.In(k).type() != ElementType::kString) return lowering.UnsupportedType(k);
  }
  return base::Ok();
}

Status LowerStringConcat(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(NeedStrings(lowering, 2));
  ONNXIFI_ASSIGN_OR_RETURN(const Shape shape,
                           lowering.Broadcast(lowering.In(0).shape, lowering.In(1).shape));
  HostStep step(lowering, program::ConcatStrings());
  for (int k = 0; k < 2; ++k) {
    step.Read({program::BroadcastTo(lowering.In(k), shape), shape});
  }
  lowering.Set(0, step.WriteTensor(ElementType::kString, {shape.begin(), shape.end()}));
  step.Emit();
  return base::Ok();
}

Status LowerStringSplit(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(NeedStrings(lowering, 1));
  const Shape& shape = lowering.In(0).shape;
  // Negative, and left out, mean as many as there are.
  const int64_t most_splits = lowering.Int("maxsplit", -1);
  HostStep step(lowering, program::SplitStrings{lowering.String("delimiter", ""), most_splits});
  step.Read(lowering.In(0));
  std::vector<std::optional<Dim>> parts(shape.begin(), shape.end());
  parts.emplace_back();
  lowering.Set(0, step.WriteTensor(ElementType::kString, parts));
  lowering.Set(1, step.WriteTensor(ElementType::kInt64, {shape.begin(), shape.end()}));
  step.Emit();
  return base::Ok();
}

Status LowerStringNormalizer(Lowering& lowering) {
  using Case = program::NormalizeStrings::Case;
  ONNXIFI_RETURN_IF_ERROR(NeedStrings(lowering, 1));
  const Shape& shape = lowering.In(0).shape;
  if (shape.empty() || shape.size() > 2) {
    return lowering.InvalidModel("Input 0 has " + std::to_string(shape.size()) +
                                 " axes; one, or two of which the first is 1, are required.");
  }
  if (shape.size() == 2) {
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(shape[0], 1, "The first of two axes and 1"));
  }
  program::NormalizeStrings attributes;
  const std::string action = lowering.String("case_change_action", "NONE");
  if (action == "LOWER") {
    attributes.to = Case::kLower;
  } else if (action == "UPPER") {
    attributes.to = Case::kUpper;
  } else if (action != "NONE") {
    return lowering.InvalidModel("Attribute case_change_action is '" + action +
                                 "'; it is one of LOWER, UPPER and NONE.");
  }
  attributes.is_case_sensitive = lowering.Int("is_case_sensitive", 0) != 0;
  if (const auto* words = lowering.node().FindAttribute<std::vector<std::string>>("stopwords")) {
    attributes.stopwords = *words;
  }
  attributes.locale = lowering.String("locale", "en_US");
  const Result<host::LetterCase> letters = host::LetterCase::Open(attributes.locale);
  if (!letters.ok()) return lowering.UnsupportedAttribute(std::string(letters.status().sentence()));

  HostStep step(lowering, std::move(attributes));
  step.Read(lowering.In(0));
  std::vector<std::optional<Dim>> kept(shape.begin(), shape.end());
  kept.back().reset();
  lowering.Set(0, step.WriteTensor(ElementType::kString, kept));
  step.Emit();
  return base::Ok();
}

Status LowerRegexFullMatch(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(NeedStrings(lowering, 1));
  if (!lowering.HasAttribute("pattern")) {
    return lowering.InvalidModel("Attribute pattern is missing.");
  }
  const std::string text = lowering.String("pattern", "");
  const Result<host::Pattern> pattern = host::Pattern::Compile(text);
  if (!pattern.ok()) return lowering.InvalidModel(std::string(pattern.status().sentence()));
  const Shape& shape = lowering.In(0).shape;
  HostStep step(lowering, program::MatchStrings{text});
  step.Read(lowering.In(0));
  lowering.Set(0, step.WriteTensor(ElementType::kBool, {shape.begin(), shape.end()}));
  step.Emit();
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"RegexFullMatch", 20, LowerRegexFullMatch, "", InputKinds::kStrings},
    {"StringConcat", 20, LowerStringConcat, "", InputKinds::kStrings},
    {"StringNormalizer", 10, LowerStringNormalizer, "", InputKinds::kStrings},
    {"StringSplit", 20, LowerStringSplit, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> StringOperators() { return kOperators; }

}  // namespace onnxifi::ops
