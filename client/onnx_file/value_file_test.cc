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

}  // namespace
}  // namespace onnxifi::onnx_file
