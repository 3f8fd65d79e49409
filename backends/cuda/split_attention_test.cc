// SPDX-License-Identifier: Apache-2.0
//
// Attention of float32 as three products of TF32 (codegen/attention_split_rows.cc): which steps get
// it, whether it is right, and how far it lies from float64, beside plain multiply-adds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backends/core/codegen/testing/attention_problem.h"
#include "backends/cuda/testing/errors.h"
#include "backends/cuda/testing/split_fixture.h"

namespace onnxifi::cuda {
namespace {

using codegen::AttentionProblem;
using codegen::MakeAttention;
using codegen::SetElements;
using reference::RandomStep;
using tensor::ElementType;
using testing::HasSubstr;

constexpr char kUnits[] = "matrix units, 3xTF32";

class SplitAttentionTest : public SplitTest {
 protected:
  std::string Detail(const AttentionProblem& problem) {
    std::vector<bool> reads;
    return DetailOf(MakeAttention(problem, 1), reads);
  }
  void ExpectSplit(const RandomStep& step) {
    std::vector<bool> reads;
    EXPECT_EQ(DetailOf(step, reads), kUnits);
    ExpectRight(step, "generated");
  }
};

TEST_F(SplitAttentionTest, OnlyDeepSumsOfManyQueriesAreSplit) {
  const AttentionProblem deep{
      .queries = 40, .keys = kSplitDepth, .width = kSplitDepth, .values = 8};
  EXPECT_EQ(Detail(deep), kUnits);
  AttentionProblem other = deep;
  other.width = kSplitDepth - 1;
  EXPECT_EQ(Detail(other), "");
  other = deep;
  other.keys = kSplitDepth - 1;
  EXPECT_EQ(Detail(other), "");
  other = deep;
  other.queries = 1;
  EXPECT_EQ(Detail(other), "");
  other = deep;
  other.type = ElementType::kFloat16;
  EXPECT_EQ(Detail(other), "matrix units");
  // The unit multiplies whole words of halves alone.
  other.width = kSplitDepth + 1;
  EXPECT_EQ(Detail(other), kUnits);
  std::vector<bool> reads;
  RandomStep step = MakeAttention(deep, 1);
  step.program.has_fast_algorithms = false;
  EXPECT_EQ(DetailOf(step, reads), "");
  // Nobody has measured this device.
  device_ = plain_.get();
  EXPECT_EQ(Detail(deep), "");
}

TEST_F(SplitAttentionTest, EdgesOfBlocksAreRight) {
  uint32_t seed = 100;
  for (const int64_t queries : {31, 65}) {
    for (const int64_t keys : {32, 63, 65, 130}) {
      for (const int64_t values : {1, 63, 65, 130}) {
        const int64_t widths[] = {32, 33, 64, 71, 100};
        const AttentionProblem problem{.heads = 1 + seed % 2,
                                       .queries = queries,
                                       .keys = keys,
                                       .width = widths[seed % 5],
                                       .values = values,
                                       .has_rows_of_keys = values != 63,
                                       .is_transposed = seed % 8 == 1};
        SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys of "
                                        << problem.width << ", " << problem.values << " values");
        ExpectSplit(MakeAttention(problem, seed++));
      }
    }
  }
}

TEST_F(SplitAttentionTest, EveryPartOfAScoreAndEveryTypeIsRight) {
  uint32_t seed = 200;
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    AttentionProblem problem{.heads = 2,
                             .sharing = 2,
                             .queries = 37,
                             .keys = 75,
                             .width = 35,
                             .values = 20,
                             .type = type};
    problem.has_bias = problem.has_mask = problem.has_epilogue = true;
    problem.cap = 1.5;
    problem.past = 38;
    ExpectSplit(MakeAttention(problem, seed++));
    problem.masked = -1e30;
    ExpectSplit(MakeAttention(problem, seed++));
  }
}

// Groups take several blocks of keys, all of them or a part, which another kernel joins.
TEST_F(SplitAttentionTest, SeveralBlocksAndPartsOfKeysAreRight) {
  AttentionProblem problem{.heads = 260, .queries = 17, .keys = 150, .width = 32, .values = 2};
  problem.is_growing = true;
  ExpectSplit(MakeAttention(problem, 300));
  problem.heads = 70;
  problem.keys = 64 * 8 - 3;
  ExpectSplit(MakeAttention(problem, 301));
}

// Very many keys are taken in ranges, between which working memory has the sums. Here a block of 64
// keys is as many, and there are groups enough, so that none takes a part of the keys.
TEST_F(SplitAttentionTest, RangesOfKeysAreRight) {
  Open({}, /*most_rounds=*/1);
  AttentionProblem problem{.heads = 257, .queries = 17, .keys = 131, .width = 32, .values = 2};
  ExpectSplit(MakeAttention(problem, 302));
  problem.keys = 65;
  problem.is_growing = true;
  ExpectSplit(MakeAttention(problem, 303));
  device_ = plain_.get();
  ExpectRight(MakeAttention(problem, 304), "generated");
  problem.type = ElementType::kFloat16;
  problem.values = 8;
  ExpectRight(MakeAttention(problem, 305), "generated");
}

TEST_F(SplitAttentionTest, InfinitiesAndNanReachTheirRowsAndNoOthers) {
  const AttentionProblem problem{.queries = 40, .keys = 70, .width = 36, .values = 5};
  const double infinity = std::numeric_limits<double>::infinity();
  uint32_t seed = 400;
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, 3e38}) {
    RandomStep query = MakeAttention(problem, seed++);
    SetElements(query, 0, 33 * 36 + 1, 10000, value);
    ExpectSplit(query);
    RandomStep key = MakeAttention(problem, seed++);
    SetElements(key, 1, 40 * 36, 10000, value);
    ExpectSplit(key);
    RandomStep of_value = MakeAttention(problem, seed++);
    SetElements(of_value, 2, 65 * 5 + 3, 10000, value);
    ExpectSplit(of_value);
  }
  // A masked key has weight 0, and 0 * infinity is no number.
  AttentionProblem causal = problem;
  causal.past = 0;
  RandomStep masked = MakeAttention(causal, seed);
  SetElements(masked, 2, 69 * 5, 10000, infinity);
  ExpectSplit(masked);
}

// ---- Errors

struct Layer {
  AttentionProblem problem;
  Values values;  // of V; Q and K are normal, or 8 times that
  double factor = 1;
};

std::vector<float> Fill(tensor::Tensor& tensor, Drawing& drawing, Values values, bool is_first,
                        double factor) {
  std::vector<float> drawn(static_cast<size_t>(tensor.element_count()));
  for (float& value : drawn) {
    value = static_cast<float>(Draw(drawing, values, is_first) * factor);
  }
  std::ranges::copy(drawn, reinterpret_cast<float*>(tensor.mutable_data()));
  return drawn;
}

// One head in float64: the results, and the sums of the magnitudes of their terms.
struct Exact {
  std::vector<double> results, magnitudes;
};
Exact Compute(const AttentionProblem& p, const std::vector<float>& q, const std::vector<float>& k,
              const std::vector<float>& v) {
  Exact exact;
  const auto at = [](const std::vector<float>& of, int64_t index) {
    return static_cast<double>(of[static_cast<size_t>(index)]);
  };
  std::vector<double> weights(static_cast<size_t>(p.keys));
  for (int64_t row = 0; row < p.queries; ++row) {
    double high = -std::numeric_limits<double>::infinity();
    for (int64_t key = 0; key < p.keys; ++key) {
      double score = 0;
      for (int64_t n = 0; n < p.width; ++n)
        score += at(q, row * p.width + n) * at(k, key * p.width + n);
      weights[static_cast<size_t>(key)] = score * p.scale;
      high = std::max(high, score * p.scale);
    }
    double total = 0;
    for (double& weight : weights) total += weight = std::exp(weight - high);
    for (int64_t column = 0; column < p.values; ++column) {
      double sum = 0, magnitude = 0;
      for (int64_t key = 0; key < p.keys; ++key) {
        const double term = weights[static_cast<size_t>(key)] * at(v, key * p.values + column);
        sum += term;
        magnitude += std::abs(term);
      }
      exact.results.push_back(sum / total);
      exact.magnitudes.push_back(magnitude / total);
    }
  }
  return exact;
}

TEST_F(SplitAttentionTest, ErrorsAreAtMostTwiceThoseOfPlainMultiplyAdds) {
  using enum Values;
  const auto problem = [](int64_t queries, int64_t keys, int64_t width, int64_t values) {
    return AttentionProblem{.queries = queries,
                            .keys = keys,
                            .width = width,
                            .values = values,
                            .scale = 1 / std::sqrt(static_cast<double>(width))};
  };
  const Layer layers[] = {
      {problem(65, 128, 64, 64), kNormal},        {problem(65, 128, 64, 64), kNormal, 8},
      {problem(33, 197, 64, 64), kPositive},      {problem(40, 77, 40, 33), kMixed},
      {problem(17, 300, 128, 128), kRelu},        {problem(64, 512, 32, 64), kOutliers},
      {problem(20, 2000, 64, 64), kNormal},       {problem(20, 2000, 64, 64), kPositive},
      {problem(65, 96, 80, 80), kSubnormal},      {problem(65, 96, 64, 64), kHuge},
      {problem(33, 4096, 128, 16), kPositive, 4},
  };
  std::string table =
      "| queries, keys, width, values | V | Q and K | plain | 3xTF32 | ratio | absolute |\n"
      "|---|---|---|---|---|---|---|\n";
  uint32_t seed = 0;
  for (const Layer& layer : layers) {
    const AttentionProblem& p = layer.problem;
    SCOPED_TRACE(testing::Message()
                 << p.queries << " queries, " << p.keys << " keys, " << Name(layer.values));
    RandomStep step = MakeAttention(p, ++seed);
    Drawing drawing(seed);
    const std::vector<float> q = Fill(step.buffers[0], drawing, kNormal, true, layer.factor);
    const std::vector<float> k = Fill(step.buffers[1], drawing, kNormal, true, layer.factor);
    const std::vector<float> v = Fill(step.buffers[2], drawing, layer.values, true, 1);
    const Exact exact = Compute(p, q, k, v);
    const auto errors_on = [&](Device& device) {
      const auto results = RunStep(device, step);
      EXPECT_TRUE(results.ok()) << results.status().Text();
      const auto values = results->back().values<float>();
      return Compare({values.begin(), values.end()}, exact.results, exact.magnitudes);
    };
    const Errors plain = errors_on(*plain_);
    const Errors split = errors_on(*split_);
    const double ratio = split.relative / plain.relative;
    EXPECT_GT(plain.relative, 0);
    EXPECT_LE(ratio, 2) << split.relative << " and " << plain.relative;
    table +=
        fmt::format("| {}, {}, {}, {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", p.queries,
                    p.keys, p.width, p.values, Name(layer.values),
                    layer.factor == 1 ? "normal" : fmt::format("normal times {}", layer.factor),
                    plain.relative, split.relative, ratio, split.absolute / plain.absolute);
  }
  ExpectInDocument(table);
}

}  // namespace
}  // namespace onnxifi::cuda
