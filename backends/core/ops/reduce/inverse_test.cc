// SPDX-License-Identifier: Apache-2.0
//
// Inverse: its product with the matrix, in double precision, is the identity. Zeros that force
// pivots, batches, orders known only when it runs, and orders that take a loop.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

OneNode Inverse(NodeInput x) {
  return {.op_type = "Inverse", .version = 1, .inputs = {std::move(x)}, .domain = "com.microsoft"};
}

// Diagonals are zeros, so that no pivot stands where its column begins.
std::vector<double> MakeMatrices(int count, int order) {
  std::vector<double> data;
  for (int n = 0; n < count; ++n) {
    for (int row = 0; row < order; ++row) {
      for (int column = 0; column < order; ++column) {
        const double noise = 0.3 * std::sin(1.9 * double((n * 31 + row * 7 + column * 3) % 211));
        const bool is_large = column == (row + 1) % order;
        const double element = is_large ? 3 + noise : row == column ? 0 : noise;
        data.push_back(double(float(element)));
      }
    }
  }
  return data;
}

TEST(InverseTest, TimesTheMatrixIsTheIdentity) {
  constexpr int kCount = 3;
  for (int order : {1, 2, 3, 8, 9, 33}) {
    const std::vector<double> data = MakeMatrices(kCount, order);
    for (const auto& form : {Given, Symbolic}) {
      const auto out =
          RunOperator(Inverse(form({kCount, 1, order, order}, data, ElementType::kFloat32)));
      ASSERT_TRUE(out.ok()) << out.status().Text();
      ASSERT_EQ((*out)[0].extents(), (tensor::Extents{kCount, 1, order, order}));
      const std::vector<double> inverse = Numbers((*out)[0]);
      for (int n = 0; n < kCount; ++n) {
        for (int row = 0; row < order; ++row) {
          for (int column = 0; column < order; ++column) {
            double sum = 0;
            for (int k = 0; k < order; ++k) {
              sum += data[size_t((n * order + row) * order + k)] *
                     inverse[size_t((n * order + k) * order + column)];
            }
            EXPECT_NEAR(sum, row == column ? 1 : 0, 1e-5) << order << " " << row << " " << column;
          }
        }
      }
    }
  }
}

TEST(InverseTest, OfSmallFloatsIsRoundedOnce) {
  for (const auto& form : {Given, Symbolic}) {
    const auto out = RunOperator(Inverse(form({2, 2}, {0, 3, -7, 0}, ElementType::kFloat16)));
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_EQ((*out)[0].type(), ElementType::kFloat16);
    // The 16-bit floats nearest to -1/7 and 1/3.
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(0, -0.142822265625, 0.333251953125, 0));
  }
}

TEST(InverseTest, OfASingularMatrixIsNotFinite) {
  for (const auto& form : {Given, Symbolic}) {
    const auto out = RunOperator(Inverse(form({2, 2}, {1, 2, 2, 4}, ElementType::kFloat64)));
    ASSERT_TRUE(out.ok()) << out.status().Text();
    for (const double element : Numbers((*out)[0])) EXPECT_FALSE(std::isfinite(element));
  }
}

// The loop has no column to go over, whatever their number is.
TEST(InverseTest, OfNoMatrixIsNothing) {
  constexpr int64_t kOrder = int64_t{1} << 40;
  for (const auto& form : {Given, Symbolic}) {
    const auto out = RunOperator(Inverse(form({0, kOrder, kOrder}, {}, ElementType::kFloat32)));
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_TRUE(Numbers((*out)[0]).empty());
  }
}

TEST(InverseTest, RefusesWhatIsNotSquare) {
  for (const auto& form : {Given, Symbolic}) {
    const auto out = RunOperator(Inverse(form({2, 3}, {1, 2, 3, 4, 5, 6}, ElementType::kFloat32)));
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
    EXPECT_THAT(out.status().Text(), HasSubstr("extents of the matrices differ"));
  }
}

}  // namespace
}  // namespace onnxifi::ops
