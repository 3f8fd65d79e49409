// SPDX-License-Identifier: Apache-2.0
//
// DeformConv against plain loops in float64, over the attributes, with extents given and symbolic,
// and where what is sampled is made in bands of rows.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using Doubles = std::vector<double>;
using Ints = std::vector<int64_t>;

struct DeformCase {
  std::string name;
  int64_t batch, channels, outputs, group, offset_group, height, width, kernel;
  int64_t stride = 1, dilation = 1, pad = 0;
  bool has_bias = true, has_mask = true;
  bool is_symbolic = false;
};

// In [low, high], the same for the same seed.
Doubles Draw(int64_t count, uint32_t seed, double low, double high) {
  Doubles values;
  uint32_t state = seed * 2654435761U + 1;
  for (int64_t k = 0; k < count; ++k) {
    state = state * 1664525U + 1013904223U;
    values.push_back(low + (high - low) * static_cast<double>(state >> 8) / (1 << 24));
  }
  return values;
}

class DeformConvTest : public ::testing::TestWithParam<DeformCase> {};

TEST_P(DeformConvTest, EqualsLoops) {
  const DeformCase& c = GetParam();
  const int64_t reach = (c.kernel - 1) * c.dilation + 1;
  const int64_t rows = (c.height + 2 * c.pad - reach) / c.stride + 1;
  const int64_t columns = (c.width + 2 * c.pad - reach) / c.stride + 1;
  const int64_t taps = c.kernel * c.kernel;
  const int64_t per_group = c.channels / c.group;
  const Doubles x = Draw(c.batch * c.channels * c.height * c.width, 1, -1, 1);
  const Doubles w = Draw(c.outputs * per_group * taps, 2, -1, 1);
  // Some positions fall outside the input, wholly or in part.
  const Doubles offset = Draw(c.batch * c.offset_group * taps * 2 * rows * columns, 3, -2, 2);
  const Doubles bias = Draw(c.outputs, 4, -1, 1);
  const Doubles mask = Draw(c.batch * c.offset_group * taps * rows * columns, 5, 0, 1);

  const auto element = [&](int64_t n, int64_t channel, int64_t y, int64_t z) {
    if (y < 0 || y >= c.height || z < 0 || z >= c.width) return 0.0;
    return x[((n * c.channels + channel) * c.height + y) * c.width + z];
  };
  const auto sampled = [&](int64_t n, int64_t channel, int64_t tap, int64_t oy, int64_t ox) {
    const int64_t offset_channel =
        (n * c.offset_group + channel / (c.channels / c.offset_group)) * taps + tap;
    const auto moved = [&](int64_t axis) {
      return offset[((offset_channel * 2 + axis) * rows + oy) * columns + ox];
    };
    const double y = static_cast<double>(oy * c.stride + tap / c.kernel * c.dilation - c.pad);
    const double z = static_cast<double>(ox * c.stride + tap % c.kernel * c.dilation - c.pad);
    const double top = std::floor(y + moved(0));
    const double left = std::floor(z + moved(1));
    const double down = y + moved(0) - top;
    const double right = z + moved(1) - left;
    const auto from = [&](int64_t dy, int64_t dx) {
      return element(n, channel, static_cast<int64_t>(top) + dy, static_cast<int64_t>(left) + dx);
    };
    const double value = (1 - down) * ((1 - right) * from(0, 0) + right * from(0, 1)) +
                         down * ((1 - right) * from(1, 0) + right * from(1, 1));
    return c.has_mask ? value * mask[(offset_channel * rows + oy) * columns + ox] : value;
  };
  Doubles expected;
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t m = 0; m < c.outputs; ++m) {
      for (int64_t oy = 0; oy < rows; ++oy) {
        for (int64_t ox = 0; ox < columns; ++ox) {
          double sum = c.has_bias ? bias[m] : 0;
          for (int64_t k = 0; k < per_group; ++k) {
            const int64_t channel = m / (c.outputs / c.group) * per_group + k;
            for (int64_t tap = 0; tap < taps; ++tap) {
              sum += sampled(n, channel, tap, oy, ox) * w[(m * per_group + k) * taps + tap];
            }
          }
          expected.push_back(sum);
        }
      }
    }
  }

  OneNode node{"DeformConv", 22};
  node.attributes["group"] = c.group;
  node.attributes["offset_group"] = c.offset_group;
  node.attributes["strides"] = Ints{c.stride, c.stride};
  node.attributes["dilations"] = Ints{c.dilation, c.dilation};
  node.attributes["pads"] = Ints{c.pad, c.pad, c.pad, c.pad};
  const auto input = [&](tensor::Extents extents, const Doubles& values) {
    return c.is_symbolic ? Symbolic(std::move(extents), values, ElementType::kFloat64)
                         : Given(std::move(extents), values, ElementType::kFloat64);
  };
  const int64_t depth = c.offset_group * taps;
  node.inputs = {input({c.batch, c.channels, c.height, c.width}, x),
                 Constant({c.outputs, per_group, c.kernel, c.kernel}, w, ElementType::kFloat64),
                 input({c.batch, depth * 2, rows, columns}, offset),
                 c.has_bias ? input({c.outputs}, bias) : Omitted(),
                 c.has_mask ? input({c.batch, depth, rows, columns}, mask) : Omitted()};
  const auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ(out->front().extents(), (tensor::Extents{c.batch, c.outputs, rows, columns}));
  const Doubles found = Numbers(out->front());
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0;
  for (size_t k = 0; k < found.size(); ++k) {
    largest = std::max(largest, std::abs(found[k] - expected[k]));
  }
  EXPECT_LT(largest, 1e-12);
}

const DeformCase kCases[] = {
    {"plain", 1, 2, 3, 1, 1, 5, 6, 3, 1, 1, 1},
    {"groups", 2, 4, 6, 2, 4, 5, 4, 2, 1, 1, 1},
    {"strides", 1, 4, 2, 1, 2, 9, 7, 3, 2, 2, 2},
    {"bare", 2, 3, 2, 1, 1, 4, 5, 1, 1, 1, 0, false, false},
    {"symbolic", 2, 4, 4, 4, 2, 6, 5, 3, 1, 1, 1, true, true, true},
    {"odd", 2, 6, 5, 1, 2, 7, 5, 3, 2, 1, 1},
    {"group_of_offset_groups", 1, 6, 4, 2, 6, 5, 7, 3, 1, 2, 2},
    {"offset_group_of_groups", 2, 8, 8, 4, 2, 6, 5, 2, 1, 1, 1},
    {"groups_across_offset_groups", 2, 12, 4, 2, 3, 5, 4, 3, 1, 1, 1, true, true, true},
    // 18.9 MB are sampled: 89 of 100 rows, then 11.
    {"bands", 1, 4, 2, 2, 1, 100, 656, 3, 1, 1, 1},
};

INSTANTIATE_TEST_SUITE_P(Cases, DeformConvTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace onnxifi::ops
