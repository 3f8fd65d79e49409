// SPDX-License-Identifier: Apache-2.0
//
// Vector functions of float64 against the C library in the wider float of x86: random numbers of
// every exponent, numbers where the functions bend, and special values. The bounds are those of
// vector_math/float64-inl.h.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/engine/loop.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

using program::ExprOp;
using tensor::ElementType;
using Wide = long double;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMax = std::numeric_limits<double>::max();

struct Function {
  const char* name;
  ExprOp op;
  Wide (*exact)(Wide);
  Wide bound;  // in units in the last place
};

std::vector<double> Evaluate(ExprOp op, const std::vector<double>& x) {
  const Loop loop = FindFunctionLoop(op, ElementType::kFloat64);
  EXPECT_NE(loop, nullptr);
  std::vector<double> y(x.size(), -777.0);
  loop({reinterpret_cast<std::byte*>(y.data()),
        {reinterpret_cast<const std::byte*>(x.data())},
        static_cast<int64_t>(x.size()),
        0,
        ElementType::kFloat64,
        ElementType::kFloat64});
  return y;
}

// The distance of two neighbours at the size of `value`.
Wide UnitOf(Wide value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(Wide{1}, std::max(exponent - 53, -1074));
}

class Float64FunctionsTest : public ::testing::TestWithParam<Function> {};

void CheckBound(const Function& function, const char* target) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> near(-1, 1), far(-800, 800), around_one(0.5, 1.5),
      angle(-1e6, 1e6);
  std::vector<double> x;
  for (int k = 0; k < 60'000; ++k) {
    x.push_back(std::bit_cast<double>(random()));
    x.push_back(near(random));
    x.push_back(far(random));
    x.push_back(around_one(random));
    x.push_back(angle(random));
    x.push_back(std::ldexp(near(random), -static_cast<int>(random() % 64)));
  }
  const std::vector<double> y = Evaluate(function.op, x);
  Wide worst = 0;
  double worst_at = 0;
  int64_t compared = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const Wide exact = function.exact(static_cast<Wide>(x[k]));
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(y[k])) << x[k];
      continue;
    }
    if (std::fabs(exact) > static_cast<Wide>(kMax)) {
      // Rounds to the largest number or to infinity.
      ASSERT_GE(std::fabs(y[k]), kMax) << x[k];
      ASSERT_EQ(std::signbit(y[k]), std::signbit(exact)) << x[k];
      continue;
    }
    ++compared;
    const Wide error = std::fabs(static_cast<Wide>(y[k]) - exact) / UnitOf(exact);
    if (!(error <= worst)) {
      worst = error;
      worst_at = x[k];
    }
  }
  std::printf("%s, %s: at most %.3Lf units, at %a, over %lld numbers\n", function.name, target,
              worst, worst_at, static_cast<long long>(compared));
  EXPECT_LE(worst, function.bound) << "at " << worst_at;
  EXPECT_GT(compared, 100'000);  // some are defined on few numbers
}

TEST_P(Float64FunctionsTest, StaysWithinItsBound) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    CheckBound(GetParam(), target);
  });
}

TEST_P(Float64FunctionsTest, KnowsSpecialValues) {
  const Function& function = GetParam();
  const double least = std::numeric_limits<double>::denorm_min();
  const std::vector<double> x = {
      0.0,   -0.0,  kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(),
      1.0,   -1.0,  least,     -least,     kMax,
      -kMax, 709.5, -745.0,    0x1p-1030};
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    const std::vector<double> y = Evaluate(function.op, x);
    for (size_t k = 0; k < x.size(); ++k) {
      const auto expected = static_cast<double>(function.exact(static_cast<Wide>(x[k])));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(y[k])) << function.name << "(" << x[k] << ") is " << y[k];
      } else {
        EXPECT_DOUBLE_EQ(y[k], expected) << function.name << "(" << x[k] << ")";
        EXPECT_EQ(std::signbit(y[k]), std::signbit(expected))
            << function.name << "(" << x[k] << ")";
      }
    }
  });
}

// Lengths that leave every number of lanes over; nothing is written beyond.
TEST_P(Float64FunctionsTest, WritesItsLanesAlone) {
  const std::vector<double> x(40, 0.75);
  const std::vector<double> whole = Evaluate(GetParam().op, x);
  for (size_t lanes = 0; lanes < 38; ++lanes) {
    std::vector<double> y(x.size(), -777.0);
    FindFunctionLoop(GetParam().op,
                     ElementType::kFloat64)({reinterpret_cast<std::byte*>(y.data()),
                                             {reinterpret_cast<const std::byte*>(x.data())},
                                             static_cast<int64_t>(lanes),
                                             0,
                                             ElementType::kFloat64,
                                             ElementType::kFloat64});
    for (size_t k = 0; k < y.size(); ++k) {
      EXPECT_EQ(y[k], k < lanes ? whole[0] : -777.0) << lanes << " " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, Float64FunctionsTest,
                         ::testing::Values(Function{"exp", ExprOp::kExp, std::exp, 1},
                                           Function{"expm1", ExprOp::kExpm1, std::expm1, 2},
                                           Function{"log", ExprOp::kLog, std::log, 1},
                                           Function{"log1p", ExprOp::kLog1p, std::log1p, 2},
                                           Function{"tanh", ExprOp::kTanh, std::tanh, 3},
                                           Function{"sin", ExprOp::kSin, std::sin, 1.5L},
                                           Function{"cos", ExprOp::kCos, std::cos, 1.5L}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace onnxifi::engine
