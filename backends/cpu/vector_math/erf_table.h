// SPDX-License-Identifier: Apache-2.0
//
// ErfTable: polynomials of erf(x) / x, one per quarter of [0, 4), for vectors that look their
// coefficients up in a register. Computed by the compiler.

#ifndef ONNXIFI_BACKENDS_CPU_VECTOR_MATH_ERF_TABLE_H_
#define ONNXIFI_BACKENDS_CPU_VECTOR_MATH_ERF_TABLE_H_

#include <array>
#include <cstddef>
#include <numbers>

namespace onnxifi::vector_math {

struct ErfTable {
  static constexpr size_t kSegments = 16;
  static constexpr size_t kDegree = 5;
  static constexpr double kWidth = 0.25;  // of a segment

  // coefficients[k][s] of t^k, where t is the distance of x from the middle of segment s; to less
  // than 1e-8 of the quotient before they are rounded.
  alignas(64) std::array<std::array<float, kSegments>, kDegree + 1> coefficients;

  static constexpr ErfTable Make();

 private:
  using Polynomial = std::array<double, kDegree + 1>;

  // By Taylor's series, of a small part of x for the first.
  static constexpr double Exp(double x) {
    constexpr int kHalvings = 10;
    const double part = x / (1 << kHalvings);
    double power = 1;
    for (int k = 12; k > 0; --k) power = 1 + part / k * power;
    for (int k = 0; k < kHalvings; ++k) power *= power;
    return power;
  }
  static constexpr double Cos(double x) {
    double sum = 1;
    for (int k = 24; k > 0; k -= 2) sum = 1 - x * x / (k * (k - 1)) * sum;
    return sum;
  }
  // erf(x) / x = 2 / sqrt(pi) * exp(-x^2) * (1 + 2 x^2 / 3 * (1 + 2 x^2 / 5 * ...)), whose terms
  // have one sign.
  static constexpr double ErfQuotient(double x) {
    double sum = 1;
    for (int k = 151; k > 1; k -= 2) sum = 1 + 2 * x * x / k * sum;
    return 2 * std::numbers::inv_sqrtpi * Exp(-x * x) * sum;
  }

  // Newton's interpolation at Chebyshev's points, brought to powers of the distance from `middle`.
  static constexpr Polynomial Interpolate(double middle) {
    constexpr size_t kPoints = kDegree + 1;
    std::array<double, kPoints> at{}, difference{};
    for (size_t k = 0; k < kPoints; ++k) {
      at[k] = kWidth / 2 * Cos(static_cast<double>(2 * k + 1) * std::numbers::pi / (2 * kPoints));
      difference[k] = ErfQuotient(middle + at[k]);
    }
    for (size_t order = 1; order < kPoints; ++order) {
      for (size_t k = kPoints; k-- > order;) {
        difference[k] = (difference[k] - difference[k - 1]) / (at[k] - at[k - order]);
      }
    }
    // difference[0] + (t - at[0]) * (difference[1] + (t - at[1]) * ...)
    Polynomial sum{};
    for (size_t k = kPoints; k-- > 0;) {
      for (size_t power = kPoints; power-- > 0;) {
        sum[power] = (power > 0 ? sum[power - 1] : 0) - at[k] * sum[power];
      }
      sum[0] += difference[k];
    }
    return sum;
  }
};

constexpr ErfTable ErfTable::Make() {
  ErfTable table{};
  for (size_t segment = 0; segment < kSegments; ++segment) {
    const Polynomial polynomial = Interpolate((static_cast<double>(segment) + 0.5) * kWidth);
    for (size_t k = 0; k <= kDegree; ++k) {
      table.coefficients[k][segment] = static_cast<float>(polynomial[k]);
    }
  }
  return table;
}

inline constexpr ErfTable kErfTable = ErfTable::Make();

}  // namespace onnxifi::vector_math

#endif  // ONNXIFI_BACKENDS_CPU_VECTOR_MATH_ERF_TABLE_H_
