// SPDX-License-Identifier: Apache-2.0
//
// The text of strings.

#include "backends/core/host/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "backends/core/host/letter_case.h"
#include "backends/core/host/pattern.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::host {
namespace {

using base::Code;
using base::Result;
using base::Status;
using tensor::ElementType;
using tensor::Extents;
using tensor::Scalar;
using tensor::Tensor;
using tensor::ValueRef;
using Strings = std::vector<std::string>;

Result<const Tensor*> StringsInput(Inputs inputs, size_t k) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* tensor, TensorInput(inputs, k));
  if (tensor->type() != ElementType::kString) return WrongInput(inputs, k, "a tensor of strings");
  return tensor;
}

bool IsSpace(char c) { return std::strchr(" \t\n\v\f\r", c) != nullptr && c != '\0'; }

// At runs of white space, none at either end; what follows the last split stays as it is.
void SplitAtSpace(std::string_view text, int64_t most_splits, Strings& parts) {
  size_t begin = 0;
  const auto skip = [&] {
    while (begin < text.size() && IsSpace(text[begin])) ++begin;
  };
  for (skip(); begin < text.size(); skip()) {
    size_t end = text.size();
    if (most_splits < 0 || static_cast<int64_t>(parts.size()) < most_splits) {
      end = begin;
      while (end < text.size() && !IsSpace(text[end])) ++end;
    }
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
}

void SplitAt(std::string_view delimiter, std::string_view text, int64_t most_splits,
             Strings& parts) {
  size_t begin = 0;
  while (most_splits < 0 || static_cast<int64_t>(parts.size()) < most_splits) {
    const size_t end = text.find(delimiter, begin);
    if (end == std::string_view::npos) break;
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + delimiter.size();
  }
  parts.emplace_back(text.substr(begin));
}

// Plain digits, as few as give the number back; the names that ONNX has for those without.
template <typename T>
std::string FormatFloat(T value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  std::array<char, 1100> text;  // the smallest float64 has 1074 digits behind the point
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return error == std::errc() ? std::string(text.data(), end) : std::string();
}

std::string Format(ElementType type, const Scalar& value) {
  if (type == ElementType::kFloat64) return FormatFloat(value.f);
  // Narrower floats are float32 numbers, of which fewer digits are enough.
  if (tensor::IsFloat(type)) return FormatFloat(static_cast<float>(value.f));
  return tensor::IsSigned(type) ? std::to_string(value.i) : std::to_string(value.u);
}

bool EqualsNoCase(std::string_view text, std::string_view upper) {
  return std::equal(text.begin(), text.end(), upper.begin(), upper.end(), [](char a, char b) {
    return std::toupper(static_cast<unsigned char>(a)) == b;
  });
}

// The whole of `text` as a number; white space around it and a plus sign are no part of it.
template <typename T>
bool ParseWhole(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

template <typename T>
bool ParseFloat(std::string_view text, Scalar& value) {
  if (EqualsNoCase(text, "INF") || EqualsNoCase(text, "-INF")) {
    value.f = text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
    return true;
  }
  if (EqualsNoCase(text, "NAN")) {
    value.f = std::nan("");
    return true;
  }
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || text.empty()) return false;
  if (error == std::errc::result_out_of_range) {
    // Too large or too small: strtod tells which.
    number = static_cast<T>(std::strtod(std::string(text).c_str(), nullptr));
  } else if (error != std::errc()) {
    return false;
  }
  value.f = static_cast<double>(number);
  return true;
}

// `value` of the class of `type`.
bool Parse(ElementType type, std::string_view text, Scalar& value) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if (type == ElementType::kFloat64) return ParseFloat<double>(text, value);
  if (tensor::IsFloat(type)) return ParseFloat<float>(text, value);
  if (tensor::IsSigned(type)) {
    if (!ParseWhole(text, value.i)) return false;
    return tensor::BitWidth(type) == 64 ||
           (static_cast<double>(value.i) >= tensor::Lowest(type) &&
            static_cast<double>(value.i) <= tensor::LargestFinite(type));
  }
  if (!ParseWhole(text, value.u)) return false;
  if (tensor::IsBool(type)) value.u = value.u != 0 ? 1 : 0;
  return tensor::BitWidth(type) == 64 ||
         static_cast<double>(value.u) <= tensor::LargestFinite(type);
}

}  // namespace

Outputs Run(const program::ConcatStrings&, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* a, StringsInput(inputs, 0));
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* b, StringsInput(inputs, 1));
  Strings joined;
  joined.reserve(a->strings().size());
  for (size_t k = 0; k < a->strings().size(); ++k) {
    joined.push_back(a->strings()[k] + b->strings()[k]);
  }
  return One(Tensor::FromStrings(a->extents(), std::move(joined)));
}

Outputs Run(const program::SplitStrings& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, StringsInput(inputs, 0));
  std::vector<Strings> lists;
  size_t most = 0;
  for (const std::string& text : x->strings()) {
    Strings& parts = lists.emplace_back();
    if (attributes.delimiter.empty()) {
      SplitAtSpace(text, attributes.most_splits, parts);
    } else {
      SplitAt(attributes.delimiter, text, attributes.most_splits, parts);
    }
    most = std::max(most, parts.size());
  }
  Extents extents = x->extents();
  ONNXIFI_ASSIGN_OR_RETURN(Tensor counts, Tensor::Allocate(ElementType::kInt64, extents));
  extents.push_back(static_cast<int64_t>(most));
  // One long string among many short ones makes a wide tensor of empty ones.
  ONNXIFI_RETURN_IF_ERROR(Tensor::Allocate(ElementType::kUint64, extents).status());
  Strings padded;
  padded.reserve(lists.size() * most);
  for (size_t k = 0; k < lists.size(); ++k) {
    reinterpret_cast<int64_t*>(counts.mutable_data())[k] = static_cast<int64_t>(lists[k].size());
    for (std::string& part : lists[k]) padded.push_back(std::move(part));
    padded.resize((k + 1) * most);
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<ValueRef> outputs,
                           One(Tensor::FromStrings(std::move(extents), std::move(padded))));
  outputs.push_back(std::make_shared<const tensor::Value>(std::move(counts)));
  return outputs;
}

Outputs Run(const program::NormalizeStrings& attributes, Inputs inputs) {
  using Case = program::NormalizeStrings::Case;
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, StringsInput(inputs, 0));
  ONNXIFI_ASSIGN_OR_RETURN(const LetterCase letters, LetterCase::Open(attributes.locale));
  const auto key = [&](const std::string& text) {
    return attributes.is_case_sensitive ? text : letters.Lower(text);
  };
  std::unordered_set<std::string> stopwords;
  for (const std::string& word : attributes.stopwords) stopwords.insert(key(word));
  Strings kept;
  for (const std::string& text : x->strings()) {
    if (stopwords.contains(key(text))) continue;
    switch (attributes.to) {
      case Case::kAsIs:
        kept.push_back(text);
        break;
      case Case::kLower:
        kept.push_back(letters.Lower(text));
        break;
      case Case::kUpper:
        kept.push_back(letters.Upper(text));
        break;
    }
  }
  if (kept.empty()) kept.emplace_back();
  Extents extents = x->extents();
  if (extents.size() == 2 && extents[0] != 1) {
    return Status(Code::kMismatchingShape, "Input 0 has shape " + tensor::ToString(extents) +
                                               "; of two axes the first must be 1.");
  }
  extents.back() = static_cast<int64_t>(kept.size());
  return One(Tensor::FromStrings(std::move(extents), std::move(kept)));
}

Outputs Run(const program::MatchStrings& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, StringsInput(inputs, 0));
  ONNXIFI_ASSIGN_OR_RETURN(const Pattern pattern, Pattern::Compile(attributes.pattern));
  ONNXIFI_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(ElementType::kBool, x->extents()));
  for (size_t k = 0; k < x->strings().size(); ++k) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool matches, pattern.MatchesWhole(x->strings()[k]));
    result.mutable_data()[k] = matches ? std::byte{1} : std::byte{0};
  }
  return One(std::move(result));
}

Outputs Run(const program::FormatNumbers&, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, TensorInput(inputs, 0));
  Strings texts;
  for (int64_t k = 0; k < x->element_count(); ++k) {
    texts.push_back(Format(x->type(), LoadScalar(x->type(), x->data(), k)));
  }
  return One(Tensor::FromStrings(x->extents(), std::move(texts)));
}

Outputs Run(const program::ParseNumbers& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, StringsInput(inputs, 0));
  const ElementType to = attributes.to;
  ONNXIFI_ASSIGN_OR_RETURN(Tensor numbers, Tensor::Allocate(to, x->extents()));
  for (size_t k = 0; k < x->strings().size(); ++k) {
    const std::string& text = x->strings()[k];
    Scalar value{};
    if (!Parse(to, text, value)) {
      return Status(Code::kMismatchingDatatype, "String " + std::to_string(k) + " ('" +
                                                    text.substr(0, 64) + "') is no number of " +
                                                    std::string(Name(to)) + ".");
    }
    if (tensor::IsFloat(to)) value = CastScalar(ElementType::kFloat64, to, value);
    StoreScalar(to, numbers.mutable_data(), static_cast<int64_t>(k), value);
  }
  return One(std::move(numbers));
}

Outputs Run(const program::RankStrings&, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, StringsInput(inputs, 0));
  std::vector<std::string_view> distinct(x->strings().begin(), x->strings().end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  ONNXIFI_ASSIGN_OR_RETURN(Tensor ranks, Tensor::Allocate(ElementType::kInt64, x->extents()));
  for (size_t k = 0; k < x->strings().size(); ++k) {
    const auto place = std::lower_bound(distinct.begin(), distinct.end(), x->strings()[k]);
    StoreScalar(ElementType::kInt64, ranks.mutable_data(), static_cast<int64_t>(k),
                Scalar{.i = place - distinct.begin()});
  }
  return One(std::move(ranks));
}

}  // namespace onnxifi::host
