// SPDX-License-Identifier: Apache-2.0
//
// Poolings in old opsets and with symbolic extents, against plain loops over one axis.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

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
                                           PoolCase{"LpPool", 2, 3, 2, 1, 1, 1, false, false}));

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
