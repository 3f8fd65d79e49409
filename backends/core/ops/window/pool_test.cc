// SPDX-License-Identifier: Apache-2.0
//
// Poolings in old opsets and with symbolic extents, against plain loops over one axis.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Ints = std::vector<int64_t>;

constexpr int64_t kExtent = 7;

struct PoolCase {
  std::string op_type;
  int version;
  int64_t kernel, stride, dilation, pad_begin, pad_end;
  bool ceil_mode, count_include_pad;
};

class PoolTest : public ::testing::TestWithParam<PoolCase> {};

double Pooled(const PoolCase& c, const std::vector<double>& x, int64_t out) {
  double largest = -INFINITY, sum = 0, squares = 0;
  int64_t inside = 0, counted = 0;
  for (int64_t tap = 0; tap < c.kernel; ++tap) {
    const int64_t at = out * c.stride - c.pad_begin + tap * c.dilation;
    if (at < kExtent + c.pad_end) ++counted;
    if (at < 0 || at >= kExtent) continue;
    ++inside;
    largest = std::max(largest, x[at]);
    sum += x[at];
    squares += x[at] * x[at];
  }
  if (c.op_type == "MaxPool") return largest;
  if (c.op_type == "LpPool") return std::sqrt(squares);
  return sum / static_cast<double>(c.count_include_pad ? counted : inside);
}

TEST_P(PoolTest, EqualsLoops) {
  const PoolCase& c = GetParam();
  const std::vector<double> x = {3, -1, 4, 1, -5, 9, 2};
  const int64_t room = kExtent + c.pad_begin + c.pad_end - ((c.kernel - 1) * c.dilation + 1);
  int64_t count = room / c.stride + 1;
  if (c.ceil_mode) {
    count = (room + c.stride - 1) / c.stride + 1;
    if ((count - 1) * c.stride >= kExtent + c.pad_begin) --count;
  }
  std::vector<double> expected;
  for (int64_t out = 0; out < count; ++out) expected.push_back(Pooled(c, x, out));

  for (bool is_symbolic : {false, true}) {
    OneNode node{c.op_type, c.version};
    node.attributes["kernel_shape"] = Ints{c.kernel};
    node.attributes["strides"] = Ints{c.stride};
    node.attributes["pads"] = Ints{c.pad_begin, c.pad_end};
    if (c.dilation != 1) node.attributes["dilations"] = Ints{c.dilation};
    if (c.ceil_mode) node.attributes["ceil_mode"] = int64_t{1};
    if (c.count_include_pad) node.attributes["count_include_pad"] = int64_t{1};
    node.inputs = {is_symbolic ? Symbolic({1, 1, kExtent}, x) : Given({1, 1, kExtent}, x)};
    auto out = RunOperator(node);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), Pointwise(DoubleNear(1e-5), expected));
  }
}

INSTANTIATE_TEST_SUITE_P(Attributes, PoolTest,
                         ::testing::Values(PoolCase{"MaxPool", 1, 3, 2, 1, 1, 1, false, false},
                                           PoolCase{"MaxPool", 10, 2, 2, 3, 0, 0, false, false},
                                           PoolCase{"MaxPool", 12, 3, 3, 1, 0, 1, true, false},
                                           PoolCase{"AveragePool", 1, 3, 2, 1, 1, 1, false, false},
                                           PoolCase{"AveragePool", 7, 3, 1, 1, 2, 1, false, true},
                                           PoolCase{"AveragePool", 10, 4, 3, 1, 0, 0, true, true},
                                           PoolCase{"AveragePool", 19, 2, 2, 2, 1, 1, true, false},
                                           PoolCase{"LpPool", 2, 3, 2, 1, 1, 1, false, false},
                                           PoolCase{"LpPool", 18, 2, 1, 3, 0, 2, false, false},
                                           PoolCase{"LpPool", 18, 4, 3, 1, 0, 0, true, false}));

// Windows of which all have as many taps, and some that reach beyond the padding.
TEST(LpPoolTest, EqualsLoopsForEveryPower) {
  const std::vector<double> x = {3, -1, 4, 1, -5, 9, 2};
  for (const int64_t p : {1, 2, 3, 4}) {
    for (const bool overhangs : {false, true}) {
      OneNode node{"LpPool", 18, {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"p", p}}};
      node.attributes["pads"] = Ints{1, overhangs ? 0 : 1};
      if (overhangs) node.attributes["ceil_mode"] = int64_t{1};
      node.inputs = {Given({1, 1, kExtent}, x)};
      std::vector<double> expected;
      for (int64_t at = -1; at < kExtent; at += 2) {
        double sum = 0;
        for (int64_t tap = at; tap < at + 3; ++tap) {
          if (tap >= 0 && tap < kExtent) sum += std::pow(std::abs(x[tap]), p);
        }
        expected.push_back(std::pow(sum, 1.0 / static_cast<double>(p)));
      }
      if (!overhangs) expected.resize(4);
      auto out = RunOperator(node);
      ASSERT_TRUE(out.ok()) << out.status().Text();
      expected.resize(static_cast<size_t>((*out)[0].element_count()));
      EXPECT_THAT(Numbers((*out)[0]), Pointwise(DoubleNear(1e-4), expected)) << p;
    }
  }
}

// Maxima and their positions over an image [1, 2, in...], by plain loops: the first of equals, and
// the first NaN, stays.
struct SlidingMaximum {
  Ints in, kernel, strides, dilations, pads_begin, pads_end;
  bool is_column_major = false;

  struct Seen {
    double value = -INFINITY;
    int64_t position = -1;
  };

  int64_t Out(size_t axis) const {
    const int64_t reach = (kernel[axis] - 1) * dilations[axis] + 1;
    return (in[axis] + pads_begin[axis] + pads_end[axis] - reach) / strides[axis] + 1;
  }
  tensor::Extents Extents() const { return {1, 2, in[0], in[1], in[2]}; }

  Seen At(const std::vector<double>& x, int64_t channel, const Ints& out) const {
    Seen seen;
    Ints tap(3, 0), at(3, 0);
    for (tap[0] = 0; tap[0] < kernel[0]; ++tap[0]) {
      for (tap[1] = 0; tap[1] < kernel[1]; ++tap[1]) {
        for (tap[2] = 0; tap[2] < kernel[2]; ++tap[2]) {
          bool is_inside = true;
          for (size_t axis = 0; axis < 3; ++axis) {
            at[axis] = out[axis] * strides[axis] - pads_begin[axis] + tap[axis] * dilations[axis];
            is_inside = is_inside && at[axis] >= 0 && at[axis] < in[axis];
          }
          if (!is_inside) continue;
          const int64_t image = channel * in[0] * in[1] * in[2];
          const int64_t rows = image + (at[0] * in[1] + at[1]) * in[2] + at[2];
          const int64_t columns = image + (at[2] * in[1] + at[1]) * in[0] + at[0];
          const double value = x[static_cast<size_t>(rows)];
          const bool is_new_nan = std::isnan(value) && !std::isnan(seen.value);
          if (seen.position >= 0 && !(value > seen.value) && !is_new_nan) continue;
          seen = {value, is_column_major ? columns : rows};
        }
      }
    }
    return seen;
  }

  std::vector<Seen> All(const std::vector<double>& x) const {
    std::vector<Seen> all;
    for (int64_t channel = 0; channel < 2; ++channel) {
      for (int64_t z = 0; z < Out(0); ++z) {
        for (int64_t y = 0; y < Out(1); ++y) {
          for (int64_t w = 0; w < Out(2); ++w) all.push_back(At(x, channel, {z, y, w}));
        }
      }
    }
    return all;
  }
};

// With numbers and with symbols for extents; `has_positions`: the second output is wanted.
void CompareMaxima(const SlidingMaximum& sliding, const std::vector<double>& x, ElementType type,
                   bool has_positions) {
  std::vector<SlidingMaximum::Seen> expected = sliding.All(x);
  for (SlidingMaximum::Seen& seen : expected) {
    if (seen.position < 0 && type == ElementType::kUint8) seen.value = 0;  // of nothing
  }
  for (const bool is_symbolic : {false, true}) {
    OneNode node{"MaxPool", 12};
    node.attributes["kernel_shape"] = sliding.kernel;
    node.attributes["strides"] = sliding.strides;
    node.attributes["dilations"] = sliding.dilations;
    Ints pads = sliding.pads_begin;
    pads.insert(pads.end(), sliding.pads_end.begin(), sliding.pads_end.end());
    node.attributes["pads"] = pads;
    if (sliding.is_column_major) node.attributes["storage_order"] = int64_t{1};
    node.wanted = {true, has_positions};
    node.inputs = {is_symbolic ? Symbolic(sliding.Extents(), x, type)
                               : Given(sliding.Extents(), x, type)};
    auto out = RunOperator(node);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    const std::vector<double> numbers = Numbers((*out)[0]);
    ASSERT_EQ(numbers.size(), expected.size());
    for (size_t k = 0; k < numbers.size(); ++k) {
      if (std::isnan(expected[k].value)) {
        EXPECT_TRUE(std::isnan(numbers[k])) << k;
      } else {
        EXPECT_EQ(numbers[k], expected[k].value) << k;
        EXPECT_EQ(std::signbit(numbers[k]), std::signbit(expected[k].value)) << k;
      }
    }
    if (!has_positions) continue;
    const std::vector<double> positions = Numbers((*out)[1]);
    ASSERT_EQ(positions.size(), expected.size());
    for (size_t k = 0; k < positions.size(); ++k) {
      EXPECT_EQ(positions[k], static_cast<double>(expected[k].position)) << k;
    }
  }
}

// Few different numbers, zeros of both signs, NaN, and infinity where there is nothing larger.
std::vector<double> DrawImage(const SlidingMaximum& sliding, bool is_float, std::mt19937& random) {
  std::vector<double> x(static_cast<size_t>(tensor::ElementCount(sliding.Extents())));
  for (double& value : x) {
    value = static_cast<double>(random() % 9) - (is_float ? 12 : 0);
    if (!is_float) continue;
    if (random() % 40 == 0) value = NAN;
    if (random() % 10 == 0) value = random() % 2 == 0 ? 0.0 : -0.0;
    if (random() % 3 == 0) value = -INFINITY;
  }
  return x;
}

// Windows that are reduced axis by axis, and some that are just not.
TEST(LargeMaxPoolTest, EqualsLoops) {
  const SlidingMaximum cases[] = {
      {{1, 11, 9}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}},
      {{1, 13, 17}, {1, 7, 9}, {1, 2, 1}, {1, 1, 2}, {0, 3, 1}, {0, 0, 8}},
      {{6, 9, 8}, {3, 4, 5}, {1, 1, 2}, {2, 1, 1}, {1, 3, 0}, {2, 0, 4}},
      {{5, 6, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      // Along the first axis as many as there are elements, but not those.
      {{3, 14, 14}, {1, 13, 13}, {2, 1, 1}, {1, 1, 1}, {1, 6, 6}, {1, 6, 6}},
      {{1, 16, 16}, {1, 4, 4}, {1, 4, 4}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
  };
  std::mt19937 random(3);
  for (const SlidingMaximum& sliding : cases) {
    CompareMaxima(sliding, DrawImage(sliding, true, random), ElementType::kFloat32, false);
    CompareMaxima(sliding, DrawImage(sliding, true, random), ElementType::kFloat16, false);
    CompareMaxima(sliding, DrawImage(sliding, false, random), ElementType::kUint8, false);
  }
}

// Windows of few taps, and two that are something else: dilated, and of many.
TEST(MaxPoolPositionsTest, EqualLoops) {
  const SlidingMaximum cases[] = {
      {{1, 8, 10}, {1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
      {{1, 7, 9}, {1, 3, 3}, {1, 2, 1}, {1, 1, 1}, {0, 1, 2}, {0, 2, 0}, true},
      {{5, 6, 7}, {2, 2, 3}, {1, 2, 3}, {1, 1, 1}, {1, 0, 2}, {0, 1, 1}},
      {{5, 6, 7}, {2, 2, 3}, {2, 1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 0, 2}, true},
      {{1, 7, 9}, {1, 3, 3}, {1, 1, 1}, {1, 2, 1}, {0, 1, 1}, {0, 1, 1}},
      {{1, 9, 9}, {1, 5, 5}, {1, 1, 2}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}, true},
  };
  std::mt19937 random(4);
  for (const SlidingMaximum& sliding : cases) {
    CompareMaxima(sliding, DrawImage(sliding, true, random), ElementType::kFloat32, true);
    CompareMaxima(sliding, DrawImage(sliding, true, random), ElementType::kFloat64, true);
    CompareMaxima(sliding, DrawImage(sliding, false, random), ElementType::kInt8, true);
  }
}

TEST(GlobalPoolTest, CoversSymbolicExtents) {
  const NodeInput x = Symbolic({1, 2, 2, 2}, {1, 2, 3, 6, -1, -2, -3, -4});
  auto average = RunOperator({"GlobalAveragePool", 1, {}, {x}});
  ASSERT_TRUE(average.ok()) << average.status().Text();
  EXPECT_EQ((*average)[0].extents(), (tensor::Extents{1, 2, 1, 1}));
  EXPECT_THAT(Numbers((*average)[0]), ElementsAre(3, -2.5));
  auto largest = RunOperator({"GlobalMaxPool", 1, {}, {x}});
  ASSERT_TRUE(largest.ok()) << largest.status().Text();
  EXPECT_THAT(Numbers((*largest)[0]), ElementsAre(6, -1));
}

TEST(GlobalPoolTest, RefusesAPowerThatIsNoInteger) {
  auto out = RunOperator({"GlobalLpPool", 1, {{"p", 2.5f}}, {Given({1, 1, 2}, {1, 2})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kUnsupportedAttribute);
  EXPECT_THAT(out.status().Text(), HasSubstr("p (2.500000) is not an integer"));
}

TEST(PoolRefusalTest, NamesTheSpatialAxes) {
  OneNode node{"MaxPool", 12, {{"kernel_shape", Ints{2, 2}}}, {Given({1, 1, 3}, {1, 2, 3})}};
  auto out = RunOperator(node);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kInvalidModel);
  EXPECT_THAT(out.status().Text(), HasSubstr("kernel_shape has 2 elements for 1 spatial axes"));
}

}  // namespace
}  // namespace onnxifi::ops
