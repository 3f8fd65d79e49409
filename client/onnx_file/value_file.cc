// SPDX-License-Identifier: Apache-2.0
//
// The field numbers are those of onnx-data.proto. SequenceProto: tensor_values 3, sequence_values
// 5, map_values 6, optional_values 7. MapProto: key_type 2, keys 3, string_keys 4, values 5.
// OptionalProto: tensor_value 3, sequence_value 5, map_value 6, optional_value 7.

#include "client/onnx_file/value_file.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "client/onnx_file/wire_reader.h"
#include "client/onnx_file/wire_writer.h"

namespace onnxifi::onnx_file {
namespace {

constexpr int kDeepestValue = 8;

base::Result<FileValue> Parse(std::span<const std::byte> message, ValueKind kind, int depth);

// The kind of value in a field that SequenceProto and OptionalProto number alike.
ValueKind KindOfField(uint32_t number) {
  switch (number) {
    case 3:
      return ValueKind::kTensor;
    case 5:
      return ValueKind::kSequence;
    case 6:
      return ValueKind::kMap;
    case 7:
      return ValueKind::kOptional;
    default:
      return ValueKind::kUnknown;
  }
}

base::Result<FileValue> ParseElements(std::span<const std::byte> message, bool is_optional,
                                      int depth) {
  FileValue value;
  value.kind = is_optional ? FileValue::Kind::kNothing : FileValue::Kind::kSequence;
  WireReader reader(message);
  WireField field;
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_field, reader.Next(field));
    if (!has_field) return value;
    const ValueKind kind = KindOfField(field.number);
    if (kind == ValueKind::kUnknown || field.type != WireType::kBytes) continue;
    ONNXIFI_ASSIGN_OR_RETURN(FileValue element, Parse(field.bytes, kind, depth + 1));
    if (is_optional) return element;
    value.elements.push_back(std::move(element));
  }
}

base::Result<FileValue> ParseMap(std::span<const std::byte> message, int depth) {
  FileValue value;
  value.kind = FileValue::Kind::kMap;
  std::vector<int64_t> keys;
  WireReader reader(message);
  WireField field;
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_field, reader.Next(field));
    if (!has_field) break;
    if (field.number == 2) value.tensor.type = static_cast<ElementType>(field.value);
    if (field.number == 3) ONNXIFI_RETURN_IF_ERROR(AppendIntegers(field, keys));
    if (field.number == 4) value.tensor.strings.emplace_back(field.text());
    if (field.number == 5) {
      ONNXIFI_ASSIGN_OR_RETURN(FileValue values,
                               ParseElements(field.bytes, /*is_optional=*/false, depth + 1));
      value.elements = std::move(values.elements);
    }
  }
  const size_t count =
      value.tensor.type == ElementType::kString ? value.tensor.strings.size() : keys.size();
  if (count != value.elements.size()) {
    return base::Status(base::Code::kInvalidModel, fmt::format("A map has {} keys for {} values.",
                                                               count, value.elements.size()));
  }
  value.tensor.extents = {static_cast<int64_t>(count)};
  if (value.tensor.type != ElementType::kString) {
    value.tensor.type = ElementType::kInt64;
    value.tensor.bytes.resize(keys.size() * sizeof(int64_t));
    if (!keys.empty())
      std::memcpy(value.tensor.bytes.data(), keys.data(), value.tensor.bytes.size());
  }
  return value;
}

base::Result<FileValue> Parse(std::span<const std::byte> message, ValueKind kind, int depth) {
  if (depth > kDeepestValue) {
    return base::Status(base::Code::kInvalidModel,
                        fmt::format("A value is nested deeper than {}.", kDeepestValue));
  }
  switch (kind) {
    case ValueKind::kSequence:
      return ParseElements(message, /*is_optional=*/false, depth);
    case ValueKind::kOptional:
      return ParseElements(message, /*is_optional=*/true, depth);
    case ValueKind::kMap:
      return ParseMap(message, depth);
    default: {
      FileValue value;
      value.kind = FileValue::Kind::kTensor;
      ONNXIFI_ASSIGN_OR_RETURN(value.tensor, ParseTensor(message));
      return value;
    }
  }
}

std::string SerializePlain(const FileValue& value);

// The fields of a SequenceProto, or of an OptionalProto, that `elements` are.
void AppendElements(const std::vector<FileValue>& elements, std::string& message) {
  constexpr int64_t kTypes[] = {5, 1, 3, 4};  // optional, tensor, sequence, map
  constexpr uint32_t kFields[] = {7, 3, 5, 6};
  if (elements.empty()) return;
  AppendIntegerField(message, 2, kTypes[static_cast<size_t>(elements[0].kind)]);
  for (const FileValue& element : elements) {
    AppendBytesField(message, kFields[static_cast<size_t>(element.kind)], SerializePlain(element));
  }
}

// An optional's element as it is alone.
std::string SerializePlain(const FileValue& value) {
  std::string message;
  switch (value.kind) {
    case FileValue::Kind::kNothing:
      break;
    case FileValue::Kind::kTensor:
      return SerializeTensor(value.tensor);
    case FileValue::Kind::kSequence:
      if (!value.name.empty()) AppendBytesField(message, 1, value.name);
      AppendElements(value.elements, message);
      break;
    case FileValue::Kind::kMap: {
      if (!value.name.empty()) AppendBytesField(message, 1, value.name);
      const DenseTensor& keys = value.tensor;
      AppendIntegerField(message, 2, static_cast<int32_t>(keys.type));
      for (size_t at = 0; at + sizeof(int64_t) <= keys.bytes.size(); at += sizeof(int64_t)) {
        int64_t key;
        std::memcpy(&key, keys.bytes.data() + at, sizeof(key));
        AppendIntegerField(message, 3, key);
      }
      for (const std::string& key : keys.strings) AppendBytesField(message, 4, key);
      std::string values;
      AppendElements(value.elements, values);
      AppendBytesField(message, 5, values);
      break;
    }
  }
  return message;
}

}  // namespace

base::Result<FileValue> ParseValue(std::span<const std::byte> message, ValueKind kind) {
  return Parse(message, kind, /*depth=*/0);
}

std::string SerializeValue(const FileValue& value, ValueKind declared) {
  if (declared != ValueKind::kOptional || value.kind == FileValue::Kind::kNothing) {
    return SerializePlain(value);
  }
  std::string message;
  AppendElements({value}, message);
  return message;
}

base::Result<FileValue> ReadValueFile(const std::filesystem::path& path, ValueKind kind) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<std::byte> content, ReadFile(path));
  base::Result<FileValue> value = ParseValue(content, kind);
  if (!value.ok()) {
    return std::move(value).status().Context(
        fmt::format("while reading '{}' as a value of ONNX", path.string()));
  }
  return value;
}

}  // namespace onnxifi::onnx_file
