// SPDX-License-Identifier: Apache-2.0

#include "client/onnx_file/value_file.h"

#include <gtest/gtest.h>

#include "client/onnx_file/wire_writer.h"

namespace onnxifi::onnx_file {
namespace {

std::string Floats(const std::vector<float>& values) {
  DenseTensor tensor;
  tensor.type = ElementType::kFloat32;
  tensor.extents = {static_cast<int64_t>(values.size())};
  const auto bytes = std::as_bytes(std::span(values));
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return SerializeTensor(tensor);
}

base::Result<FileValue> Parse(const std::string& message, ValueKind kind) {
  return ParseValue(std::as_bytes(std::span(message)), kind);
}

TEST(ValueFile, ReadsSequencesOfSequences) {
  std::string inner;
  AppendBytesField(inner, 3, Floats({1, 2}));
  AppendBytesField(inner, 3, Floats({}));
  std::string outer;
  AppendBytesField(outer, 1, "name");
  AppendIntegerField(outer, 2, 2);
  AppendBytesField(outer, 5, inner);
  const auto value = Parse(outer, ValueKind::kSequence);
  ASSERT_TRUE(value.ok()) << value.status().Text();
  ASSERT_EQ(value->elements.size(), 1U);
  ASSERT_EQ(value->elements[0].elements.size(), 2U);
  EXPECT_EQ(value->elements[0].elements[0].tensor.extents, (std::vector<int64_t>{2}));
  EXPECT_EQ(value->elements[0].elements[1].tensor.element_count(), 0);
}

TEST(ValueFile, ReadsOptionalsAsTheirElementOrNothing) {
  std::string empty;
  AppendIntegerField(empty, 2, 0);
  EXPECT_EQ(Parse(empty, ValueKind::kOptional)->kind, FileValue::Kind::kNothing);
  std::string full;
  AppendBytesField(full, 3, Floats({3}));
  EXPECT_EQ(Parse(full, ValueKind::kOptional)->kind, FileValue::Kind::kTensor);
}

TEST(ValueFile, ReadsMapsOfEitherKey) {
  std::string values;
  AppendBytesField(values, 3, Floats({5}));
  AppendBytesField(values, 3, Floats({6}));
  std::string by_number;
  AppendIntegerField(by_number, 2, 7);
  AppendIntegerField(by_number, 3, -4);
  AppendIntegerField(by_number, 3, 9);
  AppendBytesField(by_number, 5, values);
  const auto numbers = Parse(by_number, ValueKind::kMap);
  ASSERT_TRUE(numbers.ok()) << numbers.status().Text();
  EXPECT_EQ(numbers->elements.size(), 2U);
  EXPECT_EQ(numbers->tensor.bytes.size(), 16U);
  std::string by_text;
  AppendIntegerField(by_text, 2, 8);
  AppendBytesField(by_text, 4, "a");
  AppendBytesField(by_text, 5, values);
  EXPECT_FALSE(Parse(by_text, ValueKind::kMap).ok()) << "one key for two values";
  AppendBytesField(by_text, 4, "b");
  EXPECT_EQ(Parse(by_text, ValueKind::kMap)->tensor.strings, (std::vector<std::string>{"a", "b"}));
}

TEST(ValueFile, RefusesWhatIsNestedWithoutEnd) {
  std::string message;
  for (int level = 0; level < 20; ++level) {
    std::string outer;
    AppendBytesField(outer, 5, message);
    message = std::move(outer);
  }
  EXPECT_FALSE(Parse(message, ValueKind::kSequence).ok());
}

FileValue Map(ElementType type) {
  FileValue map;
  map.kind = FileValue::Kind::kMap;
  map.tensor.type = type;
  map.tensor.extents = {2};
  const int64_t keys[] = {-4, 9};
  const auto bytes = std::as_bytes(std::span(keys));
  if (type == ElementType::kString) {
    map.tensor.strings = {"", "key"};
  } else {
    map.tensor.bytes.assign(bytes.begin(), bytes.end());
  }
  for (const float number : {0.25F, 7.0F}) {
    const auto value = Parse(Floats({number}), ValueKind::kTensor);
    map.elements.push_back(*value);
  }
  return map;
}

TEST(ValueFile, ReadsWhatItWrites) {
  FileValue rows;
  rows.kind = FileValue::Kind::kSequence;
  rows.elements = {Map(ElementType::kInt64), Map(ElementType::kString)};
  FileValue outer;
  outer.kind = FileValue::Kind::kSequence;
  outer.elements = {rows, FileValue{.name = {}, .kind = FileValue::Kind::kSequence}};
  const auto read = Parse(SerializeValue(outer, ValueKind::kSequence), ValueKind::kSequence);
  ASSERT_TRUE(read.ok()) << read.status().Text();
  ASSERT_EQ(read->elements.size(), 2U);
  EXPECT_EQ(read->elements[1].kind, FileValue::Kind::kSequence);
  ASSERT_EQ(read->elements[0].elements.size(), 2U);
  for (size_t k = 0; k < 2; ++k) {
    const FileValue& map = read->elements[0].elements[k];
    EXPECT_EQ(map.kind, FileValue::Kind::kMap);
    EXPECT_EQ(map.tensor.type, rows.elements[k].tensor.type);
    EXPECT_EQ(map.tensor.bytes, rows.elements[k].tensor.bytes);
    EXPECT_EQ(map.tensor.strings, rows.elements[k].tensor.strings);
    ASSERT_EQ(map.elements.size(), 2U);
    EXPECT_EQ(map.elements[1].tensor.bytes, rows.elements[k].elements[1].tensor.bytes);
  }
  for (const FileValue& optional : {FileValue(), Map(ElementType::kString), rows}) {
    const auto again = Parse(SerializeValue(optional, ValueKind::kOptional), ValueKind::kOptional);
    ASSERT_TRUE(again.ok()) << again.status().Text();
    EXPECT_EQ(again->kind, optional.kind);
    EXPECT_EQ(again->elements.size(), optional.elements.size());
  }
}

}  // namespace
}  // namespace onnxifi::onnx_file
