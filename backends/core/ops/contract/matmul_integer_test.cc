// SPDX-License-Identifier: Apache-2.0
//
// MatMulInteger and QLinearMatMul with parameters whose lengths only a run tells: one number for
// the whole matrix, or one for each row or column.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;

constexpr int64_t kRows = 3, kDepth = 4, kColumns = 2;

std::vector<double> Draw(int64_t count, int64_t seed) {
  std::vector<double> numbers;
  for (int64_t k = 0; k < count; ++k) {
    numbers.push_back(static_cast<double>((k * 37 + seed * 11) % 23) + 1);
  }
  return numbers;
}

double At(const std::vector<double>& numbers, int64_t index) {
  return numbers[numbers.size() == 1 ? 0 : static_cast<size_t>(index)];
}

// Sums of (a - its zero point) * (b - its zero point).
std::vector<double> Sums(const std::vector<double>& a_zero, const std::vector<double>& b_zero) {
  const std::vector<double> a = Draw(kRows * kDepth, 1), b = Draw(kDepth * kColumns, 2);
  std::vector<double> sums;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column) {
      double sum = 0;
      for (int64_t k = 0; k < kDepth; ++k) {
        sum += (a[static_cast<size_t>(row * kDepth + k)] - At(a_zero, row)) *
               (b[static_cast<size_t>(k * kColumns + column)] - At(b_zero, column));
      }
      sums.push_back(sum);
    }
  }
  return sums;
}

NodeInput Bytes(tensor::Extents extents, const std::vector<double>& values) {
  return Symbolic(std::move(extents), values, ElementType::kUint8);
}

NodeInput Vector(const std::vector<double>& values, ElementType type) {
  return Symbolic({static_cast<int64_t>(values.size())}, values, type);
}

const std::vector<std::vector<double>> kRowZeros = {{5}, {5, 0, 9}};
const std::vector<std::vector<double>> kColumnZeros = {{3}, {3, 7}};

TEST(MatMulIntegerTest, ZeroPointsMayTurnOutToBeOne) {
  for (const std::vector<double>& a_zero : kRowZeros) {
    for (const std::vector<double>& b_zero : kColumnZeros) {
      const auto out =
          RunOperator({"MatMulInteger",
                       10,
                       {},
                       {Bytes({kRows, kDepth}, Draw(kRows * kDepth, 1)),
                        Bytes({kDepth, kColumns}, Draw(kDepth * kColumns, 2)),
                        Vector(a_zero, ElementType::kUint8), Vector(b_zero, ElementType::kUint8)}});
      ASSERT_TRUE(out.ok()) << out.status().Text();
      EXPECT_EQ(Numbers((*out)[0]), Sums(a_zero, b_zero));
    }
  }
}

TEST(MatMulIntegerTest, OtherLengthsAreRefusedWithTheirNumbers) {
  const auto out = RunOperator({"MatMulInteger",
                                10,
                                {},
                                {Bytes({kRows, kDepth}, Draw(kRows * kDepth, 1)),
                                 Bytes({kDepth, kColumns}, Draw(kDepth * kColumns, 2)),
                                 Vector({5, 6}, ElementType::kUint8)}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
}

TEST(QLinearMatMulTest, ScalesMayTurnOutToBeOne) {
  for (const std::vector<double>& scale : {std::vector<double>{0.5}, {0.5, 0.25, 0.75}}) {
    const std::vector<double> a_zero(scale.size(), 5);
    const auto out =
        RunOperator({"QLinearMatMul",
                     21,
                     {},
                     {Bytes({kRows, kDepth}, Draw(kRows * kDepth, 1)),
                      Vector(scale, ElementType::kFloat32), Vector(a_zero, ElementType::kUint8),
                      Bytes({kDepth, kColumns}, Draw(kDepth * kColumns, 2)),
                      Vector({0.25}, ElementType::kFloat32), Vector({3}, ElementType::kUint8),
                      Vector({2}, ElementType::kFloat32), Vector({10}, ElementType::kUint8)}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    const std::vector<double> sums = Sums(a_zero, {3});
    const std::vector<double> found = Numbers((*out)[0]);
    for (size_t k = 0; k < sums.size(); ++k) {
      const double factor = At(scale, static_cast<int64_t>(k) / kColumns) * 0.25 / 2;
      EXPECT_EQ(found[k], std::fmin(255, std::fmax(0, std::nearbyint(sums[k] * factor) + 10))) << k;
    }
  }
}

}  // namespace
}  // namespace onnxifi::ops
