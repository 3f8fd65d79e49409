// SPDX-License-Identifier: Apache-2.0
//
// Random generators: their distributions by moments and frequencies, their dependence on the seed,
// and Dropout in every version.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kCount = 20000;

std::vector<double> Draw(const OneNode& node, size_t output = 0) {
  auto out = RunOperator(node);
  EXPECT_TRUE(out.ok()) << out.status().Text();
  return out.ok() ? Numbers((*out)[output]) : std::vector<double>{};
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Variance(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size());
}

OneNode Shaped(std::string op_type, float seed) {
  return {
      std::move(op_type), 1, {{"shape", std::vector<int64_t>{100, kCount / 100}}, {"seed", seed}}};
}

// As nodes of a function, which all have the position of its call.
TEST(RandomTest, NodesWithoutASeedDifferWhateverTheirPosition) {
  graph::Graph graph;
  for (const char* name : {"x", "y"}) {
    graph::Node node{.op_type = "RandomUniform", .since_version = 1};
    node.index = 0;
    node.attributes = {{"shape", std::vector<int64_t>{10}}};
    node.outputs = {graph.AddValue({.name = name})};
    graph.outputs.push_back(node.outputs[0]);
    graph.nodes.push_back(node);
  }
  const auto out = RunGraph(graph, {});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_NE(Numbers((*out)[0]), Numbers((*out)[1]));
}

// Bounds on the moments are five standard errors wide.
TEST(RandomTest, UniformFillsItsRangeEvenly) {
  OneNode node = Shaped("RandomUniform", 3);
  node.attributes["low"] = -1.f;
  node.attributes["high"] = 3.f;
  const std::vector<double> values = Draw(node);
  ASSERT_EQ(values.size(), kCount);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -1);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 3);
  EXPECT_NEAR(Mean(values), 1, 5 * std::sqrt(16.0 / 12 / kCount));
  EXPECT_NEAR(Variance(values), 16.0 / 12, 0.05);
}

TEST(RandomTest, NormalHasItsMoments) {
  OneNode node = Shaped("RandomNormal", 3);
  node.attributes["mean"] = 2.f;
  node.attributes["scale"] = 0.5f;
  const std::vector<double> values = Draw(node);
  EXPECT_NEAR(Mean(values), 2, 5 * 0.5 / std::sqrt(kCount));
  EXPECT_NEAR(Variance(values), 0.25, 5 * 0.25 * std::sqrt(2.0 / kCount));
  const auto beyond = std::count_if(values.begin(), values.end(),
                                    [](double value) { return std::fabs(value - 2) > 1; });
  EXPECT_NEAR(static_cast<double>(beyond) / kCount, 0.0455, 0.01);  // two deviations
}

TEST(RandomTest, TheSeedDecides) {
  EXPECT_EQ(Draw(Shaped("RandomNormal", 3)), Draw(Shaped("RandomNormal", 3)));
  EXPECT_NE(Draw(Shaped("RandomNormal", 3)), Draw(Shaped("RandomNormal", 4)));
}

TEST(RandomTest, LikeTakesShapeAndType) {
  auto out = RunOperator({"RandomUniformLike",
                          1,
                          {},
                          {Symbolic({2, 3}, std::vector<double>(6), ElementType::kFloat16)}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].type(), ElementType::kFloat16);
  EXPECT_EQ((*out)[0].extents(), (tensor::Extents{2, 3}));
  auto integers = RunOperator({"RandomUniformLike", 1, {}, {Given({1}, {0}, ElementType::kInt32)}});
  ASSERT_FALSE(integers.ok());
  EXPECT_THAT(std::string(integers.status().sentence()), HasSubstr("int32 is not a float"));
}

TEST(RandomTest, BernoulliAndMultinomialHaveTheirFrequencies) {
  const std::vector<double> draws = Draw({"Bernoulli",
                                          15,
                                          {{"dtype", int64_t{7}}},
                                          {Given({kCount}, std::vector<double>(kCount, 0.3))}});
  EXPECT_NEAR(Mean(draws), 0.3, 5 * std::sqrt(0.21 / kCount));

  const std::vector<double> classes =
      Draw({"Multinomial",
            7,
            {{"sample_size", kCount}},
            {Symbolic({1, 3}, {std::log(1.0), std::log(2.0), std::log(5.0)})}});
  ASSERT_EQ(classes.size(), kCount);
  const double shares[] = {0.125, 0.25, 0.625};
  for (int c = 0; c < 3; ++c) {
    const auto count = static_cast<double>(std::count(classes.begin(), classes.end(), c));
    EXPECT_NEAR(count / kCount, shares[c], 5 * std::sqrt(0.25 / kCount));
  }
}

struct DropoutCase {
  std::string name;
  OneNode node;
  bool drops;
  ElementType mask_type;
};

class DropoutTest : public ::testing::TestWithParam<DropoutCase> {};

TEST_P(DropoutTest, DropsInTrainingOnly) {
  OneNode node = GetParam().node;
  node.inputs.insert(node.inputs.begin(), Symbolic({kCount}, std::vector<double>(kCount, 3)));
  node.wanted = {true, true};
  auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[1].type(), GetParam().mask_type);
  const std::vector<double> values = Numbers((*out)[0]), mask = Numbers((*out)[1]);
  if (!GetParam().drops) {
    EXPECT_THAT(values, Each(3));
    EXPECT_THAT(mask, Each(1));
    return;
  }
  // Ratio 1/4: three quarters stay and grow by 4/3.
  for (size_t k = 0; k < values.size(); ++k) EXPECT_FLOAT_EQ(values[k], mask[k] != 0 ? 4 : 0);
  EXPECT_NEAR(Mean(mask), 0.75, 5 * std::sqrt(0.1875 / kCount));
}

const NodeInput kQuarter = Given({}, {0.25});
const auto kBool = ElementType::kBool;
const auto kFloat = ElementType::kFloat32;

INSTANTIATE_TEST_SUITE_P(
    Versions, DropoutTest,
    ::testing::Values(
        DropoutCase{"Test1", {"Dropout", 1, {{"is_test", int64_t{1}}}}, false, kFloat},
        DropoutCase{"Training6", {"Dropout", 6, {{"ratio", 0.25f}}}, true, kFloat},
        DropoutCase{"Inference7", {"Dropout", 7, {{"ratio", 0.25f}}}, false, kFloat},
        DropoutCase{"Inference10", {"Dropout", 10, {{"ratio", 0.25f}}}, false, kBool},
        DropoutCase{"NoMode12", {"Dropout", 12, {}, {kQuarter}}, false, kBool},
        DropoutCase{"ConstantFalse13",
                    {"Dropout", 13, {}, {kQuarter, Constant({}, {0}, kBool)}},
                    false,
                    kBool},
        DropoutCase{
            "RunTimeFalse13", {"Dropout", 13, {}, {kQuarter, Given({}, {0}, kBool)}}, false, kBool},
        DropoutCase{
            "RunTimeTrue13", {"Dropout", 13, {}, {kQuarter, Given({}, {1}, kBool)}}, true, kBool},
        DropoutCase{"ConstantTrue22",
                    {"Dropout", 22, {}, {kQuarter, Constant({}, {1}, kBool)}},
                    true,
                    kBool}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace onnxifi::ops
