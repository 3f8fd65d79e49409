// SPDX-License-Identifier: Apache-2.0
//
// Det against the sum over permutations in double precision: zeros that force pivots, singular
// matrices, batches, orders known only when it runs; large ones against a recurrence.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

double Leibniz(const double* matrix, int order) {
  std::vector<int> columns(static_cast<size_t>(order));
  std::iota(columns.begin(), columns.end(), 0);
  double sum = 0;
  do {
    double product = 1;
    for (int row = 0; row < order; ++row) {
      product *= matrix[row * order + columns[static_cast<size_t>(row)]];
      for (int other = 0; other < row; ++other) {
        if (columns[static_cast<size_t>(other)] > columns[static_cast<size_t>(row)]) {
          product = -product;
        }
      }
    }
    sum += product;
  } while (std::next_permutation(columns.begin(), columns.end()));
  return sum;
}

TEST(DetTest, EqualsTheSumOverPermutations) {
  for (int order : {1, 2, 3, 5, 6}) {
    constexpr int kBatch = 7;
    std::vector<double> data, expected;
    for (int k = 0; k < kBatch * order * order; ++k) {
      // A third are zeros, those of diagonals among them.
      data.push_back(k % 3 == 0 ? 0 : float(std::sin(1.9 * double(k * k % 211)) * 2));
    }
    for (int n = 0; n < kBatch; ++n) {
      expected.push_back(Leibniz(data.data() + n * order * order, order));
    }
    for (const auto& form : {Given, Symbolic}) {
      const NodeInput x = form({kBatch, 1, order, order}, data, ElementType::kFloat32);
      const auto out = RunOperator({"Det", 22, {}, {x}});
      ASSERT_TRUE(out.ok()) << out.status().Text();
      ASSERT_EQ((*out)[0].extents(), (tensor::Extents{kBatch, 1}));
      for (int n = 0; n < kBatch; ++n) {
        EXPECT_NEAR(Numbers((*out)[0])[static_cast<size_t>(n)], expected[static_cast<size_t>(n)],
                    1e-4 * std::max(1.0, std::abs(expected[static_cast<size_t>(n)])))
            << order << " " << n;
      }
    }
  }
}

// Of a tridiagonal matrix it is f(n) = a(n) f(n - 1) - b(n - 1) c(n - 1) f(n - 2).
TEST(DetTest, OfLargeMatricesIsComputedInALoop) {
  constexpr int kOrder = 70;
  std::vector<double> data(size_t{kOrder} * kOrder);
  double before = 0, determinant = 1;
  for (int n = 0; n < kOrder; ++n) {
    const double own = n % 3 == 0 ? 0 : 0.5;  // zeros force pivots
    data[size_t(n) * kOrder + size_t(n)] = own;
    const double next = own * determinant + (n == 0 ? 0 : 0.75 * before);
    before = determinant;
    determinant = next;
    if (n + 1 == kOrder) break;
    data[size_t(n) * kOrder + size_t(n) + 1] = 1.5;
    data[size_t(n + 1) * kOrder + size_t(n)] = -0.5;
  }
  for (const auto& form : {Given, Symbolic}) {
    const auto out =
        RunOperator({"Det", 11, {}, {form({kOrder, kOrder}, data, ElementType::kFloat64)}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_TRUE((*out)[0].extents().empty());
    EXPECT_NEAR(Numbers((*out)[0])[0] / determinant, 1, 1e-9);
  }
}

TEST(DetTest, OfSingularMatricesIsZero) {
  for (const auto& form : {Given, Symbolic}) {
    const auto out =
        RunOperator({"Det",
                     22,
                     {},
                     {form({2, 3, 3}, {0, 1, 2, 0, 3, 4, 0, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                           ElementType::kFloat32)}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(0, 0));
  }
}

TEST(DetTest, OfNothingIsOne) {
  for (const auto& form : {Given, Symbolic}) {
    const auto out = RunOperator({"Det", 22, {}, {form({2, 0, 0}, {}, ElementType::kFloat32)}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(1, 1));
  }
}

// The loop has no column to go over, whatever their number is.
TEST(DetTest, OfNoMatrixEndsAtOnce) {
  constexpr int64_t kOrder = int64_t{1} << 40;
  for (const auto& form : {Given, Symbolic}) {
    const auto out =
        RunOperator({"Det", 22, {}, {form({0, kOrder, kOrder}, {}, ElementType::kFloat32)}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_TRUE(Numbers((*out)[0]).empty());
  }
}

TEST(DetTest, RefusesWhatIsNotSquare) {
  for (const auto& form : {Given, Symbolic}) {
    const auto out =
        RunOperator({"Det", 22, {}, {form({2, 3}, {1, 2, 3, 4, 5, 6}, ElementType::kFloat32)}});
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
  }
}

}  // namespace
}  // namespace onnxifi::ops
