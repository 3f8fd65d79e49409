// SPDX-License-Identifier: Apache-2.0
//
// LinearRegressor, LinearClassifier: against plain loops in float64, and the definitions of the
// transforms.

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
using Attributes = std::map<std::string, graph::Attribute, std::less<>>;
using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;
using Strings = std::vector<std::string>;

constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt64,
                                  ElementType::kInt32};

base::Result<std::vector<Tensor>> RunModel(const std::string& op_type, const Attributes& attributes,
                                           NodeInput x, std::vector<bool> wanted = {true, true}) {
  if (op_type == "LinearRegressor") wanted = {true};
  return RunOperator({op_type, 1, attributes, {std::move(x)}, std::move(wanted), "ai.onnx.ml"});
}

// The transforms by their definitions.
std::vector<double> Transform(const std::string& name, std::vector<double> row) {
  const auto softmax = [&](bool skips_zeros) {
    double sum = 0;
    for (double& value : row) sum += value = skips_zeros && value == 0 ? 0 : std::exp(value);
    for (double& value : row) value = sum == 0 ? 0.5 : value / sum;
  };
  if (name == "SOFTMAX") softmax(false);
  if (name == "SOFTMAX_ZERO") softmax(true);
  if (name == "LOGISTIC") {
    for (double& value : row) value = 1 / (1 + std::exp(-value));
  }
  return row;
}

struct Model {
  int64_t features = 0, scores = 0;
  Floats coefficients, intercepts;

  Model(std::mt19937& random, int64_t feature_count, int64_t score_count)
      : features(feature_count), scores(score_count) {
    const auto number = [&] { return static_cast<float>(random() % 65) / 16 - 2; };
    for (int64_t k = 0; k < features * scores; ++k) coefficients.push_back(number());
    for (int64_t k = 0; k < scores; ++k) intercepts.push_back(number());
  }
  std::vector<std::vector<double>> Scores(const std::vector<double>& x) const {
    std::vector<std::vector<double>> rows;
    for (size_t at = 0; at < x.size(); at += static_cast<size_t>(features)) {
      std::vector<double>& row = rows.emplace_back();
      for (size_t score = 0; score < static_cast<size_t>(scores); ++score) {
        double sum = intercepts.empty() ? 0 : intercepts[score];
        for (size_t k = 0; k < static_cast<size_t>(features); ++k) {
          sum += x[at + k] * coefficients[score * static_cast<size_t>(features) + k];
        }
        row.push_back(sum);
      }
    }
    return rows;
  }
  Attributes attributes() const {
    Attributes result = {{"coefficients", coefficients}};
    if (!intercepts.empty()) result["intercepts"] = intercepts;
    return result;
  }
};

std::vector<double> RandomRows(std::mt19937& random, int64_t count) {
  std::vector<double> numbers;
  for (int64_t k = 0; k < count; ++k) numbers.push_back(static_cast<double>(random() % 9) - 4);
  return numbers;
}

void ExpectRows(const Tensor& actual, const std::vector<std::vector<double>>& expected,
                int64_t columns) {
  EXPECT_EQ(actual.type(), ElementType::kFloat32);
  ASSERT_EQ(actual.extents(), (Extents{static_cast<int64_t>(expected.size()), columns}));
  for (size_t row = 0; row < expected.size(); ++row) {
    for (size_t k = 0; k < expected[row].size(); ++k) {
      EXPECT_NEAR(actual.AsDouble(static_cast<int64_t>(row) * columns + static_cast<int64_t>(k)),
                  expected[row][k], 1e-5 * (1 + std::abs(expected[row][k])))
          << "row " << row << " column " << k;
    }
  }
}

TEST(LinearRegressorTest, MultipliesAndTransforms) {
  std::mt19937 random(7);
  for (const std::string transform : {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"}) {
    for (const ElementType type : kTypes) {
      for (const int64_t targets : {1, 3}) {
        for (const int64_t rows : {0, 1, 5, 37}) {
          Model model(random, 7, targets);
          if (rows == 5) model.intercepts.clear();
          const std::vector<double> x = RandomRows(random, rows * 7);
          Attributes attributes = model.attributes();
          attributes["targets"] = targets;
          attributes["post_transform"] = transform;
          const auto result =
              RunModel("LinearRegressor", attributes,
                       rows == 1 ? Given({1, 7}, x, type) : Symbolic({rows, 7}, x, type));
          ASSERT_TRUE(result.ok()) << result.status().Text();
          std::vector<std::vector<double>> expected = model.Scores(x);
          for (auto& row : expected) row = Transform(transform, row);
          ExpectRows((*result)[0], expected, targets);
        }
      }
    }
  }
}

TEST(LinearRegressorTest, TakesOneAxisAsARow) {
  const auto result =
      RunModel("LinearRegressor", {{"coefficients", Floats{2, 3}}}, Given({2}, {1, 10}));
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_EQ((*result)[0].extents(), (Extents{1, 1}));
  EXPECT_THAT(Numbers((*result)[0]), ElementsAre(32));
}

// Against the distribution of which it is the inverse; the approximation is good for three digits.
TEST(LinearRegressorTest, InvertsTheNormalDistribution) {
  const std::vector<double> shares = {0.01, 0.3, 0.5, 0.975};
  const auto result = RunModel(
      "LinearRegressor", {{"coefficients", Floats{1}}, {"post_transform", std::string("PROBIT")}},
      Given({4, 1}, shares, ElementType::kFloat64));
  ASSERT_TRUE(result.ok()) << result.status().Text();
  const std::vector<double> quantiles = Numbers((*result)[0]);
  for (size_t k = 0; k < shares.size(); ++k) {
    EXPECT_NEAR(0.5 * (1 + std::erf(quantiles[k] / std::sqrt(2.0))), shares[k], 2e-3);
  }
}

TEST(LinearRegressorTest, KeepsLargeScoresFinite) {
  const Attributes model = {{"coefficients", Floats{1, -1}}, {"targets", int64_t{2}}};
  for (const std::string transform : {"LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"}) {
    Attributes attributes = model;
    attributes["post_transform"] = transform;
    const auto result = RunModel("LinearRegressor", attributes, Given({2, 1}, {1000, -1000}));
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_THAT(Numbers((*result)[0]), ElementsAre(1, 0, 0, 1)) << transform;
  }
}

TEST(LinearRegressorTest, TakesTheTypesThatOnnxLists) {
  for (const ElementType type : {ElementType::kFloat16, ElementType::kUint8, ElementType::kInt16,
                                 ElementType::kFloat8E5M2}) {
    const auto result =
        RunModel("LinearRegressor", {{"coefficients", Floats{2}}}, Given({1, 1}, {1}, type));
    ASSERT_FALSE(result.ok()) << Name(type);
    EXPECT_EQ(result.status().code(), Code::kUnsupportedDatatype);
  }
}

TEST(LinearRegressorTest, RefusesWhatDoesNotFit) {
  const auto expect = [](const Attributes& attributes, Code code) {
    const auto result = RunModel("LinearRegressor", attributes, Given({1, 2}, {1, 2}));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), code) << result.status().Text();
  };
  expect({}, Code::kInvalidModel);
  expect({{"coefficients", Floats{1, 2, 3}}, {"targets", int64_t{2}}}, Code::kInvalidModel);
  expect({{"coefficients", Floats{1, 2}}, {"targets", int64_t{0}}}, Code::kInvalidModel);
  expect({{"coefficients", Floats{1, 2, 3}}}, Code::kMismatchingShape);
  expect({{"coefficients", Floats{1, 2}}, {"intercepts", Floats{1, 2}}}, Code::kInvalidModel);
  expect({{"coefficients", Floats{1, 2}}, {"post_transform", std::string("softmax")}},
         Code::kInvalidModel);
}

TEST(LinearClassifierTest, ChoosesTheLargestScore) {
  std::mt19937 random(11);
  const Integers numbers = {30, -7, 5};
  const Strings texts = {"thirty", "", "five"};
  for (const std::string transform : {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"}) {
    for (const ElementType type : kTypes) {
      for (const int64_t rows : {0, 1, 6, 41}) {
        const bool has_texts = rows % 2 == 0;
        Model model(random, 5, 3);
        const std::vector<double> x = RandomRows(random, rows * 5);
        Attributes attributes = model.attributes();
        attributes["post_transform"] = transform;
        attributes["multi_class"] = static_cast<int64_t>(rows % 2);
        if (has_texts) {
          attributes["classlabels_strings"] = texts;
        } else {
          attributes["classlabels_ints"] = numbers;
        }
        const auto result =
            RunModel("LinearClassifier", attributes,
                     rows == 1 ? Given({1, 5}, x, type) : Symbolic({rows, 5}, x, type));
        ASSERT_TRUE(result.ok()) << result.status().Text();
        std::vector<std::vector<double>> expected = model.Scores(x);
        ASSERT_EQ((*result)[0].extents(), (Extents{rows}));
        for (size_t row = 0; row < expected.size(); ++row) {
          const auto& scores = expected[row];
          const auto chosen =
              static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
          if (has_texts) {
            EXPECT_EQ((*result)[0].strings()[row], texts[chosen]);
          } else {
            EXPECT_EQ((*result)[0].AsInt(static_cast<int64_t>(row)), numbers[chosen]);
          }
        }
        for (auto& row : expected) row = Transform(transform, row);
        ExpectRows((*result)[1], expected, 3);
      }
    }
  }
}

TEST(LinearClassifierTest, TakesTheFirstOfEqualScores) {
  const auto result = RunModel("LinearClassifier",
                               {{"coefficients", Floats{1, 1, 1}},
                                {"intercepts", Floats{0, 2, 2}},
                                {"classlabels_ints", Integers{10, 20, 30}}},
                               Given({1}, {4}));
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_THAT(Numbers((*result)[0]), ElementsAre(20));
  EXPECT_EQ((*result)[1].extents(), (Extents{1, 3}));
}

// One row of coefficients scores the second of two classes.
TEST(LinearClassifierTest, MakesTwoScoresOfOne) {
  const std::vector<double> x = {-2, 0, 3};
  for (const std::string transform : {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"}) {
    for (const bool has_texts : {false, true}) {
      Attributes attributes = {
          {"coefficients", Floats{0.5F}}, {"intercepts", Floats{0}}, {"post_transform", transform}};
      if (has_texts) {
        attributes["classlabels_strings"] = Strings{"no", "yes"};
      } else {
        attributes["classlabels_ints"] = Integers{4, 9};
      }
      const auto result = RunModel("LinearClassifier", attributes, Symbolic({3, 1}, x));
      ASSERT_TRUE(result.ok()) << result.status().Text();
      if (has_texts) {
        EXPECT_EQ((*result)[0].strings(), (Strings{"no", "no", "yes"}));
      } else {
        EXPECT_THAT(Numbers((*result)[0]), ElementsAre(4, 4, 9));
      }
      std::vector<std::vector<double>> expected;
      for (const double number : x) {
        expected.push_back(Transform(transform, {-number / 2, number / 2}));
      }
      ExpectRows((*result)[1], expected, 2);
    }
  }
}

TEST(LinearClassifierTest, LabelsOneClassOrNone) {
  const Attributes model = {{"coefficients", Floats{1}}, {"intercepts", Floats{0}}};
  const auto run = [&](const std::string& name, graph::Attribute labels) {
    Attributes attributes = model;
    if (!name.empty()) attributes[name] = std::move(labels);
    return RunModel("LinearClassifier", attributes, Given({2, 1}, {-1, 1}));
  };
  const auto none = run("", {});
  ASSERT_TRUE(none.ok()) << none.status().Text();
  EXPECT_THAT(Numbers((*none)[0]), ElementsAre(0, 1));
  EXPECT_EQ((*none)[1].extents(), (Extents{2, 1}));
  const auto number = run("classlabels_ints", Integers{8});
  ASSERT_TRUE(number.ok()) << number.status().Text();
  EXPECT_THAT(Numbers((*number)[0]), ElementsAre(0, 8));
  const auto text = run("classlabels_strings", Strings{"it"});
  ASSERT_TRUE(text.ok()) << text.status().Text();
  EXPECT_EQ((*text)[0].strings(), (Strings{"", "it"}));
}

TEST(LinearClassifierTest, FindsTheRowsOfCoefficients) {
  // By the features, and where those are symbols by the labels; more labels than scores are unused.
  const Attributes attributes = {{"coefficients", Floats{1, 0, 0, 1}},
                                 {"classlabels_ints", Integers{5, 6}}};
  for (const bool is_symbolic : {false, true}) {
    const auto result =
        RunModel("LinearClassifier", attributes,
                 is_symbolic ? Symbolic({2, 2}, {1, 2, 4, 3}) : Given({2, 2}, {1, 2, 4, 3}));
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_THAT(Numbers((*result)[0]), ElementsAre(6, 5));
    EXPECT_THAT(Numbers((*result)[1]), ElementsAre(1, 2, 4, 3));
  }
  const auto more = RunModel("LinearClassifier",
                             {{"coefficients", Floats{1, 0, 0, 1}},
                              {"intercepts", Floats{0, 0}},
                              {"classlabels_ints", Integers{5, 6, 7}}},
                             Symbolic({1, 2}, {1, 2}));
  ASSERT_TRUE(more.ok()) << more.status().Text();
  EXPECT_THAT(Numbers((*more)[0]), ElementsAre(6));
}

TEST(LinearClassifierTest, RefusesWhatDoesNotFit) {
  const auto expect = [](const Attributes& attributes, Code code) {
    const auto result = RunModel("LinearClassifier", attributes, Given({1, 2}, {1, 2}));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), code) << result.status().Text();
  };
  expect({{"classlabels_ints", Integers{1, 2}}}, Code::kInvalidModel);
  expect({{"coefficients", Floats{1, 2, 3, 4}},
          {"intercepts", Floats{0, 0}},
          {"classlabels_ints", Integers{1}}},
         Code::kInvalidModel);
  expect({{"coefficients", Floats{1, 2}},
          {"intercepts", Floats{0}},
          {"classlabels_ints", Integers{1, 2, 3}}},
         Code::kInvalidModel);
  expect({{"coefficients", Floats{1, 2, 3}}, {"intercepts", Floats{0, 0}}}, Code::kInvalidModel);
  expect({{"coefficients", Floats{1, 2, 3, 4, 5, 6}}, {"intercepts", Floats{0, 0}}},
         Code::kMismatchingShape);
}

}  // namespace
}  // namespace onnxifi::ops
