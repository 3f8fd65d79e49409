// SPDX-License-Identifier: Apache-2.0
//
// Both rules at and around their limits.

#include "client/comparison/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace onnxifi::comparison {
namespace {

using onnx_file::DenseTensor;
using onnx_file::ElementType;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
DenseTensor Make(ElementType type, const std::vector<T>& values) {
  DenseTensor tensor;
  tensor.type = type;
  tensor.extents = {static_cast<int64_t>(values.size())};
  tensor.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

DenseTensor Floats(const std::vector<float>& values) { return Make(ElementType::kFloat32, values); }

TEST(ComparisonTest, TheOnnxRuleAddsAbsoluteAndRelative) {
  const Tolerance tolerance{.absolute = 0.5, .relative = 0.25};
  EXPECT_TRUE(Compare(Floats({9.5f}), Floats({8.0f}), tolerance).is_similar);  // 0.5 + 2 allowed
  EXPECT_TRUE(Compare(Floats({10.5f}), Floats({8.0f}), tolerance).is_similar);
  EXPECT_FALSE(Compare(Floats({10.75f}), Floats({8.0f}), tolerance).is_similar);
  EXPECT_FALSE(Compare(Floats({5.25f}), Floats({8.0f}), tolerance).is_similar);
}

TEST(ComparisonTest, TheRelativePartIsOfTheExpectedValue) {
  const Tolerance tolerance{.absolute = 0, .relative = 0.5};
  EXPECT_FALSE(Compare(Floats({1.9f}), Floats({1.0f}), tolerance).is_similar);
  EXPECT_TRUE(Compare(Floats({1.0f}), Floats({1.9f}), tolerance).is_similar);
}

TEST(ComparisonTest, WorstRatioIsThatOfTheWorstElement) {
  const Tolerance tolerance{.absolute = 1.0, .relative = 0};
  const Comparison comparison = Compare(Floats({1.25f, 2.5f, 3}), Floats({1, 2, 3}), tolerance);
  EXPECT_TRUE(comparison.is_similar);
  EXPECT_DOUBLE_EQ(comparison.worst_ratio, 0.5);
}

TEST(ComparisonTest, TheModelRuleMeasuresAgainstTheRootMeanSquare) {
  const Tolerance tolerance{.rms_factor = 0.1};
  const DenseTensor expected = Floats({0, 3, 0, -3});  // rms = sqrt(4.5) = 2.1213
  EXPECT_TRUE(Compare(Floats({0.21f, 3, 0, -3}), expected, tolerance).is_similar);
  EXPECT_FALSE(Compare(Floats({0.22f, 3, 0, -3}), expected, tolerance).is_similar);
  EXPECT_TRUE(Compare(Floats({0, 3.5f, 0, -3}), expected, tolerance).is_similar);
  EXPECT_FALSE(Compare(Floats({0, 3.52f, 0, -3}), expected, tolerance).is_similar);
}

TEST(ComparisonTest, NanEqualsNanAndInfinityItself) {
  const Tolerance tolerance;
  EXPECT_TRUE(Compare(Floats({kNan, kInfinity}), Floats({kNan, kInfinity}), tolerance).is_similar);
  EXPECT_FALSE(Compare(Floats({1}), Floats({kNan}), tolerance).is_similar);
  EXPECT_FALSE(Compare(Floats({kNan}), Floats({1}), tolerance).is_similar);
  EXPECT_FALSE(Compare(Floats({-kInfinity}), Floats({kInfinity}), tolerance).is_similar);
  EXPECT_FALSE(Compare(Floats({3e38f}), Floats({kInfinity}), tolerance).is_similar);
  EXPECT_FALSE(Compare(Floats({kInfinity}), Floats({3e38f}), {.rms_factor = 1}).is_similar);
}

TEST(ComparisonTest, IntegersAndBoolsAreExact) {
  const Tolerance loose{.absolute = 10, .relative = 1};
  EXPECT_TRUE(Compare(Make<int32_t>(ElementType::kInt32, {5}),
                      Make<int32_t>(ElementType::kInt32, {5}), loose)
                  .is_similar);
  const Comparison comparison = Compare(Make<int32_t>(ElementType::kInt32, {5, -6}),
                                        Make<int32_t>(ElementType::kInt32, {5, -7}), loose);
  EXPECT_FALSE(comparison.is_similar);
  EXPECT_THAT(comparison.sentence, HasSubstr("Element 1 is -6 instead of -7"));
  EXPECT_FALSE(
      Compare(Make<uint8_t>(ElementType::kBool, {2}), Make<uint8_t>(ElementType::kBool, {1}), loose)
          .is_similar);
}

TEST(ComparisonTest, Float32ArithmeticDoesNotPassForFloat64) {
  const Tolerance tolerance;
  const DenseTensor third = Make<double>(ElementType::kFloat64, {1.0 / 3});
  EXPECT_FALSE(
      Compare(Make<double>(ElementType::kFloat64, {1.0f / 3}), third, tolerance).is_similar);
  EXPECT_TRUE(
      Compare(Make<double>(ElementType::kFloat64, {1.0 / 3 + 1e-11}), third, tolerance).is_similar);
}

TEST(ComparisonTest, DevicesDifferByWhatTheirTypeAllows) {
  const Tolerance tolerance{.between_devices = true};
  const auto is_similar = [&](double difference) {
    return Compare(Make<double>(ElementType::kFloat64, {1 + difference, 1}),
                   Make<double>(ElementType::kFloat64, {1, 1}), tolerance)
        .is_similar;
  };
  EXPECT_TRUE(is_similar(1e-12));
  EXPECT_FALSE(is_similar(1e-11));
  EXPECT_TRUE(Compare(Floats({1.00002f, 1}), Floats({1, 1}), tolerance).is_similar);
  EXPECT_FALSE(Compare(Floats({1.0001f, 1}), Floats({1, 1}), tolerance).is_similar);
}

TEST(ComparisonTest, Bfloat16HasAtLeastTwoUnitsInTheLastPlace) {
  const Tolerance tolerance{.absolute = 0, .relative = 1e-3};
  const DenseTensor one = Make<uint16_t>(ElementType::kBfloat16, {0x3F80});
  EXPECT_TRUE(Compare(Make<uint16_t>(ElementType::kBfloat16, {0x3F82}), one, tolerance).is_similar);
  EXPECT_FALSE(
      Compare(Make<uint16_t>(ElementType::kBfloat16, {0x3F83}), one, tolerance).is_similar);
}

TEST(ComparisonTest, ComplexNumbersDifferByTheirDistance) {
  const Tolerance tolerance{.absolute = 5, .relative = 0};
  const DenseTensor zero = Make<float>(ElementType::kComplex64, {0, 0});
  DenseTensor expected = zero;
  expected.extents = {1};
  DenseTensor actual = Make<float>(ElementType::kComplex64, {3, 4});
  actual.extents = {1};
  EXPECT_TRUE(Compare(actual, expected, tolerance).is_similar);
  actual = Make<float>(ElementType::kComplex64, {3, 4.5f});
  actual.extents = {1};
  EXPECT_FALSE(Compare(actual, expected, tolerance).is_similar);
  EXPECT_FALSE(Compare(actual, expected, {.rms_factor = 1}).is_similar);
}

TEST(ComparisonTest, TypeAndShapeMustBeEqual) {
  const Tolerance tolerance{.absolute = 100};
  DenseTensor reshaped = Floats({1, 2});
  reshaped.extents = {2, 1};
  EXPECT_THAT(Compare(reshaped, Floats({1, 2}), tolerance).sentence,
              HasSubstr("The shape is [2, 1] instead of [2]"));
  EXPECT_THAT(
      Compare(Make<int32_t>(ElementType::kInt32, {1, 2}), Floats({1, 2}), tolerance).sentence,
      HasSubstr("The type is int32 instead of float"));
}

TEST(ComparisonTest, EmptyTensorsAreSimilar) {
  EXPECT_TRUE(Compare(Floats({}), Floats({}), Tolerance()).is_similar);
}

TEST(ComparisonTest, KnowsConstantTensors) {
  EXPECT_TRUE(IsConstant(Floats({2, 2, 2})));
  EXPECT_FALSE(IsConstant(Floats({2, 2, 2.5f})));
  EXPECT_FALSE(IsConstant(Floats({2})));
  EXPECT_FALSE(IsConstant(Floats({})));
}

}  // namespace
}  // namespace onnxifi::comparison
