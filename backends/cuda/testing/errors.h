// SPDX-License-Identifier: Apache-2.0
//
// What tests of errors against float64 have in common: values that are drawn, and how far results
// lie from those of float64.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_ERRORS_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_ERRORS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

namespace onnxifi::cuda {

// What the operands hold.
enum class Values : uint8_t {
  kNormal,
  kPositive,
  kRelu,              // the first without its negative numbers
  kMixed,             // exponents from -20 to 20
  kOutliers,          // one in 64 of them 4,096 times as large
  kHalvesCancel,      // the second half of the depth nearly takes away what the first one gives
  kNeighboursCancel,  // each second place of the depth nearly takes away the one before
  kSubnormal,         // the first
  kSubnormalAndHuge,
  kHuge,     // products that are infinite once they are scaled
  kNearMax,  // the first, some equal to the largest number
  kSpecial,  // a few infinite, a few NaN
};

class Drawing {
 public:
  explicit Drawing(uint32_t seed) : random_(seed) {}
  // Of no function of the C library, so that every machine draws the same.
  double Uniform() { return (random_() >> 8) * 0x1p-24; }
  double Normal() {
    double sum = -6;
    for (int k = 0; k < 12; ++k) sum += Uniform();
    return sum;
  }
  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }
  bool IsOneIn(int count) { return Below(count) == 0; }

 private:
  std::mt19937 random_;
};

inline float Draw(Drawing& drawing, Values values, bool is_first) {
  double value = values == Values::kPositive ? drawing.Uniform() : drawing.Normal();
  switch (values) {
    case Values::kRelu:
      if (is_first) value = std::max(value, 0.0);
      break;
    case Values::kMixed:
      value = std::ldexp(value, drawing.Below(41) - 20);
      break;
    case Values::kOutliers:
      if (drawing.IsOneIn(64)) value *= 4096;
      break;
    case Values::kSubnormal:
      if (is_first) value = std::ldexp(value, -131);
      break;
    case Values::kSubnormalAndHuge:
      value = std::ldexp(value, is_first ? -136 : 98);
      break;
    case Values::kHuge:
      value = std::ldexp(value, 58);
      break;
    case Values::kNearMax:
      value = is_first ? std::ldexp(value, 124) : std::ldexp(value, -20);
      if (is_first && drawing.IsOneIn(50)) value = std::numeric_limits<float>::max();
      break;
    case Values::kSpecial:
      if (is_first && drawing.IsOneIn(400)) value = std::numeric_limits<double>::infinity();
      if (!is_first && drawing.IsOneIn(900)) value = std::numeric_limits<double>::quiet_NaN();
      break;
    default:
      break;
  }
  return static_cast<float>(value);
}

// Largest errors against float64: of any output's share of its terms' magnitudes, in halves of a
// float32's last place, and by itself.
struct Errors {
  double relative = 0, absolute = 0;
};

inline Errors Compare(const std::vector<float>& actual, const std::vector<double>& expected,
                      const std::vector<double>& magnitudes) {
  Errors errors;
  EXPECT_EQ(actual.size(), expected.size());
  for (size_t k = 0; k < actual.size() && k < expected.size(); ++k) {
    if (!std::isfinite(expected[k])) {
      const bool is_same = std::isnan(expected[k]) ? std::isnan(actual[k])
                                                   : static_cast<double>(actual[k]) == expected[k];
      EXPECT_TRUE(is_same) << actual[k] << " in place of " << expected[k] << " at " << k;
      continue;
    }
    const double error = std::abs(static_cast<double>(actual[k]) - expected[k]);
    EXPECT_TRUE(std::isfinite(error)) << actual[k] << " in place of " << expected[k];
    errors.absolute = std::max(errors.absolute, error);
    if (magnitudes[k] > 0)
      errors.relative = std::max(errors.relative, error / magnitudes[k] * 0x1p24);
  }
  return errors;
}

inline std::string_view Name(Values values) {
  static constexpr std::string_view kNames[] = {"normal",
                                                "0 to 1",
                                                "first not negative",
                                                "exponents of ±20",
                                                "outliers",
                                                "halves cancel",
                                                "neighbours cancel",
                                                "first subnormal",
                                                "subnormal times huge",
                                                "huge",
                                                "first near the largest",
                                                "a few infinite or NaN"};
  return kNames[static_cast<size_t>(values)];
}

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_ERRORS_H_
