// SPDX-License-Identifier: Apache-2.0
//
// Declarations: a line is split at its marks; there is nothing that nests.

#include "backends/core/model/declaration.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace onnxifi::model {
namespace {

using base::Code;
using base::Status;
using onnx::AttributeProto;
using onnx::OpSchema;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(mark);
    const std::string_view part = Trim(text.substr(0, end));
    if (!part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Status Unreadable(std::string_view line) {
  return {Code::kInternalError, "The declaration of an operator has a line that cannot be read: '" +
                                    std::string(line) + "'."};
}

// Type variables begin with a capital letter, element types do not.
bool IsVariable(std::string_view type) {
  return !type.empty() && std::isupper(static_cast<unsigned char>(type.front()));
}

std::string TensorOf(std::string_view element) { return "tensor(" + std::string(element) + ")"; }

struct Parameter {
  std::string name;
  std::string type;
  OpSchema::FormalParameterOption option = OpSchema::Single;
};

std::optional<std::vector<Parameter>> ReadParameters(std::string_view list) {
  std::vector<Parameter> parameters;
  for (const std::string_view one : Split(list, ',')) {
    const size_t colon = one.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    std::string_view name = Trim(one.substr(0, colon));
    const std::string_view type = Trim(one.substr(colon + 1));
    if (name.empty() || type.empty()) return std::nullopt;
    Parameter parameter;
    if (name.back() == '?') parameter.option = OpSchema::Optional;
    if (name.back() == '*') parameter.option = OpSchema::Variadic;
    if (parameter.option != OpSchema::Single) name.remove_suffix(1);
    parameter.name = name;
    parameter.type = IsVariable(type) ? std::string(type) : TensorOf(type);
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

// "Name(inputs) -> (outputs)"
Status ReadSignature(std::string_view line, OpSchema& schema) {
  const size_t open = line.find('('), close = line.find(')');
  const size_t arrow = line.find("->");
  const size_t last_open = line.rfind('('), last_close = line.rfind(')');
  if (open == std::string_view::npos || arrow == std::string_view::npos || close > arrow ||
      last_open < arrow || last_close == close) {
    return Unreadable(line);
  }
  const auto inputs = ReadParameters(line.substr(open + 1, close - open - 1));
  const auto outputs = ReadParameters(line.substr(last_open + 1, last_close - last_open - 1));
  if (!inputs || !outputs) return Unreadable(line);
  schema.SetName(std::string(DeclaredName(line)));
  for (size_t k = 0; k < inputs->size(); ++k) {
    const Parameter& one = (*inputs)[k];
    schema.Input(static_cast<int>(k), one.name, "", one.type, one.option,
                 /*is_homogeneous=*/one.option != OpSchema::Variadic);
  }
  for (size_t k = 0; k < outputs->size(); ++k) {
    const Parameter& one = (*outputs)[k];
    schema.Output(static_cast<int>(k), one.name, "", one.type, one.option);
  }
  return base::Ok();
}

constexpr std::array<std::pair<std::string_view, AttributeProto::AttributeType>, 6> kTypes = {{
    {"int", AttributeProto::INT},
    {"float", AttributeProto::FLOAT},
    {"string", AttributeProto::STRING},
    {"ints", AttributeProto::INTS},
    {"floats", AttributeProto::FLOATS},
    {"strings", AttributeProto::STRINGS},
}};

template <typename Number>
std::optional<Number> ReadNumber(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "name: type", "name: type required" or "name: type = default"
Status ReadAttribute(std::string_view line, size_t colon, OpSchema& schema) {
  const std::string name(Trim(line.substr(0, colon)));
  const std::string_view rest = line.substr(colon + 1);
  const size_t equals = rest.find('=');
  std::vector<std::string_view> words = Split(rest.substr(0, equals), ' ');
  const bool is_required = words.size() == 2 && words[1] == "required";
  if (name.empty() || words.empty() || words.size() > (is_required ? 2 : 1)) {
    return Unreadable(line);
  }
  const auto* type = std::ranges::find(kTypes, words[0], &decltype(kTypes)::value_type::first);
  if (type == kTypes.end()) return Unreadable(line);
  if (equals == std::string_view::npos) {
    schema.Attr(name, "", type->second, is_required);
    return base::Ok();
  }
  const std::string_view value = Trim(rest.substr(equals + 1));
  if (type->second == AttributeProto::INT) {
    const auto number = ReadNumber<int64_t>(value);
    if (!number) return Unreadable(line);
    schema.Attr(name, "", type->second, *number);
  } else if (type->second == AttributeProto::FLOAT) {
    const auto number = ReadNumber<float>(value);
    if (!number) return Unreadable(line);
    schema.Attr(name, "", type->second, *number);
  } else if (type->second == AttributeProto::STRING) {
    schema.Attr(name, "", type->second, std::string(value));
  } else {
    return Unreadable(line);  // no operator has a list as its default
  }
  return base::Ok();
}

// "T = float16 | float"
Status ReadVariable(std::string_view line, size_t equals, OpSchema& schema) {
  const std::string name(Trim(line.substr(0, equals)));
  std::vector<std::string> types;
  for (const std::string_view element : Split(line.substr(equals + 1), '|')) {
    types.push_back(TensorOf(element));
  }
  if (!IsVariable(name) || types.empty()) return Unreadable(line);
  schema.TypeConstraint(name, types, "");
  return base::Ok();
}

}  // namespace

std::string_view DeclaredName(std::string_view declaration) {
  return Trim(declaration.substr(0, declaration.find('(')));
}

Status ReadDeclaration(std::string_view declaration, std::string_view domain, OpSchema& schema) {
  schema.SetDomain(std::string(domain));
  // The signature may take several lines.
  const size_t arrow = declaration.find("->");
  const size_t end = arrow == std::string_view::npos ? arrow : declaration.find(')', arrow);
  if (end == std::string_view::npos) return Unreadable(Trim(declaration));
  ONNXIFI_RETURN_IF_ERROR(ReadSignature(Trim(declaration.substr(0, end + 1)), schema));
  for (const std::string_view line : Split(declaration.substr(end + 1), '\n')) {
    const size_t colon = line.find(':'), equals = line.find('=');
    if (colon != std::string_view::npos && (equals == std::string_view::npos || colon < equals)) {
      ONNXIFI_RETURN_IF_ERROR(ReadAttribute(line, colon, schema));
    } else if (equals != std::string_view::npos) {
      ONNXIFI_RETURN_IF_ERROR(ReadVariable(line, equals, schema));
    } else {
      return Unreadable(line);
    }
  }
  return base::Ok();
}

}  // namespace onnxifi::model
