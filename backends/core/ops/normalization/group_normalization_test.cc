// SPDX-License-Identifier: Apache-2.0
//
// Instance, group, layer, RMS, mean-variance and Lp normalisation and LRN on symbolic extents,
// against float64 loops, and what they refuse.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int kBatch = 2, kChannels = 4, kSpace = 3;
constexpr int kElements = kBatch * kChannels * kSpace;
constexpr double kEpsilon = 1e-5;

std::vector<double> Data() {
  std::vector<double> data;
  for (int k = 0; k < kElements; ++k) data.push_back(((k * 11) % 17) * 0.5 - 3);
  return data;
}

// (x - mean) / deviation over the elements with the same row number, times scale plus bias.
std::vector<double> Normalised(const std::vector<double>& data, int (*row_of)(int k),
                               double (*scale_of)(int k), double (*bias_of)(int k)) {
  std::map<int, std::vector<int>> rows;
  for (int k = 0; k < kElements; ++k) rows[row_of(k)].push_back(k);
  std::vector<double> results(data.size());
  for (const auto& [row, members] : rows) {
    double mean = 0, variance = 0;
    for (int k : members) mean += data[k] / static_cast<double>(members.size());
    for (int k : members) {
      variance += (data[k] - mean) * (data[k] - mean) / static_cast<double>(members.size());
    }
    for (int k : members) {
      results[k] = (data[k] - mean) / std::sqrt(variance + kEpsilon) * scale_of(k) + bias_of(k);
    }
  }
  return results;
}

struct NormCase {
  std::string name;
  OneNode node;  // without the data
  int (*row_of)(int k);
  double (*scale_of)(int k);
  double (*bias_of)(int k);
};

int Channel(int k) { return k / kSpace % kChannels; }
int Group(int k) { return Channel(k) / 2; }
double One(int) { return 1; }
double Zero(int) { return 0; }

class NormalizationTest : public ::testing::TestWithParam<NormCase> {};

TEST_P(NormalizationTest, MatchesLoops) {
  for (auto make : {Given, Symbolic}) {
    OneNode node = GetParam().node;
    node.inputs.insert(node.inputs.begin(),
                       make({kBatch, kChannels, kSpace}, Data(), tensor::ElementType::kFloat32));
    auto out = RunOperator(node);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]),
                Pointwise(DoubleNear(1e-4), Normalised(Data(), GetParam().row_of,
                                                       GetParam().scale_of, GetParam().bias_of)));
  }
}

const NodeInput kPerChannel = Given({kChannels}, {1, 2, 3, 4});
const NodeInput kPerGroup = Given({2}, {1, 2});
const NodeInput kPerPixel = Given({kSpace}, {1, 2, 3});

INSTANTIATE_TEST_SUITE_P(
    Operators, NormalizationTest,
    ::testing::Values(
        NormCase{"Instance1",
                 {"InstanceNormalization", 1, {}, {kPerChannel, kPerChannel}},
                 [](int k) { return k / kSpace; },
                 [](int k) { return Channel(k) + 1.0; },
                 [](int k) { return Channel(k) + 1.0; }},
        NormCase{"Group18",
                 {"GroupNormalization", 18, {{"num_groups", int64_t{2}}}, {kPerGroup, kPerGroup}},
                 [](int k) { return k / (2 * kSpace); },
                 [](int k) { return Group(k) + 1.0; },
                 [](int k) { return Group(k) + 1.0; }},
        NormCase{
            "Group21",
            {"GroupNormalization", 21, {{"num_groups", int64_t{2}}}, {kPerChannel, kPerChannel}},
            [](int k) { return k / (2 * kSpace); },
            [](int k) { return Channel(k) + 1.0; },
            [](int k) { return Channel(k) + 1.0; }},
        NormCase{"Layer17",
                 {"LayerNormalization", 17, {}, {kPerPixel, kPerPixel}},
                 [](int k) { return k / kSpace; },
                 [](int k) { return k % kSpace + 1.0; },
                 [](int k) { return k % kSpace + 1.0; }},
        NormCase{"LayerOverTwoAxes17",
                 {"LayerNormalization", 17, {{"axis", int64_t{1}}}, {kPerPixel}},
                 [](int k) { return k / (kSpace * kChannels); },
                 [](int k) { return k % kSpace + 1.0; },
                 Zero},
        NormCase{"MeanVariance9",
                 {"MeanVarianceNormalization", 9, {{"axes", std::vector<int64_t>{0, 2}}}},
                 [](int k) { return Channel(k); },
                 One,
                 Zero}),
    [](const auto& info) { return info.param.name; });

TEST(LayerNormalizationTest, GivesTheStatistics) {
  auto out = RunOperator({"LayerNormalization",
                          17,
                          {{"epsilon", 0.f}},
                          {Symbolic({2, 2}, {1, 3, -2, 6}), Given({2}, {1, 1})},
                          {true, true, true}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[1].extents(), (tensor::Extents{2, 1}));
  EXPECT_THAT(Numbers((*out)[1]), Pointwise(DoubleNear(1e-6), {2.0, 2.0}));
  EXPECT_THAT(Numbers((*out)[2]), Pointwise(DoubleNear(1e-6), {1.0, 0.25}));
}

TEST(LayerNormalizationTest, SurvivesAMeanThatDwarfsTheSpread) {
  auto out =
      RunOperator({"LayerNormalization",
                   17,
                   {{"epsilon", 0.f}},
                   {Given({1, 4}, {100000, 100001, 100002, 100003}), Given({4}, {1, 1, 1, 1})}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  const double spread = std::sqrt(1.25);
  EXPECT_THAT(Numbers((*out)[0]), Pointwise(DoubleNear(1e-3), {-1.5 / spread, -0.5 / spread,
                                                               0.5 / spread, 1.5 / spread}));
}

TEST(LpNormalizationTest, DividesByTheNormAndLeavesZerosAlone) {
  const std::vector<double> data = {3, -4, 0, 0};
  for (int64_t p : {1, 2}) {
    auto out = RunOperator({"LpNormalization", 1, {{"p", p}}, {Symbolic({2, 2}, data)}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    const double norm = p == 1 ? 7 : 5;
    EXPECT_THAT(Numbers((*out)[0]), Pointwise(DoubleNear(1e-6), {3 / norm, -4 / norm, 0.0, 0.0}));
  }
}

TEST(LrnTest, WindowOfEvenSizeLeansToHigherChannels) {
  const std::vector<double> data = Data();
  auto out = RunOperator({"LRN",
                          1,
                          {{"size", int64_t{2}}, {"alpha", 0.5f}, {"beta", 0.75f}, {"bias", 2.f}},
                          {Symbolic({kBatch, kChannels, kSpace}, data)}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  std::vector<double> expected;
  for (int k = 0; k < kElements; ++k) {
    double squares = data[k] * data[k];
    if (Channel(k) + 1 < kChannels) squares += data[k + kSpace] * data[k + kSpace];
    expected.push_back(data[k] / std::pow(2 + 0.25 * squares, 0.75));
  }
  EXPECT_THAT(Numbers((*out)[0]), Pointwise(DoubleNear(1e-5), expected));
}

TEST(GroupNormalizationRefusalTest, NamesChannelsAndGroups) {
  auto out = RunOperator({"GroupNormalization",
                          21,
                          {{"num_groups", int64_t{3}}},
                          {Given({1, 4, 1}, {1, 2, 3, 4}), kPerChannel, kPerChannel}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kInvalidModel);
  EXPECT_THAT(std::string(out.status().sentence()),
              HasSubstr("channels 4 is no multiple of the number of groups (3)"));
}

}  // namespace
}  // namespace onnxifi::ops
