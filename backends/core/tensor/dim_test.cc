// SPDX-License-Identifier: Apache-2.0
//
// Dim: the normal form (equal expressions are one node), evaluation against plain integer
// arithmetic, bounds that hold, and expressions built to explode.

#include "backends/core/tensor/dim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace onnxifi::tensor {
namespace {

// A random expression together with a plain function that computes it.
struct Pair {
  Dim dim;
  std::function<int64_t(const std::vector<int64_t>&)> compute;
};

int64_t FloorQuotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t Evaluate(const DimTable& table, const Dim& dim, const std::vector<int64_t>& symbols) {
  std::vector<int64_t> values(table.node_count());
  table.Evaluate(symbols, 0, table.symbol_count(), values);
  return ValueOf(dim, values);
}

TEST(DimTest, EqualExpressionsAreOneNode) {
  DimTable table;
  const Dim n = table.NewSymbol("N", false);
  const Dim m = table.NewSymbol("M", false);
  EXPECT_EQ(n + m, m + n);
  EXPECT_EQ(n * m, m * n);
  EXPECT_EQ((n + 1) * (n - 1), n * n - 1);
  EXPECT_EQ(n + m - n, m);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_EQ(n * 0, Dim(0));
  EXPECT_EQ(Min(n, m), Min(m, n));
  EXPECT_EQ(Max(n, m), Max(m, n));
  EXPECT_EQ(Equal(n, m), Equal(m, n));
  EXPECT_FALSE(n == m);
}

TEST(DimTest, DivisionsAreCarriedOut) {
  DimTable table;
  const Dim n = table.NewSymbol("N", false);
  const Dim m = table.NewSymbol("M", false);
  EXPECT_EQ(FloorDiv(n * m * 6, m * 2), n * 3);
  EXPECT_EQ(FloorDiv(n * 4 + 2, 4), n);
  EXPECT_EQ(Mod(n * 4 + 3, 4), Dim(3));
  EXPECT_EQ(CeilDiv(n * 4, 4), n);
  EXPECT_EQ(FloorDiv(n, n), Dim(1));
  EXPECT_EQ(FloorDiv(Dim(-7), Dim(2)), Dim(-4));
  EXPECT_EQ(FloorDiv(Dim(7), Dim(0)), Dim(0));
}

TEST(DimTest, BoundsDecideComparisons) {
  DimTable table;
  const Dim n = table.NewSymbol("N", false);
  EXPECT_EQ(Max(n, 0), n);
  EXPECT_EQ(Min(n + 1, 0), Dim(0));
  EXPECT_EQ(Less(n, 0), Dim(0));
  EXPECT_EQ(Less(n, n + 1), Dim(1));
  EXPECT_EQ(Equal(n, n + 2), Dim(0));
  EXPECT_FALSE(Less(n, 5).is_constant());
  EXPECT_EQ((n * 3 + 2).LowerBound(), 2);
  EXPECT_EQ(FloorDiv(n - 5, 2).LowerBound(), -3);
  EXPECT_EQ(Min(n, 7).UpperBound(), 7);
}

TEST(DimTest, ArithmeticSaturates) {
  constexpr int64_t kMax = INT64_MAX;
  EXPECT_EQ(Dim(kMax) + Dim(1), Dim(kMax));
  EXPECT_EQ(Dim(kMax) * Dim(2), Dim(kMax));
  EXPECT_EQ(Dim(kMax) * Dim(-2), Dim(INT64_MIN));
  EXPECT_EQ(FloorDiv(Dim(INT64_MIN), Dim(-1)), Dim(kMax));
  DimTable table;
  const Dim n = table.NewSymbol("N", false);
  EXPECT_EQ(Evaluate(table, n * n, {int64_t{1} << 40}), kMax);
  // Coefficients that saturate must not trap when divided.
  const Dim huge = n * Dim(INT64_MIN);
  const Dim quotient = FloorDiv(huge, -1);
  EXPECT_EQ(Evaluate(table, quotient, {1}), kMax);
}

TEST(DimTest, RandomExpressionsEvaluateAsPlainArithmetic) {
  std::mt19937_64 random(20240917);
  for (int round = 0; round < 3000; ++round) {
    DimTable table;
    std::vector<Pair> pool;
    for (int s = 0; s < 3; ++s) {
      pool.push_back({table.NewSymbol("s" + std::to_string(s), false),
                      [s](const std::vector<int64_t>& v) { return v[s]; }});
    }
    for (int64_t c : {-2, 0, 1, 3}) {
      pool.push_back({Dim(c), [c](const std::vector<int64_t>&) { return c; }});
    }
    for (int step = 0; step < 10; ++step) {
      const Pair a = pool[random() % pool.size()];
      const Pair b = pool[random() % pool.size()];
      const Pair c = pool[random() % pool.size()];
      auto binary = [&](Dim dim, auto f) {
        pool.push_back({dim, [a, b, f](const std::vector<int64_t>& v) {
                          return f(a.compute(v), b.compute(v));
                        }});
      };
      // Values stay small enough that nothing saturates; symbols are at least 1, as division
      // assumes of divisors.
      const bool is_small = a.compute({9, 9, 9}) < 10000 && b.compute({9, 9, 9}) < 10000 &&
                            a.compute({9, 9, 9}) > -10000 && b.compute({9, 9, 9}) > -10000;
      switch (random() % 9) {
        case 0:
          binary(a.dim + b.dim, [](int64_t x, int64_t y) { return x + y; });
          break;
        case 1:
          binary(a.dim - b.dim, [](int64_t x, int64_t y) { return x - y; });
          break;
        case 2:
          if (is_small) binary(a.dim * b.dim, [](int64_t x, int64_t y) { return x * y; });
          break;
        case 3: {
          const int64_t divisor = static_cast<int64_t>(random() % 5) + 1;
          pool.push_back({FloorDiv(a.dim, divisor), [a, divisor](const std::vector<int64_t>& v) {
                            return FloorQuotient(a.compute(v), divisor);
                          }});
          break;
        }
        case 4:
          binary(Min(a.dim, b.dim), [](int64_t x, int64_t y) { return std::min(x, y); });
          break;
        case 5:
          binary(Max(a.dim, b.dim), [](int64_t x, int64_t y) { return std::max(x, y); });
          break;
        case 6:
          binary(Equal(a.dim, b.dim), [](int64_t x, int64_t y) { return int64_t{x == y}; });
          break;
        case 7:
          binary(Less(a.dim, b.dim), [](int64_t x, int64_t y) { return int64_t{x < y}; });
          break;
        case 8:
          pool.push_back({Select(c.dim, a.dim, b.dim), [a, b, c](const std::vector<int64_t>& v) {
                            return c.compute(v) != 0 ? a.compute(v) : b.compute(v);
                          }});
          break;
      }
    }
    for (int binding = 0; binding < 4; ++binding) {
      std::vector<int64_t> symbols(3);
      for (int64_t& symbol : symbols) symbol = static_cast<int64_t>(random() % 9) + 1;
      std::vector<int64_t> values(table.node_count());
      table.Evaluate(symbols, 0, 3, values);
      for (const Pair& pair : pool) {
        const int64_t value = ValueOf(pair.dim, values);
        ASSERT_EQ(value, pair.compute(symbols)) << pair.dim.ToString();
        ASSERT_GE(value, pair.dim.LowerBound()) << pair.dim.ToString();
        ASSERT_LE(value, pair.dim.UpperBound()) << pair.dim.ToString();
      }
    }
  }
}

TEST(DimTest, EvaluatesInRangesAsSymbolsBecomeKnown) {
  DimTable table;
  const Dim n = table.NewSymbol("N", false);
  const Dim count = table.NewSymbol("count", true);
  const Dim early = n * 2;
  const Dim late = count + n;
  std::vector<int64_t> values(table.node_count(), -1);
  std::vector<int64_t> symbols = {5, 0};
  table.Evaluate(symbols, 0, 1, values);
  EXPECT_EQ(ValueOf(early, values), 10);
  EXPECT_EQ(ValueOf(late, values), -1);
  symbols[1] = 7;
  table.Evaluate(symbols, 1, 2, values);
  EXPECT_EQ(ValueOf(late, values), 12);
}

TEST(DimTest, RepeatedSquaringStaysSmall) {
  DimTable table;
  Dim power = table.NewSymbol("N", false);
  for (int k = 0; k < 200; ++k) power = power * power;
  EXPECT_LE(table.node_count(), 500);
  EXPECT_LT(power.ToString().size(), 2000u);
  EXPECT_EQ(Evaluate(table, power, {1}), 1);
  EXPECT_EQ(Evaluate(table, power, {2}), INT64_MAX);
}

TEST(DimTest, LongSumsStaySmall) {
  DimTable table;
  Dim sum = 0;
  int64_t expected = 0;
  std::vector<int64_t> symbols;
  for (int k = 0; k < 2000; ++k) {
    sum = sum + table.NewSymbol("s" + std::to_string(k), false) * (k % 7 + 1);
    symbols.push_back(k);
    expected += k * (k % 7 + 1);
  }
  for (int id = 0; id < table.node_count(); ++id) ASSERT_LE(table.node(id).terms.size(), 64u);
  EXPECT_EQ(Evaluate(table, sum, symbols), expected);
  EXPECT_EQ(sum - sum, Dim(0));
}

TEST(DimTest, TextOfHostileNestingIsShort) {
  DimTable table;
  const Dim n = table.NewSymbol("N", false);
  Dim nested = n;
  for (int k = 0; k < 100000; ++k) nested = Min(nested * 2, Max(FloorDiv(nested, 3), n + k));
  EXPECT_LT(nested.ToString().size(), 4000u);
  EXPECT_EQ((n * 2 + 1).ToString(), "2*N + 1");
  EXPECT_EQ(ToString(Shape{n, 3}), "[N, 3]");
}

}  // namespace
}  // namespace onnxifi::tensor
