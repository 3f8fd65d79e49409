// SPDX-License-Identifier: Apache-2.0
//
// The two losses with every reduction, weights and an ignored class, against float64 loops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int kBatch = 2, kClasses = 3, kSpace = 4;
constexpr int kIgnored = -1;
const std::vector<double> kTargets = {0, 2, kIgnored, 1, 1, 0, 2, kIgnored};
const std::vector<double> kWeights = {0.5, 1, 2};

std::vector<double> Scores() {
  std::vector<double> scores;
  for (int k = 0; k < kBatch * kClasses * kSpace; ++k) scores.push_back(((k * 5) % 13) * 0.25 - 1);
  return scores;
}

// Loss per target; the last element is the sum of the weights.
std::vector<double> Losses(bool is_softmax, bool has_weights) {
  const std::vector<double> scores = Scores();
  std::vector<double> losses;
  double weight_sum = 0;
  for (int k = 0; k < kBatch * kSpace; ++k) {
    const auto target = static_cast<int>(kTargets[k]);
    if (target == kIgnored) {
      losses.push_back(0);
      continue;
    }
    auto score = [&](int c) { return scores[(k / kSpace * kClasses + c) * kSpace + k % kSpace]; };
    double log_sum = 0;
    for (int c = 0; c < kClasses; ++c) log_sum += std::exp(score(c));
    const double weight = has_weights ? kWeights[target] : 1;
    losses.push_back(-weight * (score(target) - (is_softmax ? std::log(log_sum) : 0)));
    weight_sum += weight;
  }
  losses.push_back(weight_sum);
  return losses;
}

TEST(LikelihoodLossTest, MatchesLoops) {
  for (bool is_softmax : {false, true}) {
    for (bool has_weights : {false, true}) {
      std::vector<double> losses = Losses(is_softmax, has_weights);
      const double weight_sum = losses.back();
      losses.pop_back();
      double sum = 0;
      for (double loss : losses) sum += loss;
      const std::pair<std::string, std::vector<double>> reductions[] = {
          {"none", losses}, {"sum", {sum}}, {"mean", {sum / weight_sum}}};
      for (const auto& [reduction, expected] : reductions) {
        for (auto make : {Given, Symbolic}) {
          OneNode node{is_softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss",
                       13,
                       {{"reduction", reduction}, {"ignore_index", int64_t{kIgnored}}}};
          node.inputs = {make({kBatch, kClasses, kSpace}, Scores(), tensor::ElementType::kFloat32),
                         make({kBatch, kSpace}, kTargets, tensor::ElementType::kInt32)};
          if (has_weights) node.inputs.push_back(Given({kClasses}, kWeights));
          auto out = RunOperator(node);
          ASSERT_TRUE(out.ok()) << out.status().Text();
          EXPECT_THAT(Numbers((*out)[0]), Pointwise(DoubleNear(1e-5), expected))
              << node.op_type << ", " << reduction << ", weights " << has_weights;
        }
      }
    }
  }
}

TEST(LikelihoodLossTest, RefusesTargetsThatDoNotFit) {
  auto out =
      RunOperator({"NegativeLogLikelihoodLoss",
                   13,
                   {},
                   {Given({1, 2}, {1, 2}), Given({1, 1}, {0}, tensor::ElementType::kInt64)}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
  EXPECT_THAT(std::string(out.status().sentence()),
              HasSubstr("[1, 1] do not fit scores of shape [1, 2]"));
}

}  // namespace
}  // namespace onnxifi::ops
