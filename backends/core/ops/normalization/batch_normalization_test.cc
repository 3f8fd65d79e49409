// SPDX-License-Identifier: Apache-2.0
//
// BatchNormalization in all its versions and modes, against float64 loops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

struct BatchCase {
  std::string name;
  int version;
  std::map<std::string, graph::Attribute, std::less<>> attributes;
  bool is_per_element;
  int training_outputs;  // 0: inference
};

constexpr int kBatch = 3, kChannels = 2, kSpace = 4;
constexpr double kEpsilon = 1e-3, kMomentum = 0.75;

class BatchNormalizationTest : public ::testing::TestWithParam<BatchCase> {};

TEST_P(BatchNormalizationTest, MatchesLoops) {
  const BatchCase& with = GetParam();
  const int groups = with.is_per_element ? kChannels * kSpace : kChannels;
  auto group_of = [&](int k) {
    return with.is_per_element ? k % (kChannels * kSpace) : k / kSpace % kChannels;
  };
  std::vector<double> x, scale, bias, mean, variance;
  for (int k = 0; k < kBatch * kChannels * kSpace; ++k)
    x.push_back(0.5 * ((k * 7) % 11) - 2 + 100 * (k % 2));
  for (int g = 0; g < groups; ++g) {
    scale.push_back(1 + 0.5 * g);
    bias.push_back(g - 1);
    mean.push_back(0.25 * g);
    variance.push_back(1 + g);
  }

  std::vector<double> batch_mean(groups), batch_variance(groups), count(groups);
  for (size_t k = 0; k < x.size(); ++k) {
    batch_mean[group_of(static_cast<int>(k))] += x[k];
    ++count[group_of(static_cast<int>(k))];
  }
  for (int g = 0; g < groups; ++g) batch_mean[g] /= count[g];
  for (size_t k = 0; k < x.size(); ++k) {
    const int g = group_of(static_cast<int>(k));
    batch_variance[g] += (x[k] - batch_mean[g]) * (x[k] - batch_mean[g]) / count[g];
  }
  const bool is_training = with.training_outputs > 0;
  std::vector<std::vector<double>> expected(1);
  for (size_t k = 0; k < x.size(); ++k) {
    const int g = group_of(static_cast<int>(k));
    const double center = is_training ? batch_mean[g] : mean[g];
    const double spread = is_training ? batch_variance[g] : variance[g];
    expected[0].push_back((x[k] - center) / std::sqrt(spread + kEpsilon) * scale[g] + bias[g]);
  }
  std::vector<double> running_mean, running_variance;
  for (int g = 0; g < groups; ++g) {
    running_mean.push_back(mean[g] * kMomentum + batch_mean[g] * (1 - kMomentum));
    running_variance.push_back(variance[g] * kMomentum + batch_variance[g] * (1 - kMomentum));
  }
  for (const auto& statistic : {running_mean, running_variance, batch_mean, batch_variance}) {
    expected.push_back(statistic);
  }
  expected.resize(1 + with.training_outputs);

  const tensor::Extents parameter =
      with.is_per_element ? tensor::Extents{kChannels, 2, 2} : tensor::Extents{kChannels};
  for (auto make : {Given, Symbolic}) {
    OneNode node{"BatchNormalization", with.version, with.attributes};
    node.attributes["epsilon"] = static_cast<float>(kEpsilon);
    node.attributes["momentum"] = static_cast<float>(kMomentum);
    const auto type = tensor::ElementType::kFloat32;
    node.inputs = {make({kBatch, kChannels, 2, 2}, x, type)};
    for (const auto& values : {scale, bias, mean, variance}) {
      node.inputs.push_back(make(parameter, values, type));
    }
    node.wanted.assign(expected.size(), true);
    auto out = RunOperator(node);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    for (size_t k = 0; k < expected.size(); ++k) {
      EXPECT_THAT(Numbers((*out)[k]), Pointwise(DoubleNear(2e-3), expected[k])) << "output " << k;
      if (k > 0) {
        EXPECT_EQ((*out)[k].extents(), parameter);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Versions, BatchNormalizationTest,
    ::testing::Values(
        BatchCase{"Test1", 1, {{"is_test", int64_t{1}}}, false, 0},
        BatchCase{"Test6", 6, {{"is_test", int64_t{1}}}, false, 0},
        BatchCase{"PerElement6", 6, {{"is_test", int64_t{1}}, {"spatial", int64_t{0}}}, true, 0},
        BatchCase{"Training6", 6, {}, false, 4}, BatchCase{"Test7", 7, {}, false, 0},
        BatchCase{"PerElementTraining7", 7, {{"spatial", int64_t{0}}}, true, 4},
        BatchCase{"Test9", 9, {}, false, 0}, BatchCase{"Training9", 9, {}, false, 4},
        BatchCase{"Test14", 14, {}, false, 0},
        BatchCase{"Training15", 15, {{"training_mode", int64_t{1}}}, false, 2}),
    [](const auto& info) { return info.param.name; });

TEST(BatchNormalizationTestMode, PassesTheGivenStatisticsOnAndTakesVectors) {
  auto one = [](double value) { return Given({1}, {value}); };
  auto out = RunOperator({"BatchNormalization",
                          6,
                          {{"is_test", int64_t{1}}, {"epsilon", 0.f}},
                          {Symbolic({3}, {1, 2, 5}), one(2), one(10), one(1), one(4)},
                          {true, true, true, false, false}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), Pointwise(DoubleNear(1e-6), {10.0, 11.0, 14.0}));
  EXPECT_EQ((*out)[0].extents(), tensor::Extents{3});
  EXPECT_EQ(Numbers((*out)[1]), std::vector<double>{1});
  EXPECT_EQ(Numbers((*out)[2]), std::vector<double>{4});
}

TEST(BatchNormalizationRefusalTest, NamesLengthAndChannels) {
  const NodeInput three = Given({3}, {1, 1, 1});
  auto out = RunOperator(
      {"BatchNormalization", 15, {}, {Given({1, 2, 1}, {1, 2}), three, three, three, three}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
  EXPECT_THAT(std::string(out.status().sentence()),
              HasSubstr("Length of input 1 and the number of channels differ: 3 and 2."));
}

}  // namespace
}  // namespace onnxifi::ops
