// SPDX-License-Identifier: Apache-2.0
//
// MaxRoiPool against loops over the pixels of each bin, as Fast R-CNN defines them: corners rounded
// to pixels, ends that belong to the region, bins that share the pixels between them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::HasSubstr;

constexpr int64_t kImages = 2, kChannels = 3, kHeight = 11, kWidth = 13;

struct Pool {
  int64_t rows = 2, columns = 3;
  double scale = 1;
};

std::vector<double> Image() {
  std::vector<double> image;
  for (int64_t k = 0; k < kImages * kChannels * kHeight * kWidth; ++k) {
    image.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(k * k % 1009)) - 0.5));
  }
  return image;
}

// The pixels [first, last) of bin `bin` of `bins` between two corners, inside `extent`.
std::pair<int64_t, int64_t> Pixels(double from, double to, double scale, int64_t bin, int64_t bins,
                                   int64_t extent) {
  const auto start = static_cast<int64_t>(std::round(from * scale));
  const auto end = static_cast<int64_t>(std::round(to * scale));
  const auto length = static_cast<double>(std::max<int64_t>(end - start + 1, 1));
  const double size = length / static_cast<double>(bins);
  // A little less or more than a whole number is that number.
  const auto first = static_cast<int64_t>(std::floor(static_cast<double>(bin) * size + 1e-9));
  const auto last = static_cast<int64_t>(std::ceil(static_cast<double>(bin + 1) * size - 1e-9));
  return {std::clamp<int64_t>(first + start, 0, extent),
          std::clamp<int64_t>(last + start, 0, extent)};
}

std::vector<double> Expect(const std::vector<double>& image, const std::vector<double>& rois,
                           const Pool& pool) {
  std::vector<double> expected;
  for (size_t roi = 0; roi < rois.size(); roi += 5) {
    const auto number = static_cast<int64_t>(rois[roi]);
    for (int64_t c = 0; c < kChannels; ++c) {
      for (int64_t row = 0; row < pool.rows; ++row) {
        for (int64_t column = 0; column < pool.columns; ++column) {
          const auto [top, bottom] =
              Pixels(rois[roi + 2], rois[roi + 4], pool.scale, row, pool.rows, kHeight);
          const auto [left, right] =
              Pixels(rois[roi + 1], rois[roi + 3], pool.scale, column, pool.columns, kWidth);
          double most = -std::numeric_limits<double>::infinity();
          for (int64_t y = top; y < bottom; ++y) {
            for (int64_t x = left; x < right; ++x) {
              const int64_t at = ((number * kChannels + c) * kHeight + y) * kWidth + x;
              most = std::max(most, image[static_cast<size_t>(at)]);
            }
          }
          expected.push_back(std::isinf(most) ? 0 : most);
        }
      }
    }
  }
  return expected;
}

OneNode Node(const Pool& pool, std::vector<NodeInput> inputs) {
  OneNode node{"MaxRoiPool", 22};
  node.attributes = {{"pooled_shape", std::vector<int64_t>{pool.rows, pool.columns}}};
  if (pool.scale != 1) node.attributes["spatial_scale"] = static_cast<float>(pool.scale);
  node.inputs = std::move(inputs);
  return node;
}

// (image, x1, y1, x2, y2): inside, a pixel, a row, half outside, reversed corners, all outside.
const std::vector<double> kRegions = {0, 1, 2,  9,  8, 1, 4, 4, 4, 4, 0, 0,  5,  12, 5,
                                      1, 7, -3, 20, 4, 0, 9, 9, 3, 2, 1, 30, 30, 40, 40};

TEST(MaxRoiPoolTest, TakesTheLargestPixelOfEachBin) {
  for (const Pool& pool : {Pool{2, 3, 1}, Pool{1, 1, 1}, Pool{7, 5, 1}, Pool{3, 2, 0.5}}) {
    const auto out =
        RunOperator(Node(pool, {Given({kImages, kChannels, kHeight, kWidth}, Image()),
                                Given({static_cast<int64_t>(kRegions.size()) / 5, 5}, kRegions)}));
    ASSERT_TRUE(out.ok()) << out.status().Text();
    ASSERT_EQ((*out)[0].extents(), (tensor::Extents{static_cast<int64_t>(kRegions.size()) / 5,
                                                    kChannels, pool.rows, pool.columns}));
    const std::vector<double> found = Numbers((*out)[0]);
    const std::vector<double> expected = Expect(Image(), kRegions, pool);
    for (size_t at = 0; at < expected.size(); ++at) {
      ASSERT_EQ(found[at], expected[at]) << at << " of " << pool.rows << " x " << pool.columns;
    }
  }
}

TEST(MaxRoiPoolTest, ExtentsMayBeSymbols) {
  const Pool pool;
  const auto out =
      RunOperator(Node(pool, {Symbolic({kImages, kChannels, kHeight, kWidth}, Image()),
                              Symbolic({static_cast<int64_t>(kRegions.size()) / 5, 5}, kRegions)}));
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ(Numbers((*out)[0]), Expect(Image(), kRegions, pool));
}

TEST(MaxRoiPoolTest, ADoubleImageIsPooledInDouble) {
  std::vector<double> image = Image();
  image[5] = 1 + 1e-12;
  const std::vector<double> whole = {0, 0, 0, 12, 10};
  const Pool pool{1, 1, 1};
  const auto out = RunOperator(
      Node(pool, {Given({kImages, kChannels, kHeight, kWidth}, image, ElementType::kFloat64),
                  Given({1, 5}, whole, ElementType::kFloat64)}));
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ(Numbers((*out)[0])[0], 1 + 1e-12);
}

TEST(MaxRoiPoolTest, WrongNodesAreRefusedWithTheirNumbers) {
  const NodeInput image = Given({kImages, kChannels, kHeight, kWidth}, Image());
  const NodeInput four = Given({1, 4}, {0, 0, 4, 4});
  EXPECT_THAT(RunOperator(Node({}, {image, four})).status().Text(), HasSubstr("columns of rois"));
  const NodeInput flat = Given({5}, {0, 0, 0, 4, 4});
  EXPECT_THAT(RunOperator(Node({}, {image, flat})).status().Text(),
              HasSubstr("4 and 1 axes instead of 4 and 2"));
  const NodeInput region = Given({1, 5}, {0, 0, 0, 4, 4});
  EXPECT_THAT(RunOperator(Node({0, 3, 1}, {image, region})).status().Text(),
              HasSubstr("pooled_shape"));
}

}  // namespace
}  // namespace onnxifi::ops
