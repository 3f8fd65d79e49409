// SPDX-License-Identifier: Apache-2.0
//
// TensorProto messages written byte by byte here, so that the reader is checked against the format
// and not against the project's own writer.

#include "client/onnx_file/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>

namespace onnxifi::onnx_file {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

template <typename T>
std::vector<T> ValuesOf(const DenseTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// Key bytes are field number << 3 | wire type: 0x08 dims, 0x10 data_type, 0x22 packed float_data,
// 0x28 int32_data, 0x2A packed int32_data, 0x32 string_data, 0x3A packed int64_data, 0x42 name,
// 0x4A raw_data, 0x52 packed double_data, 0x5A packed uint64_data, 0x70 data_location.

TEST(TensorFileTest, ReadsRawData) {
  const auto tensor = ParseTensor(
      Bytes({0x08, 2, 0x10, 1, 0x42, 1, 'x', 0x4A, 8, 0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().Text();
  EXPECT_EQ(tensor->name, "x");
  EXPECT_EQ(tensor->type, ElementType::kFloat32);
  EXPECT_THAT(tensor->extents, ElementsAre(2));
  EXPECT_THAT(ValuesOf<float>(*tensor), ElementsAre(1.0f, -2.0f));
}

TEST(TensorFileTest, ReadsPackedDims) {
  const auto tensor = ParseTensor(Bytes({0x0A, 2, 1, 2, 0x10, 2, 0x4A, 2, 7, 8}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().Text();
  EXPECT_THAT(tensor->extents, ElementsAre(1, 2));
}

TEST(TensorFileTest, ReadsFloatData) {
  const auto tensor = ParseTensor(Bytes({0x08, 1, 0x10, 1, 0x22, 4, 0, 0, 0x80, 0x3F}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().Text();
  EXPECT_THAT(ValuesOf<float>(*tensor), ElementsAre(1.0f));
}

TEST(TensorFileTest, ReadsFloatDataThatIsNotPacked) {
  const auto tensor = ParseTensor(Bytes({0x08, 1, 0x10, 1, 0x25, 0, 0, 0x80, 0x3F}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().Text();
  EXPECT_THAT(ValuesOf<float>(*tensor), ElementsAre(1.0f));
}

TEST(TensorFileTest, ReadsDoubleData) {
  const auto tensor =
      ParseTensor(Bytes({0x08, 1, 0x10, 11, 0x52, 8, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().Text();
  EXPECT_THAT(ValuesOf<double>(*tensor), ElementsAre(1.0));
}

TEST(TensorFileTest, ReadsNegativeInt64Data) {
  const auto tensor = ParseTensor(Bytes(
      {0x08, 1, 0x10, 7, 0x3A, 10, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().Text();
  EXPECT_THAT(ValuesOf<int64_t>(*tensor), ElementsAre(-2));
}

TEST(TensorFileTest, ReadsUint32FromUint64Data) {
  const auto tensor =
      ParseTensor(Bytes({0x08, 1, 0x10, 12, 0x5A, 5, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().Text();
  EXPECT_THAT(ValuesOf<uint32_t>(*tensor), ElementsAre(0xFFFFFFFFu));
}

TEST(TensorFileTest, ReadsFloat16BoolAndInt8FromInt32Data) {
  const auto half = ParseTensor(Bytes({0x08, 1, 0x10, 10, 0x28, 0x80, 0x78}));  // 0x3C00 = 1
  ASSERT_TRUE(half.ok()) << half.status().Text();
  EXPECT_THAT(ValuesOf<uint16_t>(*half), ElementsAre(0x3C00));
  const auto flags = ParseTensor(Bytes({0x08, 2, 0x10, 9, 0x2A, 2, 1, 0}));
  ASSERT_TRUE(flags.ok()) << flags.status().Text();
  EXPECT_THAT(ValuesOf<uint8_t>(*flags), ElementsAre(1, 0));
  const auto small = ParseTensor(
      Bytes({0x08, 1, 0x10, 3, 0x28, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}));
  ASSERT_TRUE(small.ok()) << small.status().Text();
  EXPECT_THAT(ValuesOf<int8_t>(*small), ElementsAre(-1));
}

TEST(TensorFileTest, FourBitElementsShareABytePerInt32) {
  const auto tensor = ParseTensor(Bytes({0x08, 3, 0x10, 21, 0x2A, 3, 0xA5, 0x01, 0x07}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().Text();
  EXPECT_THAT(ValuesOf<uint8_t>(*tensor), ElementsAre(0xA5, 0x07));
}

TEST(TensorFileTest, SixBitElementsHaveAnInt32Each) {
  const auto tensor =
      ParseTensor(Bytes({0x08, 5, 0x10, 27, 0x2A, 5, 0x01, 0x3F, 0x15, 0x20, 0x03}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().Text();
  EXPECT_THAT(ValuesOf<uint8_t>(*tensor), ElementsAre(0xC1, 0x5F, 0x81, 0x03));
}

TEST(TensorFileTest, ReadsStrings) {
  const auto tensor = ParseTensor(Bytes({0x08, 2, 0x10, 8, 0x32, 1, 'a', 0x32, 0}));
  ASSERT_TRUE(tensor.ok()) << tensor.status().Text();
  EXPECT_THAT(tensor->strings, ElementsAre("a", ""));
}

TEST(TensorFileTest, AScalarHasOneElementAndAnEmptyTensorNone) {
  const auto scalar = ParseTensor(Bytes({0x10, 2, 0x4A, 1, 9}));
  ASSERT_TRUE(scalar.ok()) << scalar.status().Text();
  EXPECT_EQ(scalar->element_count(), 1);
  const auto empty = ParseTensor(Bytes({0x08, 0, 0x08, 3, 0x10, 1}));
  ASSERT_TRUE(empty.ok()) << empty.status().Text();
  EXPECT_EQ(empty->element_count(), 0);
}

TEST(TensorFileTest, RefusesTheWrongAmountOfData) {
  const auto tensor = ParseTensor(Bytes({0x08, 2, 0x10, 1, 0x4A, 4, 0, 0, 0, 0}));
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.status().code(), base::Code::kInvalidModel);
  EXPECT_THAT(tensor.status().Text(), HasSubstr("4 bytes of data instead of 8"));
}

TEST(TensorFileTest, RefusesExternalData) {
  EXPECT_FALSE(ParseTensor(Bytes({0x08, 1, 0x10, 2, 0x70, 1})).ok());
}

TEST(TensorFileTest, RefusesShapesThatOverflow) {
  // Four extents of 2^31.
  const auto tensor =
      ParseTensor(Bytes({0x0A, 20,   0x80, 0x80, 0x80, 0x80, 0x08, 0x80, 0x80, 0x80, 0x80, 0x08,
                         0x80, 0x80, 0x80, 0x80, 0x08, 0x80, 0x80, 0x80, 0x80, 0x08, 0x10, 1}));
  ASSERT_FALSE(tensor.ok());
  EXPECT_THAT(tensor.status().Text(), HasSubstr("impossible shape"));
}

TEST(TensorFileTest, EveryTruncationIsAnErrorOrAShorterTensor) {
  const std::vector<std::byte> whole =
      Bytes({0x08, 2, 0x10, 1, 0x42, 1, 'x', 0x4A, 8, 0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0});
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ParseTensor(std::span(whole).first(size)).ok()) << size;
  }
}

TEST(TensorFileTest, WhatIsWrittenIsReadBack) {
  DenseTensor tensor;
  tensor.name = "value";
  tensor.type = ElementType::kInt64;
  tensor.extents = {2, 1};
  tensor.bytes = Bytes({1, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF});
  const std::string message = SerializeTensor(tensor);
  const auto read = ParseTensor(std::as_bytes(std::span(message)));
  ASSERT_TRUE(read.ok()) << read.status().Text();
  EXPECT_EQ(read->name, tensor.name);
  EXPECT_EQ(read->extents, tensor.extents);
  EXPECT_THAT(ValuesOf<int64_t>(*read), ElementsAre(1, -1));
}

}  // namespace
}  // namespace onnxifi::onnx_file
