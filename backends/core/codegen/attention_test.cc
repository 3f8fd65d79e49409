// SPDX-License-Identifier: Apache-2.0
//
// The attention kernel on the tested device, compared with the reference: extents around the blocks
// that it takes at a time, every part of a score, types, orders in memory, and what follows where
// scores are infinite, masked or no numbers.

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/attention_problem.h"

namespace onnxifi::codegen {
namespace {

using program::Attention;
using program::Expr;
using reference::RandomStep;
using tensor::ElementType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Problem = AttentionProblem;

class AttentionTest : public StepTest {};

// Each form of these is a kernel, which takes seconds to compile for some devices: what decides the
// form goes together.
TEST_F(AttentionTest, IsRightAroundTheEdgesOfItsBlocks) {
  uint32_t seed = 0;
  for (const int64_t queries : {1, 31, 65}) {
    for (const int64_t keys : {1, 15, 32, 63, 64, 65, 130}) {
      for (const int64_t values : {1, 63, 65, 130}) {
        const int64_t widths[] = {1, 15, 17, 33};
        const Problem problem{.heads = 1 + seed % 2,
                              .queries = queries,
                              .keys = keys,
                              .width = widths[seed / 4 % 4],
                              .values = values,
                              .has_rows_of_keys = values < 64,
                              .is_transposed = seed % 8 == 1};
        SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys of "
                                        << problem.width << ", " << problem.values << " values");
        ExpectRight(MakeAttention(problem, seed++), "generated");
      }
    }
  }
}

// Where there are groups enough none shares its keys, or each takes a part of several blocks: what
// it has of one block shrinks as the next one has larger scores.
TEST_F(AttentionTest, GroupsTakeSeveralBlocksOfKeys) {
  Problem many{.heads = 260, .queries = 17, .keys = 150, .width = 3, .values = 2};
  many.is_growing = true;
  ExpectRight(MakeAttention(many, 70), "generated");
  many.heads = 70;
  many.keys = 64 * 16 - 3;
  ExpectRight(MakeAttention(many, 71), "generated");
  Problem few{.heads = 520, .keys = 300, .width = 3, .values = 2};
  few.is_growing = true;
  ExpectRight(MakeAttention(few, 72), "generated");
  few.heads = 300;
  few.keys = 128 * 7 - 1;
  ExpectRight(MakeAttention(few, 73), "generated");
}

// Also by matrix units, of 16 bits.
TEST_F(AttentionTest, WordsOfOperandsAreRight) {
  uint32_t seed = 40;
  for (const ElementType type : {kFloat, ElementType::kFloat16, ElementType::kBfloat16}) {
    Problem problem{.heads = 2,
                    .sharing = 2,
                    .queries = 50,
                    .width = type == kFloat ? 40 : 136,
                    .values = type == kFloat ? 64 : 104,
                    .type = type};
    for (const int64_t keys : {65, 200}) {
      problem.keys = keys;
      ExpectRight(MakeAttention(problem, seed++), "generated");
    }
    if (type == kFloat) continue;
    problem.has_bias = problem.has_mask = problem.has_epilogue = true;
    problem.values = 24;
    problem.past = 100;
    ExpectRight(MakeAttention(problem, seed++), "generated");
  }
}

// Weights of float16 in large and small parts are as exact as of float32: a small weight of a large
// value counts, and an infinite value stays one.
TEST_F(AttentionTest, WeightsOfHalvesAreExact) {
  const Problem problem{.queries = 40,
                        .keys = 100,
                        .width = 8,
                        .values = 16,
                        .type = ElementType::kFloat16,
                        .scale = 2};
  RandomStep step = MakeAttention(problem, 50);
  SetElements(step, 2, 70 * 16 + 5, 10000, 60000);
  ExpectRight(step, "generated");
  Problem equal = problem;
  equal.scale = 0;
  RandomStep infinite = MakeAttention(equal, 51);
  SetElements(infinite, 2, 70 * 16 + 5, 10000, kInfinity);
  ExpectRight(infinite, "generated");
}

TEST_F(AttentionTest, EveryPartOfAScoreIsRight) {
  const Problem plain{.heads = 2, .queries = 37, .keys = 75, .width = 24, .values = 20};
  // Query 0 sees key 0 alone, in the first of two blocks.
  Problem causal = plain;
  causal.past = 0;
  ExpectRight(MakeAttention(causal, 2), "generated");
  Problem all = plain;
  all.has_bias = all.has_mask = all.has_epilogue = true;
  all.cap = 1.5;
  all.past = 38;
  ExpectRight(MakeAttention(all, 4), "generated");
  all.masked = -1e30;
  ExpectRight(MakeAttention(all, 3), "generated");
}

TEST_F(AttentionTest, HeadsShareKeysAndValues) {
  ExpectRight(MakeAttention({.heads = 2,
                             .sharing = 3,
                             .queries = 40,
                             .keys = 50,
                             .width = 8,
                             .values = 9,
                             .is_transposed = true,
                             .has_bias = true},
                            7),
              "generated");
}

TEST_F(AttentionTest, EveryTypeIsRight) {
  for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
    Problem problem{.heads = 2, .queries = 35, .keys = 68, .width = 20, .values = 70, .type = type};
    problem.has_bias = problem.has_epilogue = true;
    ExpectRight(MakeAttention(problem, 8), "generated");
  }
}

TEST_F(AttentionTest, NothingToWeighIsRightToo) {
  ExpectRight(MakeAttention({.queries = 3, .keys = 0, .width = 4, .values = 5}, 9), "generated");
  ExpectRight(MakeAttention({.queries = 3, .keys = 4, .width = 0, .values = 5}, 10), "generated");
  ExpectRight(MakeAttention({.queries = 0, .keys = 4, .width = 3, .values = 5}, 11), "generated");
  ExpectRight(MakeAttention({.heads = 0, .queries = 2, .keys = 4, .width = 3, .values = 5}, 12),
              "generated");
}

// A decoder's step: rows of several queries and heads share keys, of which groups take parts.
TEST_F(AttentionTest, FewQueriesOfManyKeysAreRight) {
  constexpr auto kFloat16 = ElementType::kFloat16;
  const Problem problems[] = {
      {.heads = 2, .width = 64, .values = 64},
      {.heads = 1, .sharing = 4, .width = 64, .values = 128, .type = kFloat16},
      {.heads = 3, .queries = 3, .width = 33, .values = 9, .has_rows_of_keys = false},
      {.heads = 2,
       .sharing = 3,
       .queries = 5,
       .width = 128,
       .values = 64,
       .type = ElementType::kBfloat16},
      // Two blocks of rows and of values.
      {.sharing = 2, .queries = 16, .width = 40, .values = 130},
  };
  uint32_t seed = 20;
  for (Problem problem : problems) {
    for (const int64_t keys : {129, 700}) {
      problem.keys = keys;
      problem.scale = 0.0625;
      problem.past = keys - problem.queries;
      SCOPED_TRACE(testing::Message()
                   << problem.queries << " queries of " << problem.sharing << " heads, " << keys
                   << " keys of " << problem.width << ", " << problem.values << " values");
      ExpectRight(MakeAttention(problem, seed++), "generated");
    }
  }
}

TEST_F(AttentionTest, EveryPartOfAScoreOfFewQueriesIsRight) {
  Problem problem{.heads = 2, .sharing = 2, .queries = 3, .keys = 500, .width = 24, .values = 20};
  problem.has_bias = problem.has_mask = problem.has_epilogue = true;
  problem.cap = 1.5;
  problem.past = 300;
  ExpectRight(MakeAttention(problem, 60), "generated");
  problem.masked = -1e30;
  ExpectRight(MakeAttention(problem, 61), "generated");
}

TEST_F(AttentionTest, PartsWithoutAScoreWeighNothing) {
  const Problem problem{.sharing = 2, .queries = 2, .keys = 600, .width = 8, .values = 12};
  // The last key alone is seen; then none is.
  for (const int64_t seen : {599, 600}) {
    RandomStep step = MakeAttention(problem, 62);
    program::ExprPool& pool = step.program.exprs;
    const Expr sum = Accumulator(pool, kFloat);
    const Expr is_seen = Coordinate(pool, 3) >= IntConstant(pool, ElementType::kInt64, seen);
    step.program.steps[0].As<Attention>()->score = Select(is_seen, sum, Like(sum, -kInfinity)).id();
    ExpectRight(step, "generated");
    const auto results = RunStep(*device_, step);
    ASSERT_TRUE(results.ok());
    EXPECT_EQ(std::isnan(results->back().AsDouble(0)), seen == 600);
  }
}

TEST_F(AttentionTest, RowsWithoutAScoreAreNanAndNoOthers) {
  // Query q sees the keys below q - 3 only: none, for the first three; in the last block of keys
  // hardly any query sees one, in the first all but those do.
  Problem problem{.queries = 80, .keys = 90, .width = 5, .values = 3};
  problem.past = 0;
  RandomStep step = MakeAttention(problem, 13);
  program::ExprPool& pool = step.program.exprs;
  Attention& attention = *step.program.steps[0].As<Attention>();
  const Expr seen =
      Coordinate(pool, 3) + IntConstant(pool, ElementType::kInt64, 3) < Coordinate(pool, 2);
  const Expr sum = Accumulator(pool, kFloat);
  attention.score = Select(seen, sum, Like(sum, -kInfinity)).id();
  ExpectRight(step, "generated");
  const auto results = RunStep(*device_, step);
  ASSERT_TRUE(results.ok());
  const tensor::Tensor& out = results->back();
  for (int64_t q = 0; q < 80; ++q) {
    EXPECT_EQ(std::isnan(out.AsDouble(q * 3)), q < 4) << q;
  }
  // The keys that are seen last come first in memory: whole blocks are masked before any is not.
  const Expr last = Coordinate(pool, 2) <= Coordinate(pool, 3);
  attention.score = Select(last, sum, Like(sum, -kInfinity)).id();
  ExpectRight(step, "generated");
}

TEST_F(AttentionTest, ScoresMayGrowFromBlockToBlock) {
  // Each block of keys has scores far above those before it, or far below.
  for (const bool grows : {true, false}) {
    RandomStep step = MakeAttention({.queries = 34, .keys = 140, .width = 3, .values = 4}, 14);
    program::ExprPool& pool = step.program.exprs;
    const Expr sum = Accumulator(pool, kFloat);
    const Expr key = Cast(Coordinate(pool, 3), kFloat);
    step.program.steps[0].As<Attention>()->score = (sum + key * Like(sum, grows ? 3.0 : -3.0)).id();
    ExpectRight(step, "generated");
  }
}

TEST_F(AttentionTest, InfinitiesAndNanReachTheirRowsAndNoOthers) {
  const Problem problem{.queries = 40, .keys = 70, .width = 4, .values = 5};
  const size_t q = 0, k = 1, v = 2;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double value : {nan, kInfinity, -kInfinity}) {
    // One element of query 33, of key 40, of value 3 of key 65.
    RandomStep one = MakeAttention(problem, 15);
    SetElements(one, q, 33 * 4 + 1, 1000, value);
    ExpectRight(one, "generated");
    RandomStep two = MakeAttention(problem, 16);
    SetElements(two, k, 40 * 4, 1000, value);
    ExpectRight(two, "generated");
    RandomStep three = MakeAttention(problem, 17);
    SetElements(three, v, 65 * 5 + 3, 1000, value);
    ExpectRight(three, "generated");
  }
  // Of parts of the keys of few queries.
  const Problem few{.queries = 3, .keys = 400, .width = 4, .values = 5};
  for (const double value : {nan, kInfinity, -kInfinity}) {
    RandomStep one = MakeAttention(few, 19);
    SetElements(one, q, 1 * 4 + 1, 1000, value);
    ExpectRight(one, "generated");
    RandomStep two = MakeAttention(few, 19);
    SetElements(two, k, 290 * 4, 10000, value);
    ExpectRight(two, "generated");
    RandomStep three = MakeAttention(few, 19);
    SetElements(three, v, 399 * 5 + 3, 10000, value);
    ExpectRight(three, "generated");
  }
  // A masked key has weight 0, and 0 * infinity is no number.
  Problem causal = problem;
  causal.past = 0;
  RandomStep masked = MakeAttention(causal, 18);
  SetElements(masked, v, 69 * 5, 1000, kInfinity);
  ExpectRight(masked, "generated");
}

}  // namespace
}  // namespace onnxifi::codegen
