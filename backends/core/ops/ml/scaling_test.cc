// SPDX-License-Identifier: Apache-2.0
//
// Scaler, Normalizer, Imputer: against plain loops in float64, for every type, shape and attribute.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
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
using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;

constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt64,
                                  ElementType::kInt32};
const double kNan = std::nan("");

base::Result<std::vector<Tensor>> RunModel(const std::string& op_type, const Attributes& attributes,
                                           NodeInput x) {
  return RunOperator({op_type, 1, attributes, {std::move(x)}, {true}, "ai.onnx.ml"});
}

// Whole numbers in [-9, 9], so that all types hold them.
std::vector<double> RandomNumbers(std::mt19937& random, int64_t count) {
  std::vector<double> numbers;
  for (int64_t k = 0; k < count; ++k) {
    numbers.push_back(static_cast<double>(random() % 19) - 9);
  }
  return numbers;
}

void ExpectNear(const Tensor& actual, const Extents& extents, const std::vector<double>& expected) {
  EXPECT_EQ(actual.type(), ElementType::kFloat32);
  ASSERT_EQ(actual.extents(), extents);
  for (size_t k = 0; k < expected.size(); ++k) {
    EXPECT_NEAR(actual.AsDouble(static_cast<int64_t>(k)), expected[k],
                2e-6 * (1 + std::abs(expected[k])))
        << "element " << k;
  }
}

TEST(ScalerTest, MovesAndScalesFeatures) {
  std::mt19937 random(3);
  const std::vector<Extents> shapes = {{5, 3}, {1, 3}, {3}, {0, 3}, {2, 4, 3}, {301, 3}};
  for (const ElementType type : kTypes) {
    for (const Extents& shape : shapes) {
      const std::vector<double> x = RandomNumbers(random, tensor::ElementCount(shape));
      for (const bool is_shared : {false, true}) {
        const Floats offset = is_shared ? Floats{0.5F} : Floats{1.5F, -2, 0};
        const Floats scale = is_shared ? Floats{-3} : Floats{2, 0.25F, -7};
        std::vector<double> expected;
        for (size_t k = 0; k < x.size(); ++k) {
          const size_t at = is_shared ? 0 : k % 3;
          expected.push_back((x[k] - offset[at]) * scale[at]);
        }
        const auto result = RunModel("Scaler", {{"offset", offset}, {"scale", scale}},
                                     is_shared ? Symbolic(shape, x, type) : Given(shape, x, type));
        ASSERT_TRUE(result.ok()) << result.status().Text();
        ExpectNear((*result)[0], shape, expected);
      }
    }
  }
}

TEST(ScalerTest, LeavesOutWhatIsMissing) {
  const auto scaled = RunModel("Scaler", {{"scale", Floats{2, 3}}}, Given({1, 2}, {5, 7}));
  ASSERT_TRUE(scaled.ok()) << scaled.status().Text();
  EXPECT_THAT(Numbers((*scaled)[0]), ElementsAre(10, 21));
  const auto moved =
      RunModel("Scaler", {{"offset", Floats{2}}, {"scale", Floats{1, 3}}}, Given({1, 2}, {5, 7}));
  ASSERT_TRUE(moved.ok()) << moved.status().Text();
  EXPECT_THAT(Numbers((*moved)[0]), ElementsAre(3, 15));
}

TEST(ScalerTest, LosesNothingOfLargeIntegers) {
  const double large = 16777219;  // that float32 lacks
  for (const ElementType type : {ElementType::kInt32, ElementType::kInt64, ElementType::kFloat64}) {
    const auto result = RunModel("Scaler", {{"offset", Floats{16777216}}, {"scale", Floats{1}}},
                                 Given({1, 1}, {large}, type));
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_THAT(Numbers((*result)[0]), ElementsAre(3)) << Name(type);
  }
}

TEST(ScalerTest, RefusesListsThatDoNotFit) {
  const Attributes three = {{"offset", Floats{1, 2, 3}}, {"scale", Floats{1}}};
  const auto given = RunModel("Scaler", three, Given({1, 2}, {1, 2}));
  ASSERT_FALSE(given.ok());
  EXPECT_EQ(given.status().code(), Code::kMismatchingShape) << given.status().Text();
  const auto symbolic = RunModel("Scaler", three, Symbolic({1, 2}, {1, 2}));
  ASSERT_FALSE(symbolic.ok());
  EXPECT_EQ(symbolic.status().code(), Code::kMismatchingShape) << symbolic.status().Text();
}

double Divisor(const std::string& norm, const double* row, int64_t count) {
  double largest = -INFINITY, sum = 0, squares = 0;
  for (int64_t k = 0; k < count; ++k) {
    largest = std::max(largest, row[k]);
    sum += std::abs(row[k]);
    squares += row[k] * row[k];
  }
  return norm == "MAX" ? largest : norm == "L1" ? sum : std::sqrt(squares);
}

TEST(NormalizerTest, DividesEachRow) {
  std::mt19937 random(5);
  const std::vector<Extents> shapes = {{4, 5}, {1, 1}, {7}, {0, 5}, {3, 200}};
  for (const std::string norm : {"MAX", "L1", "L2"}) {
    for (const ElementType type : kTypes) {
      for (const Extents& shape : shapes) {
        std::vector<double> x = RandomNumbers(random, tensor::ElementCount(shape));
        const int64_t width = shape.back();
        // A row of zeros, and one that is negative throughout.
        if (shape.size() == 2 && shape[0] > 2) {
          for (int64_t k = 0; k < width; ++k) {
            x[static_cast<size_t>(k)] = 0;
            x[static_cast<size_t>(width + k)] = -1 - static_cast<double>(k % 7);
          }
        }
        std::vector<double> expected(x.size());
        for (size_t row = 0; row < x.size(); row += static_cast<size_t>(width)) {
          const double divisor = Divisor(norm, &x[row], width);
          for (size_t k = row; k < row + static_cast<size_t>(width); ++k) {
            expected[k] = divisor == 0 ? x[k] : x[k] / divisor;
          }
        }
        const auto result = RunModel("Normalizer", {{"norm", norm}}, Symbolic(shape, x, type));
        ASSERT_TRUE(result.ok()) << result.status().Text();
        ExpectNear((*result)[0], shape, expected);
      }
    }
  }
}

TEST(NormalizerTest, DividesByTheLargestIfNothingIsSaid) {
  const auto result = RunModel("Normalizer", {}, Given({2, 2}, {-4, -2, 0, -3}));
  ASSERT_TRUE(result.ok()) << result.status().Text();
  // The largest of the second row is 0: it stays.
  EXPECT_THAT(Numbers((*result)[0]), ElementsAre(2, 1, 0, -3));
}

TEST(NormalizerTest, HasNoOverflowBetween) {
  const double half = 0.5, root = std::sqrt(0.5);
  for (const double size : {1e30, 1e-30, 3e38}) {
    for (const std::string norm : {"L1", "L2"}) {
      const auto result = RunModel("Normalizer", {{"norm", norm}}, Given({1, 2}, {size, -size}));
      ASSERT_TRUE(result.ok()) << result.status().Text();
      const double share = norm == "L1" ? half : root;
      ExpectNear((*result)[0], {1, 2}, {share, -share});
    }
  }
}

TEST(NormalizerTest, RefusesWhatItDoesNotKnow) {
  const auto norm = RunModel("Normalizer", {{"norm", std::string("L3")}}, Given({1, 1}, {1}));
  ASSERT_FALSE(norm.ok());
  EXPECT_EQ(norm.status().code(), Code::kInvalidModel);
  EXPECT_THAT(norm.status().Text(), HasSubstr("'L3'"));
  const auto axes = RunModel("Normalizer", {}, Given({1, 1, 1}, {1}));
  ASSERT_FALSE(axes.ok());
  EXPECT_EQ(axes.status().code(), Code::kInvalidModel);
}

TEST(ImputerTest, ReplacesANumber) {
  const std::vector<double> x = {7, 1, 7, 2, 7, 3, 7, 7, 7};
  const std::vector<double> by_feature = {10, 1, 12, 2, 11, 3, 10, 11, 12};
  const std::vector<double> shared = {10, 1, 10, 2, 10, 3, 10, 10, 10};
  for (const ElementType type : kTypes) {
    const bool is_float = tensor::IsFloat(type);
    for (const bool is_shared : {false, true}) {
      Attributes attributes;
      if (is_float) {
        attributes["replaced_value_float"] = 7.0F;
        attributes["imputed_value_floats"] = is_shared ? Floats{10} : Floats{10, 11, 12};
      } else {
        attributes["replaced_value_int64"] = int64_t{7};
        attributes["imputed_value_int64s"] = is_shared ? Integers{10} : Integers{10, 11, 12};
      }
      const auto result = RunModel("Imputer", attributes,
                                   is_shared ? Symbolic({3, 3}, x, type) : Given({3, 3}, x, type));
      ASSERT_TRUE(result.ok()) << result.status().Text();
      EXPECT_EQ((*result)[0].type(), type);
      EXPECT_EQ(Numbers((*result)[0]), is_shared ? shared : by_feature) << Name(type);
    }
  }
}

TEST(ImputerTest, ReplacesNan) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64}) {
    const auto result = RunModel("Imputer",
                                 {{"replaced_value_float", static_cast<float>(kNan)},
                                  {"imputed_value_floats", Floats{0.5F, -0.25F}}},
                                 Given({2, 2}, {kNan, 0, INFINITY, kNan}, type));
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_THAT(Numbers((*result)[0]), ElementsAre(0.5, 0, INFINITY, -0.25));
    const auto others =
        RunModel("Imputer", {{"replaced_value_float", 3.0F}, {"imputed_value_floats", Floats{1}}},
                 Given({2}, {kNan, 3}, type));
    ASSERT_TRUE(others.ok()) << others.status().Text();
    EXPECT_TRUE(std::isnan((*others)[0].AsDouble(0)));
    EXPECT_EQ((*others)[0].AsDouble(1), 1);
  }
}

// ONNX infers no extents of ai.onnx.ml, so converters declare what they like, also further on: of
// one-versus-one classifiers skl2onnx says [N] for labels that are [N, 1].
TEST(ScalerTest, RanksThatAreDeclaredBehindItDoNotCount) {
  graph::Graph graph;
  const auto add = [&graph](const char* name, const std::vector<int64_t>& extents) {
    graph::Type type{.kind = graph::Type::Kind::kTensor, .element = ElementType::kFloat32};
    type.extents.emplace();
    for (const int64_t extent : extents) type.extents->push_back({extent, ""});
    return graph.AddValue({.name = name, .type = std::move(type)});
  };
  const graph::ValueId x = add("x", {2, 1});
  const graph::ValueId scaled = add("scaled", {-1});
  const graph::ValueId y = add("y", {-1});
  graph.inputs = {x};
  graph.outputs = {y};
  graph::Node scaler{.op_type = "Scaler", .domain = "ai.onnx.ml", .since_version = 1};
  scaler.attributes = {{"offset", Floats{1}}, {"scale", Floats{2}}};
  scaler.inputs = {x};
  scaler.outputs = {scaled};
  graph::Node negation{.op_type = "Neg", .since_version = 13};
  negation.inputs = {scaled};
  negation.outputs = {y};
  graph.nodes = {scaler, negation};
  const auto out = RunGraph(graph, {MakeTensor(ElementType::kFloat32, {2, 1}, {3, 0})});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), (Extents{2, 1}));
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(-4, 2));
}

TEST(ImputerTest, ReplacesZeroIfNothingIsSaid) {
  const auto floats =
      RunModel("Imputer", {{"imputed_value_floats", Floats{4}}}, Given({3}, {0, -0.0, 1}));
  ASSERT_TRUE(floats.ok()) << floats.status().Text();
  EXPECT_THAT(Numbers((*floats)[0]), ElementsAre(4, 4, 1));
  const auto integers = RunModel("Imputer", {{"imputed_value_int64s", Integers{4}}},
                                 Given({0, 1}, {}, ElementType::kInt64));
  ASSERT_TRUE(integers.ok()) << integers.status().Text();
  EXPECT_EQ((*integers)[0].extents(), (Extents{0, 1}));
}

TEST(ImputerTest, TakesTheListOfTheOtherKindIfItIsAlone) {
  const auto integers =
      RunModel("Imputer", {{"replaced_value_float", 1.5F}, {"imputed_value_floats", Floats{4}}},
               Given({2}, {1, 2}, ElementType::kInt64));
  ASSERT_TRUE(integers.ok()) << integers.status().Text();
  EXPECT_THAT(Numbers((*integers)[0]), ElementsAre(1, 2)) << "no integer is 1.5";
  const auto floats = RunModel(
      "Imputer", {{"replaced_value_int64", int64_t{2}}, {"imputed_value_int64s", Integers{4}}},
      Given({2}, {1.5, 2}));
  ASSERT_TRUE(floats.ok()) << floats.status().Text();
  EXPECT_THAT(Numbers((*floats)[0]), ElementsAre(1.5, 4));
}

TEST(ImputerTest, RefusesListsThatDoNotFit) {
  const auto none = RunModel("Imputer", {}, Given({1, 2}, {1, 2}));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kInvalidModel);
  const auto three =
      RunModel("Imputer", {{"imputed_value_floats", Floats{1, 2, 3}}}, Symbolic({1, 2}, {1, 2}));
  ASSERT_FALSE(three.ok());
  EXPECT_EQ(three.status().code(), Code::kMismatchingShape);
}

}  // namespace
}  // namespace onnxifi::ops
