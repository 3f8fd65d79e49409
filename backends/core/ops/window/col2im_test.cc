// SPDX-License-Identifier: Apache-2.0
//
// Col2Im against adding up block by block: strides below, at and beyond the block, with many
// remainders and with few, and what they take of symbolic extents.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using Ints = std::vector<int64_t>;
using tensor::ElementType;

struct Blocks {
  Ints image, block, strides, dilations, pads_begin, pads_end;

  int64_t Count(size_t axis) const {
    const int64_t reach = (block[axis] - 1) * dilations[axis] + 1;
    return (image[axis] + pads_begin[axis] + pads_end[axis] - reach) / strides[axis] + 1;
  }
};

constexpr int64_t kImages = 2, kChannels = 3;

// `columns` [images, channels, block, positions], of two axes.
std::vector<double> AddedUp(const Blocks& blocks, const std::vector<double>& columns) {
  std::vector<double> images(
      static_cast<size_t>(kImages * kChannels * blocks.image[0] * blocks.image[1]), 0.0);
  size_t number = 0;
  for (int64_t plane = 0; plane < kImages * kChannels; ++plane) {
    for (int64_t ky = 0; ky < blocks.block[0]; ++ky) {
      for (int64_t kx = 0; kx < blocks.block[1]; ++kx) {
        for (int64_t by = 0; by < blocks.Count(0); ++by) {
          for (int64_t bx = 0; bx < blocks.Count(1); ++bx) {
            const double value = columns[number++];
            const int64_t y =
                by * blocks.strides[0] + ky * blocks.dilations[0] - blocks.pads_begin[0];
            const int64_t x =
                bx * blocks.strides[1] + kx * blocks.dilations[1] - blocks.pads_begin[1];
            if (y < 0 || y >= blocks.image[0] || x < 0 || x >= blocks.image[1]) continue;
            images[static_cast<size_t>((plane * blocks.image[0] + y) * blocks.image[1] + x)] +=
                value;
          }
        }
      }
    }
  }
  return images;
}

TEST(Col2ImTest, AddsUpBlocks) {
  const Blocks cases[] = {
      {{7, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
      {{8, 6}, {2, 3}, {1, 3}, {1, 1}, {0, 2}, {1, 0}},
      {{5, 11}, {2, 1}, {3, 2}, {1, 1}, {0, 0}, {0, 1}},  // gaps
      {{12, 12}, {3, 4}, {1, 4}, {1, 1}, {5, 0}, {5, 0}},
      {{20, 21}, {5, 7}, {5, 7}, {1, 1}, {0, 0}, {0, 0}},  // many remainders
      {{20, 19}, {6, 8}, {5, 5}, {1, 1}, {2, 1}, {3, 0}},
      {{9, 9}, {3, 2}, {1, 2}, {2, 3}, {1, 0}, {1, 2}},
  };
  std::mt19937 random(8);
  for (const Blocks& blocks : cases) {
    const tensor::Extents extents = {kImages, kChannels * blocks.block[0] * blocks.block[1],
                                     blocks.Count(0) * blocks.Count(1)};
    std::vector<double> columns(static_cast<size_t>(tensor::ElementCount(extents)));
    for (double& value : columns) value = static_cast<double>(random() % 17) - 8;
    Ints pads = blocks.pads_begin;
    pads.insert(pads.end(), blocks.pads_end.begin(), blocks.pads_end.end());
    const std::vector<double> image(blocks.image.begin(), blocks.image.end());
    const std::vector<double> block(blocks.block.begin(), blocks.block.end());
    for (const bool is_known : {true, false}) {
      OneNode node{"Col2Im", 18};
      node.attributes["strides"] = blocks.strides;
      node.attributes["dilations"] = blocks.dilations;
      node.attributes["pads"] = pads;
      const NodeInput data = is_known ? Given(extents, columns) : Symbolic(extents, columns);
      const NodeInput given = is_known ? Constant({2}, image, ElementType::kInt64)
                                       : Given({2}, image, ElementType::kInt64);
      node.inputs = {data, given, Constant({2}, block, ElementType::kInt64)};
      const auto out = RunOperator(node);
      ASSERT_TRUE(out.ok()) << out.status().Text();
      EXPECT_EQ((*out)[0].extents(),
                (tensor::Extents{kImages, kChannels, blocks.image[0], blocks.image[1]}));
      EXPECT_EQ(Numbers((*out)[0]), AddedUp(blocks, columns));
    }
  }
}

}  // namespace
}  // namespace onnxifi::ops
