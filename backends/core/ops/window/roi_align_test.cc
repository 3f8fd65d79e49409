// SPDX-License-Identifier: Apache-2.0
//
// RoiAlign against ONNX's definition in loops: points per bin, bilinear reads, their mean or the
// largest weighted corner.

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

struct Image {
  int64_t channels, height, width;
  std::vector<double> elements;

  double At(int64_t c, int64_t y, int64_t x) const {
    return elements[static_cast<size_t>((c * height + y) * width + x)];
  }
};

struct Align {
  int64_t bins = 1;
  int64_t ratio = 0;
  double scale = 1;
  bool takes_max = false;
  bool is_half_pixel = true;
};

// One bin of one region (x1, y1, x2, y2) in one channel.
double AlignBin(const Image& image, const Align& align, const double* region, int64_t c,
                int64_t row, int64_t column) {
  const double shift = align.is_half_pixel ? 0.5 : 0.0;
  const double x0 = region[0] * align.scale - shift, y0 = region[1] * align.scale - shift;
  double width = region[2] * align.scale - shift - x0,
         height = region[3] * align.scale - shift - y0;
  if (!align.is_half_pixel) {
    width = std::max(width, 1.0);
    height = std::max(height, 1.0);
  }
  const double bin_width = width / static_cast<double>(align.bins);
  const double bin_height = height / static_cast<double>(align.bins);
  const auto across = align.ratio > 0 ? align.ratio : static_cast<int64_t>(std::ceil(bin_width));
  const auto down = align.ratio > 0 ? align.ratio : static_cast<int64_t>(std::ceil(bin_height));
  double sum = 0, largest = 0;
  bool is_first = true;
  for (int64_t i = 0; i < down; ++i) {
    for (int64_t j = 0; j < across; ++j) {
      double y = y0 + bin_height * (static_cast<double>(row) +
                                    (static_cast<double>(i) + 0.5) / static_cast<double>(down));
      double x = x0 + bin_width * (static_cast<double>(column) +
                                   (static_cast<double>(j) + 0.5) / static_cast<double>(across));
      const bool is_outside = y < -1 || y > static_cast<double>(image.height) || x < -1 ||
                              x > static_cast<double>(image.width);
      y = std::clamp(y, 0.0, static_cast<double>(image.height - 1));
      x = std::clamp(x, 0.0, static_cast<double>(image.width - 1));
      const auto low_y = static_cast<int64_t>(y), low_x = static_cast<int64_t>(x);
      const int64_t high_y = std::min(low_y + 1, image.height - 1);
      const int64_t high_x = std::min(low_x + 1, image.width - 1);
      const double v = y - static_cast<double>(low_y), u = x - static_cast<double>(low_x);
      for (const double corner :
           {(1 - v) * (1 - u) * image.At(c, low_y, low_x), (1 - v) * u * image.At(c, low_y, high_x),
            v * (1 - u) * image.At(c, high_y, low_x), v * u * image.At(c, high_y, high_x)}) {
        const double counted = is_outside ? 0 : corner;
        sum += counted;
        largest = is_first ? counted : std::max(largest, counted);
        is_first = false;
      }
    }
  }
  if (is_first) return 0;
  return align.takes_max ? largest : sum / static_cast<double>(across * down);
}

void Check(const Align& align) {
  SCOPED_TRACE(testing::Message() << align.bins << " bins, ratio " << align.ratio << ", max "
                                  << align.takes_max << ", half pixel " << align.is_half_pixel);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> element(-1, 1);
  Image image{9, 11, 13, {}};
  for (int64_t k = 0; k < 9 * 11 * 13; ++k) {
    image.elements.push_back(static_cast<float>(element(random)));
  }
  // Inside, over each edge, far outside, of no extent, turned around.
  const std::vector<double> regions = {1,  2,  9, 8.5, -3, -2, 6, 5, 7, 6, 20,   19,  40,   40,
                                       50, 50, 4, 4,   4,  4,  9, 9, 3, 2, 0.25, 0.5, 2.75, 1.5};
  const auto count = static_cast<int64_t>(regions.size() / 4);
  OneNode node{.op_type = "RoiAlign", .version = 16};
  node.attributes["output_height"] = align.bins;
  node.attributes["output_width"] = align.bins;
  node.attributes["sampling_ratio"] = align.ratio;
  node.attributes["spatial_scale"] = static_cast<float>(align.scale);
  node.attributes["mode"] = std::string(align.takes_max ? "max" : "avg");
  node.attributes["coordinate_transformation_mode"] = {
      std::string(align.is_half_pixel ? "half_pixel" : "output_half_pixel")};
  node.inputs = {
      Given({1, 9, 11, 13}, image.elements), Given({count, 4}, regions),
      Given({count}, std::vector<double>(static_cast<size_t>(count), 0), ElementType::kInt64)};
  const base::Result<std::vector<tensor::Tensor>> outputs = RunOperator(node);
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  const std::vector<double> found = Numbers(outputs->front());
  size_t k = 0;
  for (int64_t region = 0; region < count; ++region) {
    for (int64_t c = 0; c < 9; ++c) {
      for (int64_t row = 0; row < align.bins; ++row) {
        for (int64_t column = 0; column < align.bins; ++column) {
          const double expected =
              AlignBin(image, align, regions.data() + 4 * region, c, row, column);
          ASSERT_NEAR(found[k++], expected, 2e-5)
              << "region " << region << ", channel " << c << ", bin " << row << ", " << column;
        }
      }
    }
  }
}

TEST(RoiAlignTest, IsWhatOnnxDefines) {
  for (const bool is_half_pixel : {true, false}) {
    for (const bool takes_max : {false, true}) {
      for (const int64_t ratio : {0, 1, 2, 3}) {
        for (const int64_t bins : {1, 2, 5}) {
          Check({bins, ratio, 0.75, takes_max, is_half_pixel});
        }
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::ops
