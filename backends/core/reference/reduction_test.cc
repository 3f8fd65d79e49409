// SPDX-License-Identifier: Apache-2.0
//
// Reduce, Row and Scan on the reference against loops in float64: sums of few and of many elements,
// positions of maxima, softmax, running sums, empty reductions.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "backends/core/reference/testing/one_step.h"

namespace onnxifi::reference {
namespace {

using program::Expr;
using program::ExprOp;
using tensor::ElementType;

constexpr ElementType kFloat = ElementType::kFloat32;
constexpr ElementType kInt64 = ElementType::kInt64;

program::Reduction SumReduction(program::ExprPool& pool, Expr element) {
  const Expr sum = State(pool, kFloat, 0);
  return {{{kFloat, Constant(pool, kFloat, 0).id(), (sum + element).id(),
            (sum + Other(pool, kFloat, 0)).id()}}};
}

void ExpectSums(int64_t rows, int64_t columns) {
  OneStep one;
  const std::vector<float> x = RandomFloats(rows * columns, 5);
  one.Read(kFloat, {rows, columns}, x);
  one.step.domain = {rows, columns};
  one.Write(kFloat, {rows}, std::vector<float>(static_cast<size_t>(rows), -99));
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.reduction = SumReduction(one.pool(), Load(one.pool(), kFloat, 0));
  reduce.roots = {State(one.pool(), kFloat, 0).id()};
  one.step.body = reduce;
  const std::vector<float> out = one.Run<float>();
  ASSERT_EQ(out.size(), static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t column = 0; column < columns; ++column) sum += x[row * columns + column];
    ASSERT_NEAR(out[row], sum, 1e-6 * (1 + std::sqrt(columns))) << rows << " x " << columns;
  }
}

TEST(ReduceTest, SumsRowsOfAnyLength) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{1, 1},
                                                                              {3, 0},
                                                                              {0, 3},
                                                                              {500, 3},
                                                                              {1, 63},
                                                                              {2, 64},
                                                                              {1, 1000},
                                                                              {130, 129},
                                                                              {1, 100000}}) {
    ExpectSums(rows, columns);
  }
}

TEST(ReduceTest, FirstMaximumWins) {
  for (const int64_t columns : {int64_t{7}, int64_t{333}}) {
    OneStep one;
    std::mt19937 random(11);
    std::vector<int64_t> x(static_cast<size_t>(5 * columns));
    for (int64_t& value : x) value = static_cast<int64_t>(random() % 4);
    one.Read(kInt64, {5, columns}, x);
    one.step.domain = {5, columns};
    one.Write(kInt64, {5}, std::vector<int64_t>(5));
    program::ExprPool& pool = one.pool();
    const Expr best = State(pool, kInt64, 0), at = State(pool, kInt64, 1);
    const Expr value = Load(pool, kInt64, 0), position = Coordinate(pool, 1);
    const Expr other = Other(pool, kInt64, 0), other_at = Other(pool, kInt64, 1);
    auto wins = [&](Expr v, Expr p) { return (best < v) || ((best == v) && (p < at)); };
    program::Reduce reduce;
    reduce.axes = 1;
    reduce.reduction.states = {{kInt64, IntConstant(pool, kInt64, INT64_MIN).id(),
                                Select(wins(value, position), value, best).id(),
                                Select(wins(other, other_at), other, best).id()},
                               {kInt64, IntConstant(pool, kInt64, INT64_MAX).id(),
                                Select(wins(value, position), position, at).id(),
                                Select(wins(other, other_at), other_at, at).id()}};
    reduce.roots = {at.id()};
    one.step.body = reduce;
    const std::vector<int64_t> out = one.Run<int64_t>();
    for (int row = 0; row < 5; ++row) {
      const auto begin = x.begin() + row * columns;
      ASSERT_EQ(out[row], std::max_element(begin, begin + columns) - begin);
    }
  }
}

TEST(ReduceTest, SplittingTheWorkChangesNoBit) {
  // Each range alone, in reverse.
  class Reversed final : public device::Parallel {
   public:
    void For(int64_t count, int64_t grain,
             const std::function<void(int64_t, int64_t)>& body) override {
      for (int64_t begin = (count - 1) / grain * grain; begin >= 0; begin -= grain) {
        body(begin, std::min(count, begin + grain));
      }
    }
  };
  OneStep one;
  const int64_t rows = 900, columns = 77;
  std::vector<float> x = RandomFloats(rows * columns, 3);
  one.Read(kFloat, {rows, columns}, x);
  one.step.domain = {rows, columns};
  one.Write(kFloat, {rows}, std::vector<float>(rows));
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.reduction = SumReduction(one.pool(), Load(one.pool(), kFloat, 0));
  reduce.roots = {State(one.pool(), kFloat, 0).id()};
  one.step.body = reduce;
  const std::vector<float> expected = one.Run<float>();
  Reversed reversed;
  Device device(reversed);
  base::Result<device::Selection> selection = device.Select({one.program, one.program.steps[0]});
  ASSERT_TRUE(selection.ok());
  std::vector<float> out(rows);
  std::byte* const addresses[] = {reinterpret_cast<std::byte*>(x.data()),
                                  reinterpret_cast<std::byte*>(out.data())};
  base::Result<std::unique_ptr<device::Kernel>> kernel = device.Build(*selection->recipe);
  base::Result<std::unique_ptr<device::BoundKernel>> bound =
      (*kernel)->Bind(device::Bind(one.program, one.program.steps[0], {}), addresses);
  ASSERT_TRUE((*bound)->Run(addresses).ok());
  EXPECT_EQ(out, expected);
}

TEST(RowTest, SoftmaxAndItsSum) {
  for (const int64_t columns : {int64_t{1}, int64_t{10}, int64_t{64}, int64_t{1000}}) {
    const int64_t rows = columns == 10 ? 300 : 3;
    OneStep one;
    const std::vector<float> x = RandomFloats(rows * columns, 8);
    const program::Shape domain = {rows, columns};
    one.Read(kFloat, domain, x);
    one.step.domain = domain;
    one.Write(kFloat, domain, std::vector<float>(x.size()));
    one.Write(kFloat, {rows}, std::vector<float>(static_cast<size_t>(rows)));
    one.step.writes[1].strides = {1, 0};
    program::ExprPool& pool = one.pool();
    const Expr element = Load(pool, kFloat, 0), state = State(pool, kFloat, 0);
    program::Row row;
    row.axes = 1;
    const Expr lowest = Constant(pool, kFloat, -std::numeric_limits<float>::infinity());
    row.passes.push_back({{{{kFloat, lowest.id(), Maximum(state, element).id(),
                             Maximum(state, Other(pool, kFloat, 0)).id()}}},
                          {state.id()}});
    const Expr power = Unary(ExprOp::kExp, element - RowResult(pool, kFloat, 0, 0));
    row.passes.push_back({SumReduction(pool, power), {state.id()}});
    const Expr sum = RowResult(pool, kFloat, 1, 0);
    row.roots = {(power / sum).id(), sum.id()};
    one.step.body = std::move(row);
    const std::vector<float> out = one.Run<float>(0);
    const std::vector<float> sums = one.Run<float>(1);
    for (int64_t r = 0; r < rows; ++r) {
      const float* in = x.data() + r * columns;
      const double highest = *std::max_element(in, in + columns);
      double total = 0;
      for (int64_t c = 0; c < columns; ++c) total += std::exp(in[c] - highest);
      ASSERT_NEAR(sums[r], total, 1e-5 * total);
      for (int64_t c = 0; c < columns; ++c) {
        ASSERT_NEAR(out[r * columns + c], std::exp(in[c] - highest) / total, 1e-6);
      }
    }
  }
}

TEST(RowTest, EmptyRowsStillHaveResults) {
  OneStep one;
  one.Read(kFloat, {4, 0}, std::vector<float>());
  one.step.domain = {4, 0};
  one.Write(kFloat, {4}, std::vector<float>(4, -1));
  one.step.writes[0].strides = {1, 0};
  program::Row row;
  row.axes = 1;
  row.passes.push_back(
      {SumReduction(one.pool(), Load(one.pool(), kFloat, 0)), {State(one.pool(), kFloat, 0).id()}});
  row.roots = {RowResult(one.pool(), kFloat, 0, 0).id()};
  one.step.body = std::move(row);
  EXPECT_EQ(one.Run<float>(), std::vector<float>(4, 0));
}

TEST(ScanTest, RunningSums) {
  for (const bool exclusive : {false, true}) {
    OneStep one;
    const std::vector<float> x = RandomFloats(200 * 9, 2);
    const program::Shape domain = {200, 9};
    one.Read(kFloat, domain, x);
    one.step.domain = domain;
    one.Write(kFloat, domain, std::vector<float>(x.size()));
    program::Scan scan;
    scan.exclusive = exclusive;
    scan.reduction = SumReduction(one.pool(), Load(one.pool(), kFloat, 0));
    scan.reduction.states[0].merge = program::kNoExpr;
    scan.roots = {State(one.pool(), kFloat, 0).id()};
    one.step.body = std::move(scan);
    const std::vector<float> out = one.Run<float>();
    for (int row = 0; row < 200; ++row) {
      double sum = 0;
      for (int k = 0; k < 9; ++k) {
        if (!exclusive) sum += x[row * 9 + k];
        ASSERT_NEAR(out[row * 9 + k], sum, 1e-5);
        if (exclusive) sum += x[row * 9 + k];
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::reference
