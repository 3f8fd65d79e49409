// SPDX-License-Identifier: Apache-2.0
//
// A difference is found in every part of a value, and the largest of those allowed is told.

#include "client/comparison/value_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace onnxifi::comparison {
namespace {

using onnx_file::DenseTensor;
using onnx_file::ElementType;
using onnx_file::FileValue;
using testing::HasSubstr;

DenseTensor Floats(const std::vector<float>& numbers) {
  DenseTensor tensor;
  tensor.type = ElementType::kFloat32;
  tensor.extents = {static_cast<int64_t>(numbers.size())};
  tensor.bytes.resize(numbers.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), numbers.data(), tensor.bytes.size());
  return tensor;
}

FileValue Tensor(const std::vector<float>& numbers) {
  FileValue value;
  value.kind = FileValue::Kind::kTensor;
  value.tensor = Floats(numbers);
  return value;
}

// One map per row, of two classes, as ZipMap makes them.
FileValue Rows(const std::vector<std::vector<float>>& rows, std::string last_key = "b") {
  FileValue sequence;
  sequence.kind = FileValue::Kind::kSequence;
  for (const std::vector<float>& row : rows) {
    FileValue& map = sequence.elements.emplace_back();
    map.kind = FileValue::Kind::kMap;
    map.tensor.type = ElementType::kString;
    map.tensor.extents = {2};
    map.tensor.strings = {"a", last_key};
    for (const float number : row) map.elements.push_back(Tensor({number}));
  }
  return sequence;
}

Comparison Compare(const FileValue& actual, const FileValue& expected) {
  return CompareValue(actual, expected, "Output 'p'", Tolerance());
}

TEST(ValueComparisonTest, EqualValuesAreSimilar) {
  const FileValue rows = Rows({{0.25F, 0.75F}, {1, 0}});
  const Comparison comparison = Compare(rows, rows);
  EXPECT_TRUE(comparison.is_similar);
  EXPECT_EQ(comparison.worst_ratio, 0);
  EXPECT_EQ(comparison.sentence, "");
}

TEST(ValueComparisonTest, TellsTheLargestDifferenceThatIsAllowed) {
  const Comparison comparison = Compare(Rows({{1, 1.0005F}, {1.0002F, 1}}), Rows({{1, 1}, {1, 1}}));
  EXPECT_TRUE(comparison.is_similar);
  EXPECT_NEAR(comparison.worst_ratio, 0.5, 0.01);
}

TEST(ValueComparisonTest, FindsADifferenceInEveryPart) {
  const FileValue rows = Rows({{1, 2}, {3, 4}});
  EXPECT_EQ(Compare(Tensor({1}), rows).worst_ratio, std::numeric_limits<double>::infinity());
  EXPECT_EQ(Compare(Rows({{1, 2}}), rows).worst_ratio, std::numeric_limits<double>::infinity());
  EXPECT_THAT(Compare(Tensor({1}), rows).sentence,
              HasSubstr("Output 'p' is a tensor instead of a sequence."));
  EXPECT_THAT(Compare(Rows({{1, 2}}), rows).sentence,
              HasSubstr("Output 'p' has 1 elements instead of 2."));
  EXPECT_THAT(Compare(Rows({{1, 2}, {3, 4}}, "c"), rows).sentence,
              HasSubstr("Element 0 of Output 'p': "));
  EXPECT_THAT(Compare(Rows({{1, 2}, {3, 5}}), rows).sentence,
              HasSubstr("Element 1 of Element 1 of Output 'p': "));
}

}  // namespace
}  // namespace onnxifi::comparison
