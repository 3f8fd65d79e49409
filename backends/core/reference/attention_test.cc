// SPDX-License-Identifier: Apache-2.0
//
// Attention on the reference against loops in float64 that keep every score, and what follows from
// the definition where there is nothing to weigh.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/core/reference/testing/one_step.h"

namespace onnxifi::reference {
namespace {

using program::Attention;
using program::Expr;
using program::ExprOp;
using tensor::ElementType;

constexpr ElementType kFloat = ElementType::kFloat32;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [batch, queries, values] with a head for all of a batch.
struct Problem {
  int batch, queries, keys, width, values;
};

// A step of dense operands whose score is `score` of the sum; V and K as they are given.
template <typename Score>
std::vector<float> RunAttention(const Problem& p, const std::vector<float>& q,
                                const std::vector<float>& k, const std::vector<float>& v,
                                const Score& score) {
  OneStep one;
  one.Read(kFloat, {p.batch, p.queries, p.width}, q);
  // K lies as [batch, keys, width].
  one.Read(kFloat, {p.batch, p.width, p.keys}, k);
  one.step.reads[1].strides = {p.keys * p.width, 1, p.width};
  one.Read(kFloat, {p.batch, p.keys, p.values}, v);
  one.step.domain = {p.batch, p.queries, p.values};
  one.Write(kFloat, one.step.domain,
            std::vector<float>(static_cast<size_t>(p.batch * p.queries * p.values), -7));
  program::ExprPool& pool = one.pool();
  Attention attention;
  attention.keys = p.keys;
  attention.width = p.width;
  attention.query_prologue = Load(pool, kFloat, 0).id();
  attention.key_prologue = Load(pool, kFloat, 1).id();
  attention.value_prologue = Load(pool, kFloat, 2).id();
  attention.score = score(one, Accumulator(pool, kFloat)).id();
  attention.roots = {Accumulator(pool, kFloat).id()};
  one.step.body = std::move(attention);
  return one.Run<float>();
}

// The same with the score as a function of its sum, batch, query and key.
template <typename Score>
std::vector<double> Expected(const Problem& p, const std::vector<float>& q,
                             const std::vector<float>& k, const std::vector<float>& v,
                             const Score& score) {
  std::vector<double> out;
  const auto at = [](const std::vector<float>& values, int index) {
    return static_cast<double>(values[static_cast<size_t>(index)]);
  };
  for (int b = 0; b < p.batch; ++b) {
    for (int m = 0; m < p.queries; ++m) {
      std::vector<double> scores;
      for (int n = 0; n < p.keys; ++n) {
        double sum = 0;
        for (int c = 0; c < p.width; ++c) {
          sum += at(q, (b * p.queries + m) * p.width + c) * at(k, (b * p.keys + n) * p.width + c);
        }
        scores.push_back(score(sum, b, m, n));
      }
      for (int c = 0; c < p.values; ++c) {
        double sum = 0;
        double total = 0;
        for (int n = 0; n < p.keys; ++n) {
          const double weight = std::exp(scores[static_cast<size_t>(n)]);
          sum += weight * at(v, (b * p.keys + n) * p.values + c);
          total += weight;
        }
        out.push_back(p.keys == 0 ? 0 : sum / total);
      }
    }
  }
  return out;
}

void ExpectNear(const std::vector<float>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t n = 0; n < expected.size(); ++n) {
    ASSERT_NEAR(static_cast<double>(actual[n]), expected[n], 2e-6) << "element " << n;
  }
}

TEST(AttentionTest, WeighsValuesByTheSoftmaxOfScaledScores) {
  // More keys than the reference takes at a time.
  const Problem p = {3, 7, 131, 5, 9};
  const std::vector<float> q = RandomFloats(p.batch * p.queries * p.width, 1);
  const std::vector<float> k = RandomFloats(p.batch * p.keys * p.width, 2);
  const std::vector<float> v = RandomFloats(p.batch * p.keys * p.values, 3);
  const auto out =
      RunAttention(p, q, k, v, [](OneStep&, Expr sum) { return sum * Like(sum, 0.375); });
  ExpectNear(out, Expected(p, q, k, v, [](double sum, int, int, int) { return sum * 0.375; }));
}

TEST(AttentionTest, CapsAndMasksScoresByTheirCoordinates) {
  const Problem p = {2, 6, 11, 4, 3};
  const std::vector<float> q = RandomFloats(p.batch * p.queries * p.width, 4);
  const std::vector<float> k = RandomFloats(p.batch * p.keys * p.width, 5);
  const std::vector<float> v = RandomFloats(p.batch * p.keys * p.values, 6);
  // Per batch and key; query m sees key n up to its own position behind 5 past ones.
  const std::vector<float> bias = RandomFloats(p.batch * p.keys, 7);
  constexpr int kPast = 5;
  const auto out = RunAttention(p, q, k, v, [&](OneStep& one, Expr sum) {
    program::ExprPool& pool = one.pool();
    const int read = one.Read(kFloat, {p.batch, p.queries, p.keys}, bias);
    one.step.reads[static_cast<size_t>(read)].strides = {p.keys, 0, 1};
    const Expr capped = Unary(ExprOp::kTanh, sum / Like(sum, 2)) * Like(sum, 2);
    const Expr past = IntConstant(pool, ElementType::kInt64, kPast);
    return Select(Coordinate(pool, 2) <= Coordinate(pool, 1) + past,
                  capped + Load(pool, kFloat, read), Like(sum, -kInfinity));
  });
  ExpectNear(out, Expected(p, q, k, v, [&](double sum, int b, int m, int n) {
               if (n > m + kPast) return -kInfinity;
               return std::tanh(sum / 2) * 2 +
                      static_cast<double>(bias[static_cast<size_t>(b * p.keys + n)]);
             }));
}

TEST(AttentionTest, LargeScoresOverflowNothing) {
  const Problem p = {1, 2, 4, 1, 1};
  const auto out = RunAttention(p, {1, -1}, {1000, 1001, 500, -300}, {1, 2, 4, 8},
                                [](OneStep&, Expr sum) { return sum; });
  EXPECT_NEAR(out[0], (1 + 2 * std::exp(1.0)) / (1 + std::exp(1.0)), 1e-6);
  EXPECT_FLOAT_EQ(out[1], 8);
}

TEST(AttentionTest, WithoutKeysTheSumsAreZeroAndWithoutScoresNan) {
  const Problem none = {1, 2, 0, 3, 2};
  EXPECT_EQ(
      RunAttention(none, std::vector<float>(6), {}, {}, [](OneStep&, Expr sum) { return sum; }),
      std::vector<float>(4, 0));
  // Query 0 sees no key, query 1 sees the first.
  const Problem p = {1, 2, 3, 1, 1};
  const auto out = RunAttention(p, {1, 1}, {1, 2, 3}, {5, 6, 7}, [](OneStep& one, Expr sum) {
    return Select(Coordinate(one.pool(), 2) < Coordinate(one.pool(), 1), sum,
                  Like(sum, -kInfinity));
  });
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 5);
}

TEST(AttentionTest, WithoutWidthAllKeysWeighTheSame) {
  const Problem p = {1, 1, 4, 0, 1};
  EXPECT_EQ(RunAttention(p, {}, {}, {1, 2, 3, 6}, [](OneStep&, Expr sum) { return sum; }),
            std::vector<float>{3});
}

TEST(AttentionTest, InfiniteScoresAndNanMakeTheirRowNan) {
  const Problem p = {1, 3, 3, 1, 1};
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto infinity = std::numeric_limits<float>::infinity();
  const auto out = RunAttention(p, {1, nan, infinity}, {1, 2, 3}, {5, 6, 7},
                                [](OneStep&, Expr sum) { return sum; });
  EXPECT_FALSE(std::isnan(out[0]));
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_TRUE(std::isnan(out[2]));
}

// Heads 0 to 5 of queries share heads 0 to 1 of keys and values, three each.
TEST(AttentionTest, HeadsOfQueriesShareKeysByStrides) {
  constexpr int kHeads = 2, kShared = 3, kQueries = 4, kKeys = 5, kWidth = 3;
  const std::vector<float> q = RandomFloats(kHeads * kShared * kQueries * kWidth, 8);
  const std::vector<float> k = RandomFloats(kHeads * kKeys * kWidth, 9);
  const std::vector<float> v = RandomFloats(kHeads * kKeys * kWidth, 10);
  OneStep one;
  one.Read(kFloat, {kHeads, kShared, kQueries, kWidth}, q);
  one.Read(kFloat, {kHeads, kWidth, kKeys}, k);
  one.step.reads[1].strides = {kKeys * kWidth, 0, 1, kWidth};
  one.Read(kFloat, {kHeads, kKeys, kWidth}, v);
  one.step.reads[2].strides = {kKeys * kWidth, 0, kWidth, 1};
  one.step.domain = {kHeads, kShared, kQueries, kWidth};
  one.Write(kFloat, one.step.domain, std::vector<float>(q.size()));
  program::ExprPool& pool = one.pool();
  Attention attention;
  attention.keys = kKeys;
  attention.width = kWidth;
  attention.query_prologue = Load(pool, kFloat, 0).id();
  attention.key_prologue = Load(pool, kFloat, 1).id();
  attention.value_prologue = Load(pool, kFloat, 2).id();
  attention.score = Accumulator(pool, kFloat).id();
  attention.roots = {Accumulator(pool, kFloat).id()};
  one.step.body = std::move(attention);
  const std::vector<float> out = one.Run<float>();
  std::vector<double> expected;
  for (int head = 0; head < kHeads * kShared; ++head) {
    const auto part = [](const std::vector<float>& all, int n, int parts) {
      const auto size = static_cast<int64_t>(all.size()) / parts;
      return std::vector<float>(all.begin() + n * size, all.begin() + (n + 1) * size);
    };
    const auto of_head =
        Expected({1, kQueries, kKeys, kWidth, kWidth}, part(q, head, kHeads * kShared),
                 part(k, head / kShared, kHeads), part(v, head / kShared, kHeads),
                 [](double sum, int, int, int) { return sum; });
    expected.insert(expected.end(), of_head.begin(), of_head.end());
  }
  ExpectNear(out, expected);
}

}  // namespace
}  // namespace onnxifi::reference
