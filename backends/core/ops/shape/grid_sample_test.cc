// SPDX-License-Identifier: Apache-2.0
//
// GridSample against bilinear reads in loops, of few channels and of many, which lie together then;
// AffineGrid against products in double precision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;

TEST(GridSampleTest, ReadsFewAndManyChannelsAlike) {
  constexpr int64_t kHeight = 5, kWidth = 7, kRows = 4, kColumns = 3, kBatch = 2;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> element(-1, 1), place(-1.4, 1.4);
  for (const int64_t channels : {1, 3, 8, 17}) {
    SCOPED_TRACE(channels);
    std::vector<double> image, grid;
    for (int64_t k = 0; k < kBatch * channels * kHeight * kWidth; ++k) {
      image.push_back(static_cast<float>(element(random)));
    }
    for (int64_t k = 0; k < kBatch * kRows * kColumns * 2; ++k) {
      grid.push_back(static_cast<float>(place(random)));
    }
    for (const bool is_symbolic : {false, true}) {
      OneNode node{.op_type = "GridSample", .version = 20};
      node.attributes["mode"] = std::string("linear");
      const tensor::Extents shape = {kBatch, channels, kHeight, kWidth};
      const tensor::Extents grid_shape = {kBatch, kRows, kColumns, 2};
      node.inputs = {is_symbolic ? Symbolic(shape, image) : Given(shape, image),
                     is_symbolic ? Symbolic(grid_shape, grid) : Given(grid_shape, grid)};
      const base::Result<std::vector<tensor::Tensor>> outputs = RunOperator(node);
      ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
      const std::vector<double> found = Numbers(outputs->front());
      size_t k = 0;
      for (int64_t n = 0; n < kBatch; ++n) {
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t point = 0; point < kRows * kColumns; ++point) {
            const auto at = static_cast<size_t>(2 * (n * kRows * kColumns + point));
            const double x = ((grid[at] + 1) * kWidth - 1) / 2;
            const double y = ((grid[at + 1] + 1) * kHeight - 1) / 2;
            double expected = 0;
            for (int64_t row = 0; row < kHeight; ++row) {
              for (int64_t column = 0; column < kWidth; ++column) {
                const double weight = std::max(0.0, 1 - std::abs(y - static_cast<double>(row))) *
                                      std::max(0.0, 1 - std::abs(x - static_cast<double>(column)));
                expected += weight * image[static_cast<size_t>(
                                         ((n * channels + c) * kHeight + row) * kWidth + column)];
              }
            }
            ASSERT_NEAR(found[k++], expected, 1e-5) << n << ", " << c << ", " << point;
          }
        }
      }
    }
  }
}

// The weights of Keys' cubic convolution (a = -0.75) by distance.
double CubicWeight(double d) {
  constexpr double kA = -0.75;
  d = std::abs(d);
  if (d <= 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
  return d < 2 ? ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA : 0;
}

// A point outside has the weights of where it is, over elements that the border's stand for.
TEST(GridSampleTest, TakesCubicWeightsOutsideOfTheBorder) {
  constexpr int64_t kHeight = 3, kWidth = 4;
  std::vector<double> image;
  for (int64_t k = 0; k < kHeight * kWidth; ++k) {
    image.push_back(static_cast<double>((k * k * 5) % 13));
  }
  const std::vector<double> grid = {-1.375, 0.25, 1.125, -1.25, 0.5, 1.5, 0.125, 0.375};
  OneNode node{.op_type = "GridSample", .version = 20};
  node.attributes["mode"] = std::string("cubic");
  node.attributes["padding_mode"] = std::string("border");
  node.inputs = {Given({1, 1, kHeight, kWidth}, image), Given({1, 2, 2, 2}, grid)};
  const base::Result<std::vector<tensor::Tensor>> outputs = RunOperator(node);
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  const std::vector<double> found = Numbers(outputs->front());
  ASSERT_EQ(found.size(), grid.size() / 2);
  for (size_t point = 0; point < found.size(); ++point) {
    const double x = ((grid[2 * point] + 1) * kWidth - 1) / 2;
    const double y = ((grid[2 * point + 1] + 1) * kHeight - 1) / 2;
    double expected = 0;
    for (int64_t row = -5; row < kHeight + 5; ++row) {
      for (int64_t column = -5; column < kWidth + 5; ++column) {
        const int64_t inside = std::clamp<int64_t>(row, 0, kHeight - 1) * kWidth +
                               std::clamp<int64_t>(column, 0, kWidth - 1);
        expected += CubicWeight(y - static_cast<double>(row)) *
                    CubicWeight(x - static_cast<double>(column)) *
                    image[static_cast<size_t>(inside)];
      }
    }
    EXPECT_NEAR(found[point], expected, 1e-4) << point;
  }
}

// theta times the middles of an axis' parts, or its ends and what lies evenly between them.
TEST(AffineGridTest, IsTheProductOfThetaAndEvenPoints) {
  for (const tensor::Extents& size :
       {tensor::Extents{2, 3, 4, 5}, tensor::Extents{2, 1, 3, 1, 6}}) {
    const auto axes = static_cast<int64_t>(size.size()) - 2;
    std::vector<double> theta, extents(size.begin(), size.end());
    for (int64_t k = 0; k < 2 * axes * (axes + 1); ++k) {
      theta.push_back(static_cast<float>(std::sin(static_cast<double>(k * k))));
    }
    for (const int64_t aligns_corners : {0, 1}) {
      std::vector<double> expected;
      const int64_t points = tensor::ElementCount(size) / size[0] / size[1];
      for (int64_t item = 0; item < 2 * points * axes; ++item) {
        const int64_t row = item % axes, n = item / axes / points;
        const double* const factors = theta.data() + (n * axes + row) * (axes + 1);
        double sum = factors[axes];
        int64_t point = item / axes % points;
        for (int64_t column = 0; column < axes; ++column) {  // the last axis is the first column
          const int64_t extent = size[static_cast<size_t>(axes + 1 - column)];
          const auto at = static_cast<double>(point % extent), count = static_cast<double>(extent);
          point /= extent;
          const double middle = (2 * at + 1) / count - 1;
          const double even = extent == 1 ? -1 : 2 * at / (count - 1) - 1;
          sum += factors[column] * (aligns_corners != 0 ? even : middle);
        }
        expected.push_back(sum);
      }
      for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64}) {
        for (const auto& form : {Given, Symbolic}) {
          const auto out = RunOperator({"AffineGrid",
                                        20,
                                        {{"align_corners", aligns_corners}},
                                        {form({2, axes, axes + 1}, theta, type),
                                         Given({axes + 2}, extents, ElementType::kInt64)}});
          ASSERT_TRUE(out.ok()) << out.status().Text();
          const std::vector<double> found = Numbers((*out)[0]);
          ASSERT_EQ(found.size(), expected.size());
          for (size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(found[k], expected[k], 1e-6) << k;
        }
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::ops
