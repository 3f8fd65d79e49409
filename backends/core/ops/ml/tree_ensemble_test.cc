// SPDX-License-Identifier: Apache-2.0
//
// TreeEnsemble: branches, aggregates and transforms against plain loops and the definitions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
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

base::Result<std::vector<Tensor>> RunTrees(const Attributes& attributes, NodeInput x) {
  return RunOperator({"TreeEnsemble", 5, attributes, {std::move(x)}, {true}, "ai.onnx.ml"});
}

// The branches of random trees as functions of their own.
TEST(TreeEnsembleTest, ReachesTheLeavesOfEveryTree) {
  std::mt19937 random(17);
  for (int round = 0; round < 40; ++round) {
    // Two trees of three nodes each: 0 -> (1, 2), 3 -> (4, 5); leaves 2 per lower node.
    const int64_t aggregate = static_cast<int64_t>(random() % 4);
    std::vector<int64_t> features(6), modes(6), missing(6);
    std::vector<double> splits(6), weights(8), members;
    std::vector<int64_t> targets(8);
    std::vector<std::vector<double>> member_lists(6);
    for (size_t k = 0; k < 6; ++k) {
      features[k] = static_cast<int64_t>(random() % 2);
      modes[k] = static_cast<int64_t>(random() % 7);
      missing[k] = static_cast<int64_t>(random() % 2);
      splits[k] = static_cast<double>(random() % 3);
      if (modes[k] == 6) {
        member_lists[k] = {static_cast<double>(random() % 3), 7};
        members.insert(members.end(), member_lists[k].begin(), member_lists[k].end());
        members.push_back(std::nan(""));
      }
    }
    for (size_t k = 0; k < 8; ++k) {
      weights[k] = static_cast<double>(random() % 16) / 4 - 1;
      targets[k] = static_cast<int64_t>(random() % 2);
    }
    const auto list = [](const std::vector<double>& numbers, ElementType type) {
      return MakeTensor(type, {static_cast<int64_t>(numbers.size())}, numbers);
    };
    Attributes attributes = {
        {"nodes_featureids", features},
        {"nodes_splits", list(splits, ElementType::kFloat32)},
        {"nodes_modes", list({modes.begin(), modes.end()}, ElementType::kUint8)},
        {"nodes_truenodeids", std::vector<int64_t>{1, 0, 2, 4, 4, 6}},
        {"nodes_falsenodeids", std::vector<int64_t>{2, 1, 3, 5, 5, 7}},
        {"nodes_trueleafs", std::vector<int64_t>{0, 1, 1, 0, 1, 1}},
        {"nodes_falseleafs", std::vector<int64_t>{0, 1, 1, 0, 1, 1}},
        {"nodes_missing_value_tracks_true", missing},
        {"leaf_targetids", targets},
        {"leaf_weights", list(weights, ElementType::kFloat32)},
        {"tree_roots", std::vector<int64_t>{0, 3}},
        {"n_targets", int64_t{2}},
        {"aggregate_function", aggregate}};
    if (!members.empty()) {
      attributes.emplace("membership_values", list(members, ElementType::kFloat32));
    }
    std::vector<double> x(10);
    for (double& value : x) {
      value = random() % 5 == 0 ? std::nan("") : static_cast<double>(random() % 4);
    }
    const auto result =
        RunTrees(attributes, round % 2 == 0 ? Symbolic({5, 2}, x) : Given({5, 2}, x));
    ASSERT_TRUE(result.ok()) << result.status().Text();
    ASSERT_EQ((*result)[0].extents(), (Extents{5, 2}));
    const auto goes_true = [&](size_t node, const double* row) {
      const double value = row[features[node]];
      if (std::isnan(value) && missing[node] != 0) return true;
      const double split = splits[node];
      const bool is_member =
          value == 7 || (!member_lists[node].empty() && value == member_lists[node][0]);
      const bool answers[] = {value <= split, value<split, value >= split, value> split,
                              value == split, value != split, is_member};
      return answers[modes[node]];
    };
    for (size_t row = 0; row < 5; ++row) {
      const float unreached = aggregate == 2   ? std::numeric_limits<float>::max()
                              : aggregate == 3 ? std::numeric_limits<float>::lowest()
                                               : 0;
      std::vector<double> expected(2, unreached);
      for (const size_t root : {size_t{0}, size_t{3}}) {
        const double* features_of_row = &x[2 * row];
        const size_t lower = goes_true(root, features_of_row) ? root + 1 : root + 2;
        const size_t first_leaf = root == 0 ? 2 * (lower - 1) : 4 + 2 * (lower - 4);
        const size_t leaf = goes_true(lower, features_of_row) ? first_leaf : first_leaf + 1;
        double& target = expected[static_cast<size_t>(targets[leaf])];
        if (aggregate == 0) target += weights[leaf] / 2;
        if (aggregate == 1) target += weights[leaf];
        if (aggregate == 2) target = std::min(target, weights[leaf]);
        if (aggregate == 3) target = std::max(target, weights[leaf]);
      }
      for (size_t k = 0; k < 2; ++k) {
        EXPECT_EQ((*result)[0].AsDouble(static_cast<int64_t>(2 * row + k)), expected[k])
            << "round " << round << " row " << row << " target " << k;
      }
    }
  }
}

// Sets of any size, of which some have members that float16 lacks, and what is near the members.
// A chain: node k compares with k, and leads to leaf k or on. Devices may hold tables for each
// step.
TEST(TreeEnsembleTest, DeepTreesTakeFewSteps) {
  constexpr int64_t kDepth = 700;
  std::vector<double> splits(kDepth), modes(kDepth, 0), weights(kDepth + 1);
  std::vector<int64_t> features(kDepth, 0), on_true(kDepth), on_false(kDepth);
  std::vector<int64_t> true_leafs(kDepth, 1), false_leafs(kDepth, 0), targets(kDepth + 1, 0);
  std::iota(splits.begin(), splits.end(), 0);
  std::iota(weights.begin(), weights.end(), 0);
  std::iota(on_true.begin(), on_true.end(), 0);
  std::iota(on_false.begin(), on_false.end(), 1);
  false_leafs.back() = 1;
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = ElementType::kFloat32;
  type.extents = {{4, ""}, {1, ""}};
  const auto list = [](const std::vector<double>& numbers, ElementType element) {
    return MakeTensor(element, {static_cast<int64_t>(numbers.size())}, numbers);
  };
  graph::Graph graph;
  const graph::ValueId x = graph.AddValue({.name = "x", .type = type});
  const graph::ValueId y = graph.AddValue({.name = "y", .type = {}});
  graph.inputs = {x};
  graph.outputs = {y};
  graph::Node node{.op_type = "TreeEnsemble", .domain = "ai.onnx.ml", .since_version = 5};
  node.attributes = {{"n_targets", int64_t{1}},
                     {"tree_roots", std::vector<int64_t>{0}},
                     {"nodes_featureids", features},
                     {"nodes_splits", list(splits, ElementType::kFloat32)},
                     {"nodes_modes", list(modes, ElementType::kUint8)},
                     {"nodes_truenodeids", on_true},
                     {"nodes_falsenodeids", on_false},
                     {"nodes_trueleafs", true_leafs},
                     {"nodes_falseleafs", false_leafs},
                     {"leaf_targetids", targets},
                     {"leaf_weights", list(weights, ElementType::kFloat32)}};
  node.inputs = {x};
  node.outputs = {y};
  graph.nodes = {node};
  const auto out =
      RunGraph(graph, {MakeTensor(ElementType::kFloat32, {4, 1}, {-1, 0.5, 333.5, 9999})},
               [](program::Program& program) { EXPECT_LE(program.steps.size(), 20u); });
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(0, 1, 334, kDepth));
}

TEST(TreeEnsembleTest, FindsMembersOfSets) {
  std::mt19937 random(53);
  for (const ElementType type :
       {ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64}) {
    for (const int count : {0, 1, 2, 5, 21}) {
      for (const int64_t missing : {0, 1}) {
        std::vector<double> members;
        for (int k = 0; k < count; ++k) members.push_back(static_cast<double>(random() % 30));
        std::vector<double> list = members;
        list.push_back(std::nan(""));
        std::vector<double> x = {std::nan(""), -1, 2.5, 0};
        for (int k = 0; k < 30; ++k) x.push_back(k);
        const auto rows = static_cast<int64_t>(x.size());
        const auto numbers = [&](const std::vector<double>& values) {
          return MakeTensor(type, {static_cast<int64_t>(values.size())}, values);
        };
        const auto result =
            RunTrees({{"nodes_featureids", std::vector<int64_t>{0}},
                      {"nodes_splits", numbers({0})},
                      {"nodes_modes", MakeTensor(ElementType::kUint8, {1}, {6})},
                      {"nodes_truenodeids", std::vector<int64_t>{0}},
                      {"nodes_falsenodeids", std::vector<int64_t>{1}},
                      {"nodes_trueleafs", std::vector<int64_t>{1}},
                      {"nodes_falseleafs", std::vector<int64_t>{1}},
                      {"nodes_missing_value_tracks_true", std::vector<int64_t>{missing}},
                      {"membership_values", numbers(list)},
                      {"leaf_targetids", std::vector<int64_t>{0, 0}},
                      {"leaf_weights", numbers({1, -1})},
                      {"tree_roots", std::vector<int64_t>{0}},
                      {"n_targets", int64_t{1}}},
                     Given({rows, 1}, x, type));
        ASSERT_TRUE(result.ok()) << result.status().Text();
        EXPECT_EQ((*result)[0].type(), type);
        for (int64_t row = 0; row < rows; ++row) {
          const double value = x[static_cast<size_t>(row)];
          const bool is_member = std::find(members.begin(), members.end(), value) != members.end();
          const bool is_true = is_member || (std::isnan(value) && missing != 0);
          EXPECT_EQ((*result)[0].AsDouble(row), is_true ? 1 : -1) << value << " of " << count;
        }
      }
    }
  }
}

// Ways may share nodes, and a target that no leaf gives anything has the end of the type's range.
TEST(TreeEnsembleTest, SharesNodesBetweenTrees) {
  Attributes attributes = {{"nodes_featureids", std::vector<int64_t>{0, 0, 1}},
                           {"nodes_splits", MakeTensor(ElementType::kFloat16, {3}, {0, 1, 0})},
                           {"nodes_modes", MakeTensor(ElementType::kUint8, {3}, {0, 0, 0})},
                           {"nodes_truenodeids", std::vector<int64_t>{2, 2, 0}},
                           {"nodes_falsenodeids", std::vector<int64_t>{2, 2, 1}},
                           {"nodes_trueleafs", std::vector<int64_t>{0, 0, 1}},
                           {"nodes_falseleafs", std::vector<int64_t>{0, 1, 1}},
                           {"leaf_targetids", std::vector<int64_t>{0, 2, 2}},
                           {"leaf_weights", MakeTensor(ElementType::kFloat16, {3}, {1, 2, 4})},
                           {"tree_roots", std::vector<int64_t>{0, 1}},
                           {"n_targets", int64_t{3}},
                           {"aggregate_function", int64_t{3}}};
  const auto largest = RunTrees(attributes, Given({2, 2}, {-1, 5, 7, -5}, ElementType::kFloat16));
  ASSERT_TRUE(largest.ok()) << largest.status().Text();
  EXPECT_THAT(Numbers((*largest)[0]), ElementsAre(-65504, -65504, 2, 1, -65504, 4));
  attributes["aggregate_function"] = int64_t{2};
  const auto smallest = RunTrees(attributes, Given({2, 2}, {-1, 5, 7, -5}, ElementType::kFloat16));
  ASSERT_TRUE(smallest.ok()) << smallest.status().Text();
  EXPECT_THAT(Numbers((*smallest)[0]), ElementsAre(65504, 65504, 2, 1, 65504, 4));
}

// The definitions of the transforms, on sums that are known.
class TreeTransformTest : public ::testing::Test {
 protected:
  // The outputs for a single row whose sums are `sums`, one per target.
  static std::vector<double> Transformed(int64_t transform, const std::vector<double>& sums,
                                         ElementType type = ElementType::kFloat64) {
    const auto count = static_cast<int64_t>(sums.size());
    // A stump per target: both branches end in its leaf.
    std::vector<int64_t> own(sums.size()), zeros(sums.size(), 0), ones(sums.size(), 1);
    std::iota(own.begin(), own.end(), 0);
    const std::vector<double> splits(sums.size(), 0.5), modes(sums.size(), 0);
    const Attributes attributes = {{"nodes_featureids", zeros},
                                   {"nodes_splits", MakeTensor(type, {count}, splits)},
                                   {"nodes_modes", MakeTensor(ElementType::kUint8, {count}, modes)},
                                   {"nodes_truenodeids", own},
                                   {"nodes_falsenodeids", own},
                                   {"nodes_trueleafs", ones},
                                   {"nodes_falseleafs", ones},
                                   {"leaf_targetids", own},
                                   {"leaf_weights", MakeTensor(type, {count}, sums)},
                                   {"tree_roots", own},
                                   {"n_targets", count},
                                   {"post_transform", transform}};
    const auto result = RunTrees(attributes, Given({1, 1}, {0.25}, type));
    EXPECT_TRUE(result.ok()) << result.status().Text();
    if (!result.ok()) return {};
    EXPECT_EQ((*result)[0].extents(), (Extents{1, count}));
    return Numbers((*result)[0]);
  }
  static void ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(actual[k], expected[k], 1e-12 * (1 + std::abs(expected[k]))) << "target " << k;
    }
  }
};

TEST_F(TreeTransformTest, LeavesSumsAsTheyAre) {
  EXPECT_THAT(Transformed(0, {1.5, -2, 0}), ElementsAre(1.5, -2, 0));
}

TEST_F(TreeTransformTest, MakesSharesOfTheRow) {
  const double sum = std::exp(1.5) + std::exp(-2.0) + std::exp(0.0);
  ExpectNear(Transformed(1, {1.5, -2, 0}),
             {std::exp(1.5) / sum, std::exp(-2.0) / sum, std::exp(0.0) / sum});
  // Beyond what the exponential function can hold.
  ExpectNear(Transformed(1, {1000, 1000, -1000}), {0.5, 0.5, 0});
}

TEST_F(TreeTransformTest, MakesProbabilities) {
  ExpectNear(Transformed(2, {1.5, -2, 0}),
             {1 / (1 + std::exp(-1.5)), 1 / (1 + std::exp(2.0)), 0.5});
}

TEST_F(TreeTransformTest, MakesSharesOfWhatIsNotZero) {
  const double sum = std::exp(1.5) + std::exp(-2.0);
  ExpectNear(Transformed(3, {1.5, 0, -2}), {std::exp(1.5) / sum, 0, std::exp(-2.0) / sum});
  ExpectNear(Transformed(3, {0, 0}), {0.5, 0.5});
}

// Against the distribution of which it is the inverse; the approximation is good for three digits.
TEST_F(TreeTransformTest, InvertsTheNormalDistribution) {
  const std::vector<double> probabilities = {0.01, 0.2, 0.5, 0.7, 0.975};
  const std::vector<double> quantiles = Transformed(4, probabilities);
  ASSERT_EQ(quantiles.size(), probabilities.size());
  for (size_t k = 0; k < probabilities.size(); ++k) {
    EXPECT_NEAR(0.5 * (1 + std::erf(quantiles[k] / std::sqrt(2.0))), probabilities[k], 2e-3);
  }
  EXPECT_NEAR(quantiles[4], 1.96, 0.01);
}

TEST_F(TreeTransformTest, RoundsOnceToTheTypeOfTheInput) {
  const double sum = std::exp(1.0) + std::exp(2.0);
  const std::vector<double> shares = Transformed(1, {1, 2}, ElementType::kFloat32);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0], static_cast<float>(std::exp(1.0) / sum));
  EXPECT_EQ(shares[1], static_cast<float>(std::exp(2.0) / sum));
}

TEST_F(TreeTransformTest, HasNoOthers) {
  for (const int64_t transform : {-1, 5}) {
    Attributes attributes = {{"nodes_featureids", std::vector<int64_t>{0}},
                             {"nodes_splits", MakeTensor(ElementType::kFloat32, {1}, {1})},
                             {"nodes_modes", MakeTensor(ElementType::kUint8, {1}, {0})},
                             {"nodes_truenodeids", std::vector<int64_t>{0}},
                             {"nodes_falsenodeids", std::vector<int64_t>{0}},
                             {"nodes_trueleafs", std::vector<int64_t>{1}},
                             {"nodes_falseleafs", std::vector<int64_t>{1}},
                             {"leaf_targetids", std::vector<int64_t>{0}},
                             {"leaf_weights", MakeTensor(ElementType::kFloat32, {1}, {1})},
                             {"tree_roots", std::vector<int64_t>{0}},
                             {"n_targets", int64_t{1}},
                             {"post_transform", transform}};
    const auto result = RunTrees(attributes, Given({1, 1}, {1}));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), Code::kInvalidModel) << result.status().Text();
  }
}

TEST(TreeEnsembleTest, RefusesNodesThatLieNowhereOrBelowThemselves) {
  const auto run = [](const std::string& name, const std::vector<int64_t>& numbers) {
    Attributes attributes = {{"nodes_featureids", std::vector<int64_t>{0, 0}},
                             {"nodes_splits", MakeTensor(ElementType::kFloat32, {2}, {1, 2})},
                             {"nodes_modes", MakeTensor(ElementType::kUint8, {2}, {0, 0})},
                             {"nodes_truenodeids", std::vector<int64_t>{1, 0}},
                             {"nodes_falsenodeids", std::vector<int64_t>{0, 0}},
                             {"nodes_trueleafs", std::vector<int64_t>{0, 1}},
                             {"nodes_falseleafs", std::vector<int64_t>{1, 1}},
                             {"leaf_targetids", std::vector<int64_t>{0}},
                             {"leaf_weights", MakeTensor(ElementType::kFloat32, {1}, {1})},
                             {"tree_roots", std::vector<int64_t>{0}},
                             {"n_targets", int64_t{1}}};
    if (!name.empty()) attributes[name] = numbers;
    return RunTrees(attributes, Given({1, 1}, {1}));
  };
  EXPECT_TRUE(run("", {}).ok()) << run("", {}).status().Text();
  const std::pair<std::string, std::vector<int64_t>> faults[] = {
      {"nodes_trueleafs", {0, 0}},     {"nodes_truenodeids", {1, 1}}, {"nodes_truenodeids", {2, 0}},
      {"nodes_falsenodeids", {-1, 0}}, {"tree_roots", {2}},           {"leaf_targetids", {1}},
      {"nodes_trueleafs", {0}},        {"nodes_featureids", {-1, 0}}};
  for (const auto& [name, numbers] : faults) {
    const auto result = run(name, numbers);
    ASSERT_FALSE(result.ok()) << name;
    EXPECT_EQ(result.status().code(), Code::kInvalidModel) << result.status().Text();
  }
}

}  // namespace
}  // namespace onnxifi::ops
