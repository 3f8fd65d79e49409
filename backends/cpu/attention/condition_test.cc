// SPDX-License-Identifier: Apache-2.0
//
// Condition against every coordinate of a range: what it is sure of holds at each of them.

#include "backends/cpu/attention/condition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>

namespace onnxifi::attention {
namespace {

using program::Expr;
using program::ExprPool;
using tensor::ElementType;

// Axes 0 and 1 are queries and keys.
struct Case {
  std::function<Expr(ExprPool&, Expr q, Expr k)> make;
  std::function<bool(int64_t q, int64_t k)> holds;
  int least_decided;  // of the ranges tried, so many at least
};

Expr Number(ExprPool& pool, int64_t value) { return IntConstant(pool, ElementType::kInt64, value); }

void Check(const Case& test) {
  ExprPool pool;
  const Expr made = test.make(pool, Coordinate(pool, 0), Coordinate(pool, 1));
  ASSERT_TRUE(Condition::IsOne(pool, made.id()));
  const Condition condition(pool, made.id());
  int decided = 0;
  for (int64_t q = 0; q < 24; q += 8) {
    for (int64_t k = 0; k < 24; k += 8) {
      CoordinateRange range;
      range.first = {q, k};
      range.last = {q + 7, k + 7};
      const Truth truth = condition.Over(range);
      bool all = true, none = true;
      for (int64_t y = q; y < q + 8; ++y) {
        for (int64_t x = k; x < k + 8; ++x) (test.holds(y, x) ? none : all) = false;
      }
      if (truth == Truth::kAlways) {
        EXPECT_TRUE(all) << q << ", " << k;
      }
      if (truth == Truth::kNever) {
        EXPECT_TRUE(none) << q << ", " << k;
      }
      decided += truth == Truth::kUnknown ? 0 : 1;
    }
  }
  EXPECT_GE(decided, test.least_decided);
}

TEST(ConditionTest, DecidesMasks) {
  const Case cases[] = {
      {[](ExprPool&, Expr q, Expr k) { return k <= q; },
       [](int64_t q, int64_t k) { return k <= q; }, 6},
      {[](ExprPool& pool, Expr q, Expr k) { return q + Number(pool, 3) < k; },
       [](int64_t q, int64_t k) { return q + 3 < k; }, 4},
      {[](ExprPool& pool, Expr q, Expr k) { return !(k > q) && k > q - Number(pool, 6); },
       [](int64_t q, int64_t k) { return k <= q && k > q - 6; }, 4},
      {[](ExprPool& pool, Expr q, Expr k) {
         return k < Number(pool, 8) || q * Number(pool, -2) + k == Number(pool, 100);
       },
       [](int64_t q, int64_t k) { return k < 8 || -2 * q + k == 100; }, 9},
      {[](ExprPool& pool, Expr q, Expr k) {
         return Select(q < Number(pool, 8), k < Number(pool, 8), k >= Number(pool, 8));
       },
       [](int64_t q, int64_t k) { return q < 8 ? k < 8 : k >= 8; }, 9},
      {[](ExprPool& pool, Expr q, Expr k) {
         return Maximum(q, -k) <= Minimum(k, Number(pool, 15));
       },
       [](int64_t q, int64_t k) { return std::max(q, -k) <= std::min<int64_t>(k, 15); }, 3},
      {[](ExprPool& pool, Expr q, Expr k) {
         const Expr narrow = Cast(q, ElementType::kInt32) + Cast(k, ElementType::kInt32);
         return narrow < IntConstant(pool, ElementType::kInt32, 16);
       },
       [](int64_t q, int64_t k) { return q + k < 16; }, 5},
  };
  for (const Case& test : cases) Check(test);
}

// A sum that wraps says nothing.
TEST(ConditionTest, KnowsNothingOfWhatWraps) {
  ExprPool pool;
  const Expr far = Number(pool, std::numeric_limits<int64_t>::max() - 3);
  const Expr made = Coordinate(pool, 0) + far < Number(pool, 0);
  ASSERT_TRUE(Condition::IsOne(pool, made.id()));
  CoordinateRange range;
  range.last = {7, 0};
  EXPECT_EQ(Condition(pool, made.id()).Over(range), Truth::kUnknown);
}

TEST(ConditionTest, TakesNothingFromMemoryAndNoFloats) {
  ExprPool pool;
  const Expr load = Load(pool, ElementType::kBool, 0);
  EXPECT_FALSE(Condition::IsOne(pool, load.id()));
  EXPECT_FALSE(Condition::IsOne(pool, (load && Coordinate(pool, 0) < Number(pool, 3)).id()));
  const Expr real = Cast(Coordinate(pool, 0), ElementType::kFloat32);
  EXPECT_FALSE(Condition::IsOne(pool, (real < Like(real, 2.5)).id()));
  EXPECT_FALSE(Condition::IsOne(pool, Coordinate(pool, 0).id()));
}

}  // namespace
}  // namespace onnxifi::attention
