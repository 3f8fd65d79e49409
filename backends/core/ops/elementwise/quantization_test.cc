// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear in every granularity, against the formulas in float64.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

struct Granularity {
  std::string name;
  tensor::Extents scale_extents;
  int64_t axis, block_size;
  int version;
  int (*granule)(int row, int column);  // of an element of [2, 5]
};

class QuantizationTest : public ::testing::TestWithParam<Granularity> {};

TEST_P(QuantizationTest, RoundsSaturatesAndComesBack) {
  const Granularity& with = GetParam();
  std::vector<double> x, scales, zero_points;
  for (int k = 0; k < 10; ++k) x.push_back((k - 4) * 37.5);
  const auto granules = static_cast<int>(tensor::ElementCount(with.scale_extents));
  for (int g = 0; g < granules; ++g) {
    scales.push_back(0.5 + 0.25 * g);
    zero_points.push_back(g - 1);
  }
  const std::map<std::string, graph::Attribute, std::less<>> attributes = {
      {"axis", with.axis}, {"block_size", with.block_size}};
  for (auto make : {Given, Symbolic}) {
    auto quantized = RunOperator({"QuantizeLinear",
                                  with.version,
                                  attributes,
                                  {make({2, 5}, x, ElementType::kFloat32),
                                   make(with.scale_extents, scales, ElementType::kFloat32),
                                   make(with.scale_extents, zero_points, ElementType::kInt8)}});
    ASSERT_TRUE(quantized.ok()) << quantized.status().Text();
    std::vector<double> expected, expected_back;
    for (int k = 0; k < 10; ++k) {
      const int g = with.granule(k / 5, k % 5);
      const double rounded = std::nearbyint(x[k] / scales[g]) + zero_points[g];
      expected.push_back(std::clamp(rounded, -128.0, 127.0));
      expected_back.push_back((expected.back() - zero_points[g]) * scales[g]);
    }
    EXPECT_THAT(Numbers((*quantized)[0]), ElementsAreArray(expected));

    auto back = RunOperator({"DequantizeLinear",
                             with.version,
                             attributes,
                             {make({2, 5}, expected, ElementType::kInt8),
                              make(with.scale_extents, scales, ElementType::kFloat32),
                              make(with.scale_extents, zero_points, ElementType::kInt8)}});
    ASSERT_TRUE(back.ok()) << back.status().Text();
    EXPECT_THAT(Numbers((*back)[0]), ElementsAreArray(expected_back));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Granularities, QuantizationTest,
    ::testing::Values(
        Granularity{"Tensor10", {}, 1, 0, 10, [](int, int) { return 0; }},
        Granularity{"TensorOfOne13", {1}, 1, 0, 13, [](int, int) { return 0; }},
        Granularity{"LastAxis13", {5}, 1, 0, 13, [](int, int column) { return column; }},
        Granularity{"FirstAxis19", {2}, -2, 0, 19, [](int row, int) { return row; }},
        Granularity{
            "Blocks21", {2, 3}, 1, 2, 21, [](int row, int column) { return row * 3 + column / 2; }},
        Granularity{"Blocks25", {1, 5}, 0, 2, 25, [](int, int column) { return column; }}),
    [](const auto& info) { return info.param.name; });

TEST(QuantizationRefusalTest, NamesTheLengthsThatDiffer) {
  auto out = RunOperator({"QuantizeLinear",
                          13,
                          {},
                          {Given({2, 5}, std::vector<double>(10)), Given({4}, {1, 1, 1, 1})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
  EXPECT_THAT(std::string(out.status().sentence()),
              HasSubstr("Length 4 of input 1 is neither 1 nor the extent 5"));
}

TEST(QuantizationRefusalTest, NamesTheOutputTypeThatIsNotQuantized) {
  auto out = RunOperator(
      {"QuantizeLinear", 21, {{"output_dtype", int64_t{1}}}, {Given({1}, {1}), Given({}, {1})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kUnsupportedDatatype);
  EXPECT_THAT(std::string(out.status().sentence()), HasSubstr("type float is not"));
}

TEST(QuantizationPrecisionTest, DividesInThePrecisionOfTheScaleUnlessToldOtherwise) {
  // As float16, 4101.9 is 4100, a tie when divided by 8; as float32 it lies above the tie.
  const std::map<std::string, graph::Attribute, std::less<>> in_scale = {
      {"output_dtype", int64_t{4}}};
  const std::map<std::string, graph::Attribute, std::less<>> in_float32 = {
      {"output_dtype", int64_t{4}}, {"precision", int64_t{1}}};
  for (const auto& [attributes, expected] :
       {std::pair(in_scale, 512), std::pair(in_float32, 513)}) {
    auto out = RunOperator({"QuantizeLinear",
                            23,
                            attributes,
                            {Given({1}, {4101.9}), Given({}, {8}, ElementType::kFloat16)}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_EQ(Numbers((*out)[0])[0], expected);
  }
}

// 69.25 / 1.0107421875 = 68.514 is the tie 68.5 as float16, and 61 / 1.0078125 = 60.527 is the tie
// 60.5 as bfloat16. Before attribute precision no version asks for that rounding.
TEST(QuantizationPrecisionTest, RoundsQuotientsOfSixteenBitFloatsOnceBeforeVersion23) {
  for (const auto& [type, x, scale] : {std::tuple(ElementType::kFloat16, 69.25, 1.0107421875),
                                       std::tuple(ElementType::kBfloat16, 61.0, 1.0078125)}) {
    for (const auto& [version, rounds_once] :
         {std::pair(19, true), std::pair(21, true), std::pair(23, false)}) {
      auto out = RunOperator(
          {"QuantizeLinear",
           version,
           {},
           {Given({1}, {x}, type), Given({}, {scale}, type), Given({}, {0}, ElementType::kInt8)}});
      ASSERT_TRUE(out.ok()) << out.status().Text();
      const double once = std::nearbyint(x / scale);
      EXPECT_EQ(Numbers((*out)[0])[0], rounds_once ? once : once - 1);
    }
  }
}

// What versions 19 and later ask for int32: a scale of int32, too, by which real numbers divide.
TEST(QuantizeLinearTest, TakesIntegersByAnIntegerScale) {
  const auto out =
      RunOperator({"QuantizeLinear",
                   19,
                   {},
                   {Given({5}, {10, -7, 7, 1000, 16777217}, ElementType::kInt32),
                    Given({}, {2}, ElementType::kInt32), Given({}, {9}, ElementType::kInt8)}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAreArray({14, 5, 13, 127, 127}));
}

}  // namespace
}  // namespace onnxifi::ops
