// SPDX-License-Identifier: Apache-2.0
//
// Activations that are functions, against float64, on every instruction set of the processor: the
// bounds that vector_math-inl.h states, over numbers of every exponent and close together where the
// functions bend; and special values.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::gemm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Of each number: a product with 1.
std::vector<float> Activated(const std::vector<float>& x, Activation activation, float low = 0,
                             float high = 0) {
  const float one[] = {1};
  std::vector<float> packed(static_cast<size_t>(PackedSize(1, 1)));
  PackPanels({one, 1, 1}, 1, 1, 0, 1, packed.data());
  std::vector<float> y(x.size());
  Epilogue epilogue;
  epilogue.activation = activation;
  epilogue.low = low;
  epilogue.high = high;
  const auto rows = static_cast<int64_t>(x.size());
  Multiply({x.data(), 1, packed.data(), y.data(), 1, rows, 1, 1, {}}, epilogue, 0, 1);
  return y;
}

std::vector<float> Samples() {
  std::vector<float> samples;
  for (uint32_t bits = 0; bits < 0x7f800000U; bits += 40013) {
    samples.push_back(std::bit_cast<float>(bits));
    samples.push_back(-samples.back());
  }
  for (int k = -60000; k <= 60000; ++k) samples.push_back(static_cast<float>(k) / 4096.0F + 1e-5F);
  return samples;
}

// The distance of neighbours at the size of `value`, as of the least normal number below it.
double UnitOf(double value) {
  return std::exp2(std::floor(std::log2(std::max(std::fabs(value), 0x1p-126))) - 23);
}

// The largest distance from `exact` in units of it; of what falls below 1 in size, of `least`.
template <typename Exact>
double WorstUnits(Activation activation, float low, double least, Exact exact) {
  const std::vector<float> x = Samples();
  const std::vector<float> y = Activated(x, activation, low);
  double worst = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const double expected = exact(static_cast<double>(x[k]));
    // What is lost where the logistic function leaves the normal numbers.
    const double lost = 1.7e-38 * std::max(1.0, std::fabs(static_cast<double>(x[k])));
    if (y[k] == 0 && std::fabs(expected) <= lost) continue;
    const double unit = UnitOf(std::max(std::fabs(expected), least * std::fabs(x[k])));
    const double units = std::fabs(static_cast<double>(y[k]) - expected) / unit;
    if (!(units <= worst)) worst = units;
  }
  return worst;
}

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST(ActivationTest, StaysWithinItsBounds) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    const double logistic = WorstUnits(Activation::kLogistic, 0, 0, Logistic);
    const double swish =
        WorstUnits(Activation::kSwish, 1, 0, [](double x) { return x * Logistic(x); });
    const double quick = WorstUnits(Activation::kSwish, 1.5F, 0, [](double x) {
      return x * Logistic(static_cast<float>(x) * 1.5F);
    });
    // The sum with 1 cancels.
    const double gelu = WorstUnits(Activation::kGelu, 0, 0.5, [](double x) {
      return x / 2 * std::erfc(-x * std::numbers::sqrt2 / 2);
    });
    const double tanh = WorstUnits(Activation::kTanh, 0, 0, [](double x) { return std::tanh(x); });
    std::printf("%s: logistic %.2f, swish %.2f and %.2f, gelu %.2f, tanh %.2f units\n", target,
                logistic, swish, quick, gelu, tanh);
    EXPECT_LE(tanh, 4);
    EXPECT_LE(logistic, 3);
    EXPECT_LE(swish, 3.5);
    EXPECT_LE(quick, 3.5);
    EXPECT_LE(gelu, 3);
  });
}

TEST(ActivationTest, BoundsHardSwish) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    const std::vector<float> x = {-kInfinity, -4, -3, -1.5F, -0.0F, 0, 1.5F, 3, 3.5F, 1e30F};
    const std::vector<float> y = Activated(x, Activation::kHardSwish, 1.0F / 6, 0.5F);
    for (size_t k = 1; k < x.size(); ++k) {
      const double gate = std::min(1.0, std::max(0.0, static_cast<double>(x[k]) / 6 + 0.5));
      EXPECT_NEAR(y[k], x[k] * gate, 1e-6 * std::fabs(x[k])) << x[k];
    }
    EXPECT_TRUE(std::isnan(y[0])) << "as infinity times 0 is";
  });
}

TEST(ActivationTest, KnowsSpecialValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    for (const Activation each : {Activation::kLogistic, Activation::kSwish, Activation::kGelu,
                                  Activation::kHardSwish, Activation::kTanh}) {
      EXPECT_TRUE(std::isnan(Activated({nan}, each, 1)[0])) << static_cast<int>(each);
    }
    const auto logistic = Activated({kInfinity, -kInfinity, 0}, Activation::kLogistic);
    EXPECT_EQ(logistic[0], 1);
    EXPECT_EQ(logistic[1], 0);
    EXPECT_EQ(logistic[2], 0.5F);
    for (const Activation each : {Activation::kSwish, Activation::kGelu}) {
      const auto y = Activated({kInfinity, 0, -0.0F, 100, -1e38F}, each, 1);
      EXPECT_EQ(y[0], kInfinity);
      EXPECT_EQ(y[1], 0);
      EXPECT_EQ(y[2], 0);
      EXPECT_EQ(y[3], 100);
      EXPECT_EQ(y[4], 0);
    }
  });
}

}  // namespace
}  // namespace onnxifi::gemm
