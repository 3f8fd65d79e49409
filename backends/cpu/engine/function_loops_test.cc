// SPDX-License-Identifier: Apache-2.0
//
// Vector functions against the C library in float64: random and regular samples of every exponent,
// and special values. The bounds are those of vector_math/vector_math-inl.h.

#include <gtest/gtest.h>

#include <algorithm>
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

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Function {
  const char* name;
  ExprOp op;
  double (*exact)(double);
  double bound;  // in units in the last place
};

std::vector<float> Evaluate(ExprOp op, const std::vector<float>& x) {
  const Loop loop = FindFunctionLoop(op, ElementType::kFloat32);
  EXPECT_NE(loop, nullptr);
  std::vector<float> y(x.size(), -777.0f);
  LoopOperands operands{reinterpret_cast<std::byte*>(y.data()),
                        {reinterpret_cast<const std::byte*>(x.data())},
                        static_cast<int64_t>(x.size()),
                        0,
                        ElementType::kFloat32,
                        ElementType::kFloat32};
  loop(operands);
  return y;
}

// The distance of two neighbours at the size of `value`.
double UnitOf(double value) {
  const double size = std::fabs(value);
  if (size < 0x1p-126) return 0x1p-149;
  return std::exp2(std::floor(std::log2(size)) - 23);
}

class VectorMathTest : public ::testing::TestWithParam<Function> {};

// Every 4001st number, so that all exponents, and all their high bits, are met.
void CheckBound(const Function& function, const char* target) {
  double worst = 0;
  float worst_at = 0;
  int64_t compared = 0;
  std::vector<float> x;
  auto compare = [&] {
    const std::vector<float> y = Evaluate(function.op, x);
    for (size_t k = 0; k < x.size(); ++k) {
      const double exact = function.exact(static_cast<double>(x[k]));
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(y[k])) << x[k];
        continue;
      }
      if (std::fabs(exact) > 0x1.fffffep127) {
        // Rounds to the largest number or to infinity.
        ASSERT_GE(std::fabs(y[k]), 0x1.fffffep127f) << x[k];
        ASSERT_EQ(std::signbit(y[k]), std::signbit(exact)) << x[k];
        continue;
      }
      ++compared;
      const double error = std::fabs(static_cast<double>(y[k]) - exact) / UnitOf(exact);
      if (!(error <= worst)) {
        worst = error;
        worst_at = x[k];
      }
    }
    x.clear();
  };
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4001) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    if (x.size() == 4099) compare();
  }
  // And densely where these functions bend.
  std::mt19937 random(7);
  std::uniform_real_distribution<float> near(-5, 5), far(-110, 110), around_one(0.5, 1.5);
  for (int k = 0; k < 300'000; ++k) {
    x.push_back(near(random));
    x.push_back(far(random));
    x.push_back(around_one(random));
  }
  compare();
  std::printf("%s, %s: at most %.3f units, at %a, over %lld numbers\n", function.name, target,
              worst, static_cast<double>(worst_at), static_cast<long long>(compared));
  EXPECT_LE(worst, function.bound) << "at " << worst_at;
  EXPECT_GT(compared, 250'000);  // some are defined on few numbers
}

TEST_P(VectorMathTest, StaysWithinItsBound) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    CheckBound(GetParam(), target);
  });
}

void CheckSpecialValues(const Function& function) {
  const std::vector<float> x = {0.0f,
                                -0.0f,
                                kInfinity,
                                -kInfinity,
                                std::numeric_limits<float>::quiet_NaN(),
                                1.0f,
                                -1.0f,
                                std::numeric_limits<float>::denorm_min(),
                                -std::numeric_limits<float>::denorm_min(),
                                std::numeric_limits<float>::max(),
                                std::numeric_limits<float>::lowest()};
  const std::vector<float> y = Evaluate(function.op, x);
  for (size_t k = 0; k < x.size(); ++k) {
    const auto expected = static_cast<float>(function.exact(static_cast<double>(x[k])));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(y[k])) << function.name << "(" << x[k] << ") is " << y[k];
    } else {
      EXPECT_FLOAT_EQ(y[k], expected) << function.name << "(" << x[k] << ")";
      EXPECT_EQ(std::signbit(y[k]), std::signbit(expected)) << function.name << "(" << x[k] << ")";
    }
  }
}

TEST_P(VectorMathTest, KnowsSpecialValues) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    CheckSpecialValues(GetParam());
  });
}

// Lengths that leave every number of lanes over; nothing is written beyond.
TEST_P(VectorMathTest, WritesItsLanesAlone) {
  const Loop loop = FindFunctionLoop(GetParam().op, ElementType::kFloat32);
  std::vector<float> x(70, 0.75f);
  const std::vector<float> whole = Evaluate(GetParam().op, x);
  for (int64_t lanes = 0; lanes < 68; ++lanes) {
    std::vector<float> y(x.size(), -777.0f);
    loop({reinterpret_cast<std::byte*>(y.data()),
          {reinterpret_cast<const std::byte*>(x.data())},
          lanes,
          0,
          ElementType::kFloat32,
          ElementType::kFloat32});
    for (size_t k = 0; k < y.size(); ++k) {
      const float expected = static_cast<int64_t>(k) < lanes ? whole[0] : -777.0f;
      EXPECT_EQ(std::bit_cast<uint32_t>(y[k]), std::bit_cast<uint32_t>(expected))
          << lanes << " " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, VectorMathTest,
                         ::testing::Values(Function{"exp", ExprOp::kExp, std::exp, 1},
                                           Function{"expm1", ExprOp::kExpm1, std::expm1, 2},
                                           Function{"log", ExprOp::kLog, std::log, 1},
                                           Function{"log1p", ExprOp::kLog1p, std::log1p, 2},
                                           Function{"tanh", ExprOp::kTanh, std::tanh, 3},
                                           Function{"erf", ExprOp::kErf, std::erf, 2.5},
                                           Function{"sin", ExprOp::kSin, std::sin, 2},
                                           Function{"cos", ExprOp::kCos, std::cos, 2},
                                           Function{"tan", ExprOp::kTan, std::tan, 4},
                                           Function{"asin", ExprOp::kAsin, std::asin, 2.5},
                                           Function{"acos", ExprOp::kAcos, std::acos, 2},
                                           Function{"atan", ExprOp::kAtan, std::atan, 2},
                                           Function{"sinh", ExprOp::kSinh, std::sinh, 2},
                                           Function{"cosh", ExprOp::kCosh, std::cosh, 2},
                                           Function{"asinh", ExprOp::kAsinh, std::asinh, 2.5},
                                           Function{"acosh", ExprOp::kAcosh, std::acosh, 3},
                                           Function{"atanh", ExprOp::kAtanh, std::atanh, 2.5}),
                         [](const auto& info) { return std::string(info.param.name); });

void CheckPow(const char* target) {
  const Loop loop = FindFunctionLoop(ExprOp::kPow, ElementType::kFloat32);
  ASSERT_NE(loop, nullptr);
  std::mt19937 random(3);
  std::vector<float> x, y;
  const std::vector<float> special = {0.0f,
                                      -0.0f,
                                      1.0f,
                                      -1.0f,
                                      2.0f,
                                      -2.0f,
                                      0.5f,
                                      3.0f,
                                      2.5f,
                                      kInfinity,
                                      -kInfinity,
                                      -3.0f,
                                      1e-40f,
                                      std::numeric_limits<float>::quiet_NaN(),
                                      1e30f,
                                      -1e-40f,
                                      0x1.fffffep127f,
                                      0x1.fffffep-1f,
                                      16777217.0f,
                                      1e-45f};
  for (float a : special) {
    for (float b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  for (int k = 0; k < 500'000; ++k) {
    // All exponents of the base; exponents that keep half of the results in range, and whole ones.
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    const double reach =
        100 / std::max(1e-3, std::fabs(std::log(std::fabs(static_cast<double>(x.back())))));
    y.push_back(static_cast<float>(std::uniform_real_distribution<double>(-reach, reach)(random)));
    x.push_back(std::uniform_real_distribution<float>(-10, 10)(random));
    y.push_back(static_cast<float>(static_cast<int>(random() % 17) - 8));
  }
  std::vector<float> z(x.size());
  loop(
      {reinterpret_cast<std::byte*>(z.data()),
       {reinterpret_cast<const std::byte*>(x.data()), reinterpret_cast<const std::byte*>(y.data())},
       static_cast<int64_t>(x.size()),
       0,
       ElementType::kFloat32,
       ElementType::kFloat32});
  double worst = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const double exact = std::pow(static_cast<double>(x[k]), static_cast<double>(y[k]));
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(z[k])) << x[k] << " " << y[k];
    } else if (std::fabs(exact) > 0x1.fffffep127) {
      ASSERT_GE(std::fabs(z[k]), 0x1.fffffep127f) << x[k] << " " << y[k];
    } else {
      ASSERT_EQ(std::signbit(z[k]), std::signbit(exact)) << x[k] << " " << y[k];
      worst = std::max(worst, std::fabs(static_cast<double>(z[k]) - exact) / UnitOf(exact));
    }
  }
  std::printf("pow, %s: at most %.3f units\n", target, worst);
  EXPECT_LE(worst, 0.51);
}

TEST(PowTest, StaysWithinItsBound) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    CheckPow(target);
  });
}

// Exact, for numbers of any size, of like size, and special ones.
TEST(FmodTest, IsTheCLibrarys) {
  std::mt19937 random(5);
  std::vector<float> x, y;
  const std::vector<float> special = {
      0.0f,   -0.0f, 1.0f,      -1.0f,      0.1f,
      1e-45f, 3e38f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  for (float a : special) {
    for (float b : special) {
      // Among numbers that are none of these.
      x.insert(x.end(), {1.5f, a, -2.5f});
      y.insert(y.end(), {0.7f, b, 0.7f});
    }
  }
  for (int k = 0; k < 300'000; ++k) {
    const auto bits = static_cast<uint32_t>(random());
    x.push_back(std::bit_cast<float>(bits));
    y.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    // Quotients up to 2^24, many of which are nearly whole.
    const float divisor = std::uniform_real_distribution<float>(0.01f, 2)(random);
    const auto count = static_cast<float>(random() >> (8 + bits % 24));
    x.push_back(bits % 3 == 0 ? -count * divisor : count * divisor);
    y.push_back(bits % 5 == 0 ? -divisor : divisor);
  }
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    const Loop loop =
        FindArithmeticLoop(ExprOp::kFmod, ElementType::kFloat32, ElementType::kFloat32);
    ASSERT_NE(loop, nullptr);
    std::vector<float> z(x.size());
    loop({reinterpret_cast<std::byte*>(z.data()),
          {reinterpret_cast<const std::byte*>(x.data()),
           reinterpret_cast<const std::byte*>(y.data())},
          static_cast<int64_t>(x.size()),
          0,
          ElementType::kFloat32,
          ElementType::kFloat32});
    for (size_t k = 0; k < x.size(); ++k) {
      const float expected = std::fmod(x[k], y[k]);
      if (std::isnan(expected) && std::isnan(z[k])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(z[k]), std::bit_cast<uint32_t>(expected))
          << x[k] << " " << y[k] << ": " << z[k] << " instead of " << expected;
    }
  });
}

}  // namespace
}  // namespace onnxifi::engine
