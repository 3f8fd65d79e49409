// SPDX-License-Identifier: Apache-2.0
//
// SVMRegressor, SVMClassifier: against plain loops in float64 for each kernel, with as many classes
// as one likes; probabilities against the condition that defines them.

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
using Rows = std::vector<std::vector<double>>;

constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt64,
                                  ElementType::kInt32};
const char* const kKernels[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};

base::Result<std::vector<Tensor>> RunModel(const std::string& op_type, const Attributes& attributes,
                                           NodeInput x) {
  const std::vector<bool> wanted(op_type == "SVMRegressor" ? 1 : 2, true);
  return RunOperator({op_type, 1, attributes, {std::move(x)}, wanted, "ai.onnx.ml"});
}

Floats RandomFloats(std::mt19937& random, int64_t count) {
  Floats numbers;
  for (int64_t k = 0; k < count; ++k) numbers.push_back(static_cast<float>(random() % 33) / 16 - 1);
  return numbers;
}

// Whole numbers in [-2, 2], so that all types hold them.
std::vector<double> RandomRows(std::mt19937& random, int64_t count) {
  std::vector<double> numbers;
  for (int64_t k = 0; k < count; ++k) numbers.push_back(static_cast<double>(random() % 5) - 2);
  return numbers;
}

// Support vectors and what belongs to them, by the definitions of the kernels.
struct Machine {
  static constexpr size_t kFeatures = 3;
  static constexpr float kGamma = 0.25F, kCoef0 = 0.5F, kDegree = 3;
  std::string kernel;
  size_t count = 0;
  Floats vectors, coefficients, rho;

  Machine(std::mt19937& random, std::string kernel_type, size_t vector_count, int64_t rows,
          int64_t rho_count)
      : kernel(std::move(kernel_type)),
        count(vector_count),
        vectors(RandomFloats(random, static_cast<int64_t>(count * kFeatures))),
        coefficients(RandomFloats(random, static_cast<int64_t>(count) * rows)),
        rho(RandomFloats(random, rho_count)) {}

  Attributes attributes() const {
    return {{"kernel_type", kernel},
            {"kernel_params", Floats{kGamma, kCoef0, kDegree}},
            {"support_vectors", vectors},
            {"coefficients", coefficients},
            {"rho", rho}};
  }
  double Kernel(const double* row, size_t vector) const {
    double product = 0, distance = 0;
    for (size_t k = 0; k < kFeatures; ++k) {
      const double other = vectors[vector * kFeatures + k];
      product += row[k] * other;
      distance += (row[k] - other) * (row[k] - other);
    }
    if (kernel == "RBF") return std::exp(-kGamma * distance);
    if (kernel == "POLY") return std::pow(kGamma * product + kCoef0, kDegree);
    if (kernel == "SIGMOID") return std::tanh(kGamma * product + kCoef0);
    return product;
  }
};

void ExpectRows(const Tensor& actual, const Rows& expected, int64_t columns) {
  EXPECT_EQ(actual.type(), ElementType::kFloat32);
  ASSERT_EQ(actual.extents(), (Extents{static_cast<int64_t>(expected.size()), columns}));
  for (size_t row = 0; row < expected.size(); ++row) {
    ASSERT_EQ(static_cast<int64_t>(expected[row].size()), columns);
    for (size_t k = 0; k < expected[row].size(); ++k) {
      EXPECT_NEAR(actual.AsDouble(static_cast<int64_t>(row) * columns + static_cast<int64_t>(k)),
                  expected[row][k], 2e-5 * (1 + std::abs(expected[row][k])))
          << "row " << row << " column " << k;
    }
  }
}

TEST(SvmRegressorTest, WeighsItsSupportVectors) {
  std::mt19937 random(19);
  for (const char* kernel : kKernels) {
    for (const ElementType type : kTypes) {
      for (const int64_t rows : {0, 1, 7}) {
        const Machine machine(random, kernel, 5, 1, 1);
        const std::vector<double> x = RandomRows(random, rows * 3);
        Rows expected;
        for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
          double sum = machine.rho[0];
          for (size_t k = 0; k < machine.count; ++k) {
            sum += machine.coefficients[k] * machine.Kernel(&x[row * 3], k);
          }
          expected.push_back({sum});
        }
        Attributes attributes = machine.attributes();
        attributes["n_supports"] = int64_t{5};
        const auto result =
            RunModel("SVMRegressor", attributes,
                     rows == 1 ? Given({1, 3}, x, type) : Symbolic({rows, 3}, x, type));
        ASSERT_TRUE(result.ok()) << result.status().Text();
        ExpectRows((*result)[0], expected, 1);

        // Of a single class: whether a row is inside.
        attributes["one_class"] = int64_t{1};
        const auto inside = RunModel("SVMRegressor", attributes, Symbolic({rows, 3}, x, type));
        ASSERT_TRUE(inside.ok()) << inside.status().Text();
        for (auto& row : expected) row[0] = row[0] > 0 ? 1 : -1;
        ExpectRows((*inside)[0], expected, 1);
      }
    }
  }
}

// Squares of differences, of which a difference of squares would leave nothing.
TEST(SvmRegressorTest, TellsNearVectorsApart) {
  const auto result = RunModel("SVMRegressor",
                               {{"kernel_type", std::string("RBF")},
                                {"kernel_params", Floats{1, 0, 0}},
                                {"support_vectors", Floats{10000, 10001}},
                                {"coefficients", Floats{1, 2}},
                                {"rho", Floats{0}},
                                {"n_supports", int64_t{2}}},
                               Given({1}, {10000.5}));
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_NEAR((*result)[0].AsDouble(0), 3 * std::exp(-0.25), 1e-5);
}

TEST(SvmRegressorTest, IsLinearWithoutSupportVectors) {
  // The kernel does not count then.
  const Attributes model = {{"kernel_type", std::string("RBF")},
                            {"kernel_params", Floats{1, 2, 3}},
                            {"coefficients", Floats{2, -1}},
                            {"rho", Floats{0.5F}}};
  for (const ElementType type : kTypes) {
    const auto result = RunModel("SVMRegressor", model, Symbolic({2, 2}, {1, 2, 3, 4}, type));
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_THAT(Numbers((*result)[0]), ElementsAre(0.5, 2.5));
  }
  Attributes logistic = model;
  logistic["post_transform"] = std::string("LOGISTIC");
  const auto share = RunModel("SVMRegressor", logistic, Given({1, 2}, {3, 4}));
  ASSERT_TRUE(share.ok()) << share.status().Text();
  EXPECT_NEAR((*share)[0].AsDouble(0), 1 / (1 + std::exp(-2.5)), 1e-6);
}

TEST(SvmRegressorTest, RefusesWhatDoesNotFit) {
  const Attributes model = {{"support_vectors", Floats{1, 2, 3, 4}},
                            {"coefficients", Floats{1, 2}},
                            {"rho", Floats{0}},
                            {"n_supports", int64_t{2}}};
  const auto run = [&](const std::string& name, graph::Attribute value) {
    Attributes attributes = model;
    if (!name.empty()) attributes[name] = std::move(value);
    return RunModel("SVMRegressor", attributes, Given({1, 2}, {1, 1})).status().code();
  };
  EXPECT_EQ(run("", {}), Code::kOk);
  EXPECT_EQ(run("n_supports", int64_t{3}), Code::kInvalidModel);
  EXPECT_EQ(run("support_vectors", Floats{1, 2}), Code::kMismatchingShape);
  EXPECT_EQ(run("coefficients", Floats{1}), Code::kInvalidModel);
  EXPECT_EQ(run("rho", Floats{}), Code::kInvalidModel);
  EXPECT_EQ(run("kernel_type", std::string("GAUSS")), Code::kInvalidModel);
  EXPECT_EQ(run("kernel_params", Floats{1, 2}), Code::kInvalidModel);
}

// Classes of `sizes` vectors each; the scores of pairs, in their order, and the votes of classes.
struct Classifier {
  Integers sizes;
  Machine machine;

  Classifier(std::mt19937& random, const std::string& kernel, Integers vectors_per_class)
      : sizes(std::move(vectors_per_class)),
        machine(random, kernel, Total(sizes), Classes(sizes) - 1,
                Classes(sizes) * (Classes(sizes) - 1) / 2) {}

  static size_t Total(const Integers& sizes) {
    size_t sum = 0;
    for (const int64_t size : sizes) sum += static_cast<size_t>(size);
    return sum;
  }
  static int64_t Classes(const Integers& sizes) { return static_cast<int64_t>(sizes.size()); }

  void Score(const double* row, std::vector<double>& scores, std::vector<int>& votes) const {
    std::vector<size_t> starts = {0};
    for (const int64_t size : sizes) starts.push_back(starts.back() + static_cast<size_t>(size));
    votes.assign(sizes.size(), 0);
    scores.clear();
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (size_t j = i + 1; j < sizes.size(); ++j) {
        double sum = machine.rho[scores.size()];
        for (size_t k = starts[i]; k < starts[i + 1]; ++k) {
          sum += machine.coefficients[(j - 1) * machine.count + k] * machine.Kernel(row, k);
        }
        for (size_t k = starts[j]; k < starts[j + 1]; ++k) {
          sum += machine.coefficients[i * machine.count + k] * machine.Kernel(row, k);
        }
        scores.push_back(sum);
        ++votes[sum > 0 ? i : j];
      }
    }
  }
};

TEST(SvmClassifierTest, TakesTheClassThatWinsMostPairs) {
  std::mt19937 random(23);
  for (const char* kernel : kKernels) {
    for (const Integers& sizes : {Integers{2, 3}, Integers{1, 2, 3}, Integers{3, 0, 1, 2}}) {
      for (const int64_t rows : {0, 1, 9}) {
        const ElementType type = kTypes[random() % 4];
        const Classifier model(random, kernel, sizes);
        const std::vector<double> x = RandomRows(random, rows * 3);
        Attributes attributes = model.machine.attributes();
        attributes["vectors_per_class"] = sizes;
        Integers numbers;
        Strings texts;
        for (size_t k = 0; k < sizes.size(); ++k) {
          numbers.push_back(100 - static_cast<int64_t>(k));
          texts.push_back("class " + std::to_string(k));
        }
        const bool has_texts = random() % 2 == 0;
        if (has_texts) {
          attributes["classlabels_strings"] = texts;
        } else {
          attributes["classlabels_ints"] = numbers;
        }
        const auto result =
            RunModel("SVMClassifier", attributes,
                     rows == 1 ? Given({1, 3}, x, type) : Symbolic({rows, 3}, x, type));
        ASSERT_TRUE(result.ok()) << result.status().Text();
        ASSERT_EQ((*result)[0].extents(), (Extents{rows}));
        Rows expected(static_cast<size_t>(rows));
        std::vector<int> votes;
        for (size_t row = 0; row < expected.size(); ++row) {
          model.Score(&x[row * 3], expected[row], votes);
          const auto chosen =
              static_cast<size_t>(std::max_element(votes.begin(), votes.end()) - votes.begin());
          if (has_texts) {
            EXPECT_EQ((*result)[0].strings()[row], texts[chosen]);
          } else {
            EXPECT_EQ((*result)[0].AsInt(static_cast<int64_t>(row)), numbers[chosen]);
          }
          if (sizes.size() == 2) expected[row] = {-expected[row][0], expected[row][0]};
        }
        const auto pairs = static_cast<int64_t>(sizes.size() * (sizes.size() - 1) / 2);
        ExpectRows((*result)[1], expected, sizes.size() == 2 ? 2 : pairs);
      }
    }
  }
}

TEST(SvmClassifierTest, TransformsItsScores) {
  std::mt19937 random(29);
  const Classifier model(random, "RBF", {2, 2, 1});
  const std::vector<double> x = {1, -1, 2};
  std::vector<double> scores;
  std::vector<int> votes;
  model.Score(x.data(), scores, votes);
  double sum = 0;
  for (const double score : scores) sum += std::exp(score);
  Attributes attributes = model.machine.attributes();
  attributes["vectors_per_class"] = model.sizes;
  attributes["classlabels_ints"] = Integers{0, 1, 2};
  for (const std::string transform : {"LOGISTIC", "SOFTMAX"}) {
    attributes["post_transform"] = transform;
    const auto result = RunModel("SVMClassifier", attributes, Given({3}, x));
    ASSERT_TRUE(result.ok()) << result.status().Text();
    std::vector<double> expected;
    for (const double score : scores) {
      expected.push_back(transform == "SOFTMAX" ? std::exp(score) / sum
                                                : 1 / (1 + std::exp(-score)));
    }
    ExpectRows((*result)[1], {expected}, 3);
  }
}

// Probabilities are where the gradients of the form that they minimise are equal: libsvm's
// condition, up to its tolerance.
TEST(SvmClassifierTest, MakesProbabilitiesOfPairs) {
  std::mt19937 random(31);
  // Several rounds at a time, a single one, and a class at a time.
  for (const Integers& sizes : {Integers{2, 3}, Integers{1, 2, 3}, Integers{1, 1, 2, 1, 1},
                                Integers(7, 1), Integers(11, 1), Integers(13, 1)}) {
    const Classifier model(random, "RBF", sizes);
    const size_t count = sizes.size();
    const size_t pairs = count * (count - 1) / 2;
    Floats a, b;
    for (size_t k = 0; k < pairs; ++k) {
      a.push_back(-1 - static_cast<float>(k) / 4);
      b.push_back(static_cast<float>(k % 3) / 8 - 0.1F);
    }
    Attributes attributes = model.machine.attributes();
    attributes["vectors_per_class"] = sizes;
    attributes["prob_a"] = a;
    attributes["prob_b"] = b;
    const std::vector<double> x = RandomRows(random, 6 * 3);
    const auto result = RunModel("SVMClassifier", attributes, Symbolic({6, 3}, x));
    ASSERT_TRUE(result.ok()) << result.status().Text();
    ASSERT_EQ((*result)[1].extents(), (Extents{6, static_cast<int64_t>(count)}));
    for (size_t row = 0; row < 6; ++row) {
      std::vector<double> scores;
      std::vector<int> votes;
      model.Score(&x[row * 3], scores, votes);
      // Without labels the position of the class.
      EXPECT_EQ((*result)[0].AsInt(static_cast<int64_t>(row)),
                std::max_element(votes.begin(), votes.end()) - votes.begin());
      Rows wins(count, std::vector<double>(count, 0));
      size_t pair = 0;
      for (size_t i = 0; i < count; ++i) {
        for (size_t j = i + 1; j < count; ++j, ++pair) {
          wins[i][j] = 1 / (1 + std::exp(scores[pair] * a[pair] + b[pair]));
          wins[j][i] = 1 - wins[i][j];
        }
      }
      std::vector<double> shares;
      double sum = 0;
      for (size_t k = 0; k < count; ++k) {
        shares.push_back((*result)[1].AsDouble(static_cast<int64_t>(row * count + k)));
        sum += shares.back();
      }
      EXPECT_NEAR(sum, 1, 1e-5);
      std::vector<double> gradients;
      double value = 0;
      for (size_t i = 0; i < count; ++i) {
        double gradient = 0;
        for (size_t j = 0; j < count; ++j) {
          if (j == i) continue;
          gradient += wins[j][i] * (wins[j][i] * shares[i] - wins[i][j] * shares[j]);
        }
        gradients.push_back(gradient);
        value += gradient * shares[i];
      }
      for (const double gradient : gradients) {
        EXPECT_NEAR(gradient, value, 0.006 / static_cast<double>(count)) << "row " << row;
      }
    }
  }
}

// One comparison alone decides between two classes.
TEST(SvmClassifierTest, ProbabilityOfTwoIsThatOfTheirPair) {
  const auto result = RunModel("SVMClassifier",
                               {{"coefficients", Floats{1, 0}},
                                {"support_vectors", Floats{1, 1}},
                                {"vectors_per_class", Integers{1, 1}},
                                {"rho", Floats{0}},
                                {"prob_a", Floats{-1}},
                                {"prob_b", Floats{0.5F}},
                                {"classlabels_strings", Strings{"first", "second"}}},
                               Given({4, 1}, {3, -2, 0.5, 40}));
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_EQ((*result)[0].strings(), (Strings{"first", "second", "first", "first"}));
  const double scores[] = {3, -2, 0.5, 40};
  for (int64_t row = 0; row < 4; ++row) {
    const double first = 1 / (1 + std::exp(-scores[row] + 0.5));
    EXPECT_NEAR((*result)[1].AsDouble(2 * row), first, 6e-3) << row;
    EXPECT_NEAR((*result)[1].AsDouble(2 * row + 1), 1 - first, 6e-3) << row;
  }
}

TEST(SvmClassifierTest, IsLinearWithoutSupportVectors) {
  const Attributes model = {{"coefficients", Floats{1, 0, 0, 1, -1, -1}}, {"rho", Floats{0.5F}}};
  Attributes labelled = model;
  labelled["classlabels_strings"] = Strings{"x", "y", "none"};
  const auto three = RunModel("SVMClassifier", labelled, Symbolic({3, 2}, {4, 1, 1, 4, -3, -4}));
  ASSERT_TRUE(three.ok()) << three.status().Text();
  EXPECT_EQ((*three)[0].strings(), (Strings{"x", "y", "none"}));
  EXPECT_THAT(Numbers((*three)[1]), ElementsAre(4.5, 1.5, -4.5, 1.5, 4.5, -4.5, -2.5, -3.5, 7.5));

  const auto none = RunModel("SVMClassifier", {{"coefficients", Floats{1, 1}}, {"rho", Floats{-2}}},
                             Given({2, 2}, {1, 0, 2, 1}));
  ASSERT_TRUE(none.ok()) << none.status().Text();
  EXPECT_THAT(Numbers((*none)[0]), ElementsAre(0, 1));
  EXPECT_THAT(Numbers((*none)[1]), ElementsAre(-1, 1));
}

TEST(SvmClassifierTest, RefusesWhatDoesNotFit) {
  const Attributes model = {{"support_vectors", Floats{1, 2, 3}},
                            {"coefficients", Floats{1, 2, 3}},
                            {"rho", Floats{0}},
                            {"vectors_per_class", Integers{1, 2}},
                            {"classlabels_ints", Integers{0, 1}}};
  const auto run = [&](const std::string& name, graph::Attribute value) {
    Attributes attributes = model;
    if (!name.empty()) attributes[name] = std::move(value);
    return RunModel("SVMClassifier", attributes, Given({1, 1}, {1})).status().code();
  };
  EXPECT_EQ(run("", {}), Code::kOk);
  EXPECT_EQ(run("vectors_per_class", Integers{3}), Code::kInvalidModel);
  EXPECT_EQ(run("vectors_per_class", Integers{4, -1}), Code::kInvalidModel);
  EXPECT_EQ(run("vectors_per_class", Integers{INT64_MAX, INT64_MAX}), Code::kInvalidModel);
  EXPECT_EQ(run("classlabels_ints", Integers{0, 1, 2}), Code::kInvalidModel);
  EXPECT_EQ(run("coefficients", Floats{1, 2}), Code::kInvalidModel);
  EXPECT_EQ(run("rho", Floats{1, 2}), Code::kInvalidModel);
  EXPECT_EQ(run("prob_a", Floats{1, 2}), Code::kInvalidModel);
  EXPECT_EQ(run("prob_a", Floats{1}), Code::kInvalidModel) << "prob_b is missing";
  EXPECT_EQ(run("support_vectors", Floats{1, 2, 3, 4, 5, 6}), Code::kMismatchingShape);
}

}  // namespace
}  // namespace onnxifi::ops
