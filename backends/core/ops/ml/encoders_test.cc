// SPDX-License-Identifier: Apache-2.0
//
// OneHotEncoder, FeatureVectorizer: against plain loops, for every type and attribute.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using base::Code;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Attributes = std::map<std::string, graph::Attribute, std::less<>>;
using Integers = std::vector<int64_t>;
using Strings = std::vector<std::string>;

constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt64,
                                  ElementType::kInt32};

base::Result<std::vector<Tensor>> RunModel(const std::string& op_type, const Attributes& attributes,
                                           std::vector<NodeInput> inputs) {
  return RunOperator({op_type, 1, attributes, std::move(inputs), {true}, "ai.onnx.ml"});
}

NodeInput Texts(Extents extents, Strings texts, NodeInput::Kind kind = NodeInput::Kind::kGiven) {
  return {Tensor::FromStrings(std::move(extents), std::move(texts)), kind};
}

TEST(OneHotEncoderTest, HasAOneAtTheCategory) {
  for (const ElementType type : kTypes) {
    for (const Extents& shape : std::vector<Extents>{{5}, {5, 1}, {1, 5}}) {
      const auto result = RunModel("OneHotEncoder", {{"cats_int64s", Integers{4, -2, 9}}},
                                   {Symbolic(shape, {9, 4, 5, -2, 9}, type)});
      ASSERT_TRUE(result.ok()) << result.status().Text();
      Extents extents = shape;
      extents.push_back(3);
      EXPECT_EQ((*result)[0].type(), ElementType::kFloat32);
      EXPECT_EQ((*result)[0].extents(), extents);
      EXPECT_THAT(Numbers((*result)[0]), ElementsAre(0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1));
    }
  }
}

TEST(OneHotEncoderTest, ComparesStrings) {
  for (const NodeInput::Kind kind : {NodeInput::Kind::kGiven, NodeInput::Kind::kSymbolic}) {
    const auto result = RunModel("OneHotEncoder", {{"cats_strings", Strings{"b", "", "abc"}}},
                                 {Texts({2, 2}, {"abc", "ab", "", "b"}, kind)});
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_EQ((*result)[0].extents(), (Extents{2, 2, 3}));
    EXPECT_THAT(Numbers((*result)[0]), ElementsAre(0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0));
  }
}

TEST(OneHotEncoderTest, MakesNumbersIntegers) {
  const auto result = RunModel("OneHotEncoder", {{"cats_int64s", Integers{1, -1}}},
                               {Given({4}, {1.75, -1.75, 0.5, 2})});
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_THAT(Numbers((*result)[0]), ElementsAre(1, 0, 0, 1, 0, 0, 0, 0));
}

TEST(OneHotEncoderTest, CountsTheLastOfEqualCategories) {
  const auto result =
      RunModel("OneHotEncoder", {{"cats_int64s", Integers{1, 2, 1}}}, {Given({2}, {1, 2})});
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_THAT(Numbers((*result)[0]), ElementsAre(0, 0, 1, 0, 1, 0));
}

TEST(OneHotEncoderTest, RefusesUnknownCategoriesIfTold) {
  const Attributes attributes = {{"cats_int64s", Integers{1, 2, 1}}, {"zeros", int64_t{0}}};
  const auto known = RunModel("OneHotEncoder", attributes, {Given({3}, {1, 2, 1})});
  ASSERT_TRUE(known.ok()) << known.status().Text();
  EXPECT_THAT(Numbers((*known)[0]), ElementsAre(0, 0, 1, 0, 1, 0, 0, 0, 1));
  for (const bool is_symbolic : {false, true}) {
    const auto unknown = RunModel("OneHotEncoder", attributes,
                                  {is_symbolic ? Symbolic({3}, {1, 3, 1}) : Given({3}, {1, 3, 1})});
    ASSERT_FALSE(unknown.ok());
    EXPECT_THAT(unknown.status().Text(), HasSubstr("unknown category"));
  }
  const auto empty = RunModel("OneHotEncoder", attributes, {Symbolic({0, 2}, {})});
  ASSERT_TRUE(empty.ok()) << empty.status().Text();
  EXPECT_EQ((*empty)[0].extents(), (Extents{0, 2, 3}));
  const auto text =
      RunModel("OneHotEncoder", {{"cats_strings", Strings{"a"}}, {"zeros", int64_t{0}}},
               {Texts({2}, {"a", "b"})});
  EXPECT_FALSE(text.ok());
}

TEST(OneHotEncoderTest, NeedsCategoriesOfItsInput) {
  const auto number =
      RunModel("OneHotEncoder", {{"cats_strings", Strings{"1"}}}, {Given({1}, {1})});
  ASSERT_FALSE(number.ok());
  EXPECT_EQ(number.status().code(), Code::kInvalidModel);
  const auto text = RunModel("OneHotEncoder", {{"cats_int64s", Integers{1}}}, {Texts({1}, {"1"})});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().code(), Code::kInvalidModel);
}

TEST(FeatureVectorizerTest, PutsFeaturesBehindEachOther) {
  for (const ElementType type : kTypes) {
    for (const bool is_symbolic : {false, true}) {
      const auto input = [&](Extents extents, const std::vector<double>& numbers) {
        return is_symbolic ? Symbolic(std::move(extents), numbers, type)
                           : Given(std::move(extents), numbers, type);
      };
      // The first is cut off, the second filled up, the third as it is, the fourth left out.
      const auto result =
          RunModel("FeatureVectorizer", {{"inputdimensions", Integers{2, 3, 4, 0}}},
                   {input({2, 3}, {1, 2, 3, 4, 5, 6}), input({2, 1}, {7, 8}),
                    input({2, 2, 2}, {11, 12, 13, 14, 15, 16, 17, 18}), input({2, 1}, {19, 20})});
      ASSERT_TRUE(result.ok()) << result.status().Text();
      EXPECT_EQ((*result)[0].type(), ElementType::kFloat32);
      EXPECT_EQ((*result)[0].extents(), (Extents{2, 9}));
      EXPECT_THAT(Numbers((*result)[0]), ElementsAre(1, 2, 7, 0, 0, 11, 12, 13, 14,  //
                                                     4, 5, 8, 0, 0, 15, 16, 17, 18));
    }
  }
}

TEST(FeatureVectorizerTest, TakesOneAxisAsARow) {
  const auto result = RunModel("FeatureVectorizer", {{"inputdimensions", Integers{2, 3}}},
                               {Given({2}, {1, 2}), Given({2}, {3, 4})});
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_EQ((*result)[0].extents(), (Extents{1, 5}));
  EXPECT_THAT(Numbers((*result)[0]), ElementsAre(1, 2, 3, 4, 0));
}

TEST(FeatureVectorizerTest, TakesAllFeaturesIfNothingIsSaid) {
  const auto result =
      RunModel("FeatureVectorizer", {}, {Symbolic({2, 1}, {1, 2}), Symbolic({2, 2}, {3, 4, 5, 6})});
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_EQ((*result)[0].extents(), (Extents{2, 3}));
  EXPECT_THAT(Numbers((*result)[0]), ElementsAre(1, 3, 4, 2, 5, 6));
}

TEST(FeatureVectorizerTest, RefusesWhatDoesNotFit) {
  const auto rows = RunModel("FeatureVectorizer", {{"inputdimensions", Integers{1, 1}}},
                             {Symbolic({2, 1}, {1, 2}), Symbolic({3, 1}, {3, 4, 5})});
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(rows.status().code(), Code::kMismatchingShape);
  const auto widths =
      RunModel("FeatureVectorizer", {{"inputdimensions", Integers{1, 1}}}, {Given({1, 1}, {1})});
  ASSERT_FALSE(widths.ok());
  EXPECT_EQ(widths.status().code(), Code::kInvalidModel);
  const auto negative =
      RunModel("FeatureVectorizer", {{"inputdimensions", Integers{-1}}}, {Given({1, 1}, {1})});
  ASSERT_FALSE(negative.ok());
  EXPECT_EQ(negative.status().code(), Code::kInvalidModel);
}

}  // namespace
}  // namespace onnxifi::ops
