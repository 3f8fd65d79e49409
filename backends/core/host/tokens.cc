// SPDX-License-Identifier: Apache-2.0
//
// The tokens of strings. How they are cut where patterns match nothing, or overlap, is what ONNX
// Runtime does, which defines the operator.

#include "backends/core/host/tokens.h"

#include <algorithm>
#include <optional>

#include "backends/core/host/pattern.h"

namespace onnxifi::host {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::TokenizeStrings;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using Pieces = std::vector<std::string_view>;

// The bytes of the character that begins with `first`; 0 if none does.
size_t LengthOf(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0x80) return 1;
  if (byte >= 0xC2 && byte < 0xE0) return 2;
  if (byte >= 0xE0 && byte < 0xF0) return 3;
  return byte >= 0xF0 && byte < 0xF5 ? 4 : 0;
}

bool IsUtf8(std::string_view text) {
  for (size_t k = 0; k < text.size();) {
    const size_t length = LengthOf(text[k]);
    if (length == 0 || length > text.size() - k) return false;
    uint32_t letter = static_cast<unsigned char>(text[k]) & (length == 1 ? 0x7FU : 0x7FU >> length);
    for (size_t byte = 1; byte < length; ++byte) {
      const auto next = static_cast<unsigned char>(text[k + byte]);
      if ((next & 0xC0U) != 0x80U) return false;
      letter = letter << 6U | (next & 0x3FU);
    }
    const bool is_overlong = (length == 3 && letter < 0x800) || (length == 4 && letter < 0x10000);
    const bool is_surrogate = letter >= 0xD800 && letter < 0xE000;
    if (is_overlong || is_surrogate || letter > 0x10FFFF) return false;
    k += length;
  }
  return true;
}

// Of a text that is UTF-8.
int64_t CountCharacters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

// Behind the character at `at`; behind the end of the text where none is left.
size_t Next(std::string_view text, size_t at) {
  return at < text.size() ? at + LengthOf(text[at]) : text.size() + 1;
}

void SplitCharacters(std::string_view text, Pieces& pieces) {
  for (size_t k = 0; k < text.size(); k = Next(text, k)) {
    pieces.push_back(text.substr(k, LengthOf(text[k])));
  }
}

Status SplitAtMatches(std::string_view text, const Pattern& separator, int64_t shortest,
                      Pieces& pieces) {
  const auto add = [&](std::string_view part) {
    if (CountCharacters(part) >= shortest) pieces.push_back(part);
  };
  size_t start = 0;
  while (start <= text.size()) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::optional<Pattern::Match> match,
                             separator.Find(text, start));
    if (!match) {
      add(text.substr(start));
      break;
    }
    add(text.substr(start, match->begin - start));
    // A separator that matches nothing takes a character with it.
    start = match->end > match->begin ? match->end : Next(text, match->begin);
  }
  return base::Ok();
}

Status FindMatches(std::string_view text, const Pattern& token, int64_t shortest, Pieces& pieces) {
  size_t start = 0;
  while (start <= text.size()) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::optional<Pattern::Match> match, token.Find(text, start));
    if (!match) break;
    const std::string_view part = text.substr(match->begin, match->end - match->begin);
    const bool is_long = CountCharacters(part) >= shortest;
    if (is_long) pieces.push_back(part);
    // Within one that is too short another may begin.
    start = is_long ? match->end : Next(text, match->begin);
  }
  return base::Ok();
}

Status Tokenize(const TokenizeStrings& attributes, const std::vector<Pattern>& patterns,
                std::string_view text, Pieces& pieces) {
  using Rule = TokenizeStrings::Rule;
  if (attributes.rule == Rule::kCharacters) {
    SplitCharacters(text, pieces);
    return base::Ok();
  }
  if (attributes.rule == Rule::kMatches) {
    return FindMatches(text, patterns[0], attributes.shortest, pieces);
  }
  pieces = {text};
  for (const Pattern& separator : patterns) {
    Pieces finer;
    for (const std::string_view part : pieces) {
      ONNXIFI_RETURN_IF_ERROR(SplitAtMatches(part, separator, attributes.shortest, finer));
    }
    pieces = std::move(finer);
  }
  return base::Ok();
}

}  // namespace

Outputs Run(const TokenizeStrings& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, TensorInput(inputs, 0));
  if (x->type() != ElementType::kString) return WrongInput(inputs, 0, "a tensor of strings");
  std::vector<Pattern> patterns;
  for (const std::string& text : attributes.patterns) {
    ONNXIFI_ASSIGN_OR_RETURN(Pattern pattern, Pattern::Compile(text));
    patterns.push_back(std::move(pattern));
  }
  std::vector<Pieces> lists(x->strings().size());
  size_t most = 0;
  for (size_t k = 0; k < lists.size(); ++k) {
    const std::string& text = x->strings()[k];
    if (!IsUtf8(text)) {
      return Status(Code::kInvalidDatatype,
                    "String " + std::to_string(k) + " of input 0 is no UTF-8.");
    }
    ONNXIFI_RETURN_IF_ERROR(Tokenize(attributes, patterns, text, lists[k]));
    most = std::max(most, lists[k].size());
  }
  const bool marks = attributes.marks_ends && most > 0;
  const size_t width = most + (marks ? 2 : 0);
  Extents extents = x->extents();
  extents.push_back(static_cast<int64_t>(width));
  // One long string among many short ones makes a wide tensor of padding.
  ONNXIFI_RETURN_IF_ERROR(Tensor::Allocate(ElementType::kUint64, extents).status());
  std::vector<std::string> tokens;
  tokens.reserve(lists.size() * width);
  for (size_t k = 0; k < lists.size(); ++k) {
    if (marks) tokens.emplace_back("\x02");
    tokens.insert(tokens.end(), lists[k].begin(), lists[k].end());
    if (marks) tokens.emplace_back("\x03");
    tokens.resize((k + 1) * width, attributes.padding);
  }
  return One(Tensor::FromStrings(std::move(extents), std::move(tokens)));
}

}  // namespace onnxifi::host
