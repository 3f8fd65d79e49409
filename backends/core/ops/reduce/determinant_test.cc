// SPDX-License-Identifier: Apache-2.0
//
// Det against the sum over permutations in double precision: zeros that force pivots, singular
// matrices, batches.

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
    for (int version : {11, 22}) {
      const auto out = RunOperator({"Det", version, {}, {Given({kBatch, 1, order, order}, data)}});
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

TEST(DetTest, OfSingularMatricesIsZero) {
  const auto out = RunOperator(
      {"Det", 22, {}, {Given({2, 3, 3}, {0, 1, 2, 0, 3, 4, 0, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0})}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(0, 0));
}

TEST(DetTest, RefusesWhatIsNotSquare) {
  const auto out = RunOperator({"Det", 22, {}, {Given({2, 3}, {1, 2, 3, 4, 5, 6})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
}

}  // namespace
}  // namespace onnxifi::ops
