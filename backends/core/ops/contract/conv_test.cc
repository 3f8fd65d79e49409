// SPDX-License-Identifier: Apache-2.0
//
// Convolutions against plain loops in float64, over the attributes, with extents given and
// symbolic.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

// Small whole numbers of both signs, the same for the same seed; their sums of products are exact.
std::vector<double> Numbers(int64_t count, int seed) {
  std::vector<double> values;
  for (int64_t k = 0; k < count; ++k) values.push_back((k * 7 + seed * 3) % 11 - 5);
  return values;
}

// One spatial axis of 2-D convolutions whose two axes have the same attributes.
struct ConvCase {
  int64_t channels, outputs, group, extent, kernel, stride, dilation, pad_begin, pad_end;
  std::string auto_pad;
};

class ConvTest : public ::testing::TestWithParam<ConvCase> {};

OneNode Node(const std::string& op_type, const ConvCase& c) {
  OneNode node{op_type, 11};
  node.attributes["group"] = c.group;
  node.attributes["strides"] = Ints{c.stride, c.stride};
  node.attributes["dilations"] = Ints{c.dilation, c.dilation};
  if (c.auto_pad.empty()) {
    node.attributes["pads"] = Ints{c.pad_begin, c.pad_begin, c.pad_end, c.pad_end};
  } else {
    node.attributes["auto_pad"] = c.auto_pad;
  }
  return node;
}

TEST_P(ConvTest, EqualsLoops) {
  const ConvCase& c = GetParam();
  const int64_t reach = (c.kernel - 1) * c.dilation + 1;
  int64_t begin = c.pad_begin;
  int64_t out = (c.extent + c.pad_begin + c.pad_end - reach) / c.stride + 1;
  if (!c.auto_pad.empty()) {
    out = (c.extent + c.stride - 1) / c.stride;
    const int64_t total = std::max<int64_t>(0, (out - 1) * c.stride + reach - c.extent);
    begin = c.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
  }
  const int64_t per_group = c.channels / c.group;
  const std::vector<double> x = Numbers(c.channels * c.extent * c.extent, 1);
  const std::vector<double> w = Numbers(c.outputs * per_group * c.kernel * c.kernel, 2);
  const std::vector<double> bias = Numbers(c.outputs, 3);
  std::vector<double> expected;
  for (int64_t m = 0; m < c.outputs; ++m) {
    for (int64_t oy = 0; oy < out; ++oy) {
      for (int64_t ox = 0; ox < out; ++ox) {
        double sum = bias[m];
        for (int64_t k = 0; k < per_group; ++k) {
          const int64_t channel = m / (c.outputs / c.group) * per_group + k;
          for (int64_t ky = 0; ky < c.kernel; ++ky) {
            for (int64_t kx = 0; kx < c.kernel; ++kx) {
              const int64_t y = oy * c.stride - begin + ky * c.dilation;
              const int64_t z = ox * c.stride - begin + kx * c.dilation;
              if (y < 0 || y >= c.extent || z < 0 || z >= c.extent) continue;
              sum += x[(channel * c.extent + y) * c.extent + z] *
                     w[((m * per_group + k) * c.kernel + ky) * c.kernel + kx];
            }
          }
        }
        expected.push_back(sum);
      }
    }
  }
  for (bool is_symbolic : {false, true}) {
    OneNode node = Node("Conv", c);
    const tensor::Extents x_extents = {1, c.channels, c.extent, c.extent};
    node.inputs = {is_symbolic ? Symbolic(x_extents, x) : Given(x_extents, x),
                   Constant({c.outputs, per_group, c.kernel, c.kernel}, w),
                   Constant({c.outputs}, bias)};
    auto result = RunOperator(node);
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_EQ((*result)[0].extents(), (tensor::Extents{1, c.outputs, out, out}));
    EXPECT_EQ(ops::Numbers((*result)[0]), expected) << "symbolic: " << is_symbolic;
  }
}

// Each input element adds its multiple of the kernel to the output: the definition, as scatter.
TEST_P(ConvTest, TransposedEqualsLoops) {
  const ConvCase& c = GetParam();
  const int64_t reach = (c.kernel - 1) * c.dilation + 1;
  int64_t begin = c.pad_begin;
  int64_t out = c.stride * (c.extent - 1) + reach - c.pad_begin - c.pad_end;
  if (!c.auto_pad.empty()) {
    out = c.extent * c.stride;
    const int64_t total = std::max<int64_t>(0, c.stride * (c.extent - 1) + reach - out);
    begin = c.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
  }
  const int64_t per_group = c.outputs / c.group;
  const std::vector<double> x = Numbers(c.channels * c.extent * c.extent, 1);
  const std::vector<double> w = Numbers(c.channels * per_group * c.kernel * c.kernel, 2);
  std::vector<double> expected(c.outputs * out * out, 0);
  for (int64_t channel = 0; channel < c.channels; ++channel) {
    for (int64_t k = 0; k < per_group; ++k) {
      const int64_t m = channel / (c.channels / c.group) * per_group + k;
      for (int64_t y = 0; y < c.extent * c.extent; ++y) {
        for (int64_t tap = 0; tap < c.kernel * c.kernel; ++tap) {
          const int64_t oy = y / c.extent * c.stride - begin + tap / c.kernel * c.dilation;
          const int64_t ox = y % c.extent * c.stride - begin + tap % c.kernel * c.dilation;
          if (oy < 0 || oy >= out || ox < 0 || ox >= out) continue;
          expected[(m * out + oy) * out + ox] +=
              x[channel * c.extent * c.extent + y] *
              w[(channel * per_group + k) * c.kernel * c.kernel + tap];
        }
      }
    }
  }
  OneNode node = Node("ConvTranspose", c);
  node.inputs = {Symbolic({1, c.channels, c.extent, c.extent}, x),
                 Given({c.channels, per_group, c.kernel, c.kernel}, w)};
  auto result = RunOperator(node);
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_EQ(ops::Numbers((*result)[0]), expected);
}

INSTANTIATE_TEST_SUITE_P(Attributes, ConvTest,
                         ::testing::Values(ConvCase{1, 1, 1, 5, 3, 1, 1, 0, 0, ""},
                                           ConvCase{2, 3, 1, 6, 3, 2, 1, 1, 0, ""},
                                           ConvCase{4, 6, 2, 7, 2, 1, 3, 2, 1, ""},
                                           ConvCase{3, 3, 3, 6, 3, 1, 2, 0, 2, ""},
                                           ConvCase{2, 2, 1, 5, 1, 3, 1, 0, 0, ""},
                                           ConvCase{3, 3, 3, 6, 2, 2, 1, 0, 0, ""},
                                           ConvCase{2, 2, 2, 5, 1, 1, 1, 0, 0, ""},
                                           ConvCase{2, 2, 2, 6, 2, 2, 1, 1, 1, ""},
                                           ConvCase{2, 4, 2, 6, 4, 2, 1, 0, 0, "SAME_UPPER"},
                                           ConvCase{2, 4, 1, 7, 2, 3, 2, 0, 0, "SAME_LOWER"}));

struct TapsCase {
  int64_t channels, per_group, extent, kernel, stride, pad_begin, pad_end, output_padding;
  bool is_map = true;
};

// Along one axis, and along the middle one of three.
TEST(ConvTransposeTest, SumsOfFewTapsOfOneChannelAreAMap) {
  for (const TapsCase& c :
       {TapsCase{2, 1, 5, 4, 2, 1, 1, 0}, TapsCase{1, 3, 4, 5, 2, 0, 0, 0},
        TapsCase{3, 1, 6, 9, 1, 4, 4, 0}, TapsCase{2, 2, 4, 7, 3, 2, 3, 0},
        TapsCase{2, 1, 3, 12, 2, 0, 5, 0}, TapsCase{2, 1, 4, 3, 3, 2, 0, 0},
        TapsCase{2, 1, 4, 4, 2, 1, 1, 1, false}, TapsCase{2, 1, 4, 2, 3, 0, 0, 0, false}}) {
    for (const int64_t others : {1, 2}) {
      const int64_t out =
          c.stride * (c.extent - 1) + c.kernel - c.pad_begin - c.pad_end + c.output_padding;
      const std::vector<double> x = Numbers(c.channels * c.extent * others * others, 1);
      const std::vector<double> w = Numbers(c.channels * c.per_group * c.kernel, 2);
      const std::vector<double> bias = Numbers(c.channels * c.per_group, 4);
      std::vector<double> expected(c.channels * c.per_group * out * others * others, 0);
      for (int64_t m = 0; m < c.channels * c.per_group; ++m) {
        for (int64_t other = 0; other < others * others; ++other) {
          const auto place = [&](int64_t channel, int64_t at, int64_t extent) {
            return ((channel * others + other / others) * extent + at) * others + other % others;
          };
          for (int64_t k = 0; k < out; ++k) expected[place(m, k, out)] = bias[m];
          for (int64_t k = 0; k < c.extent * c.kernel; ++k) {
            const int64_t at = k / c.kernel * c.stride + k % c.kernel - c.pad_begin;
            if (at < 0 || at >= out) continue;
            expected[place(m, at, out)] +=
                x[place(m / c.per_group, k / c.kernel, c.extent)] * w[m * c.kernel + k % c.kernel];
          }
        }
      }
      graph::testing::GraphBuilder builder("g");
      graph::Type type;
      type.kind = graph::Type::Kind::kTensor;
      type.element = ElementType::kFloat32;
      type.extents = {{1, ""}, {c.channels, ""}, {others, ""}, {c.extent, ""}, {others, ""}};
      const auto given = [&](const tensor::Extents& extents, const std::vector<double>& numbers) {
        return builder.AddConstant(MakeTensor(ElementType::kFloat32, extents, numbers));
      };
      const graph::ValueId input = builder.AddInput("x", type);
      builder.SetOutputs(
          {builder.AddNode("ConvTranspose", 11,
                           {input, given({c.channels, c.per_group, 1, c.kernel, 1}, w),
                            given({c.channels * c.per_group}, bias)},
                           {{"group", c.channels},
                            {"strides", Ints{1, c.stride, 1}},
                            {"pads", Ints{0, c.pad_begin, 0, 0, c.pad_end, 0}},
                            {"output_padding", Ints{0, c.output_padding, 0}}})});
      const auto result = RunGraph(
          builder.Take(),
          {MakeTensor(ElementType::kFloat32, {1, c.channels, others, c.extent, others}, x)},
          [&](program::Program& program) {
            for (const program::Step& step : program.steps) {
              EXPECT_EQ(step.As<program::Contract>() == nullptr, c.is_map);
            }
          });
      ASSERT_TRUE(result.ok()) << result.status().Text();
      EXPECT_EQ((*result)[0].extents(),
                (tensor::Extents{1, c.channels * c.per_group, others, out, others}));
      EXPECT_EQ(ops::Numbers((*result)[0]), expected) << c.kernel << " by " << c.stride;
    }
  }
}

// An element of X that is not there is no term, whatever it would be multiplied by.
TEST(ConvTransposeTest, WeightsThatAreNotFiniteMeetNoPadding) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    std::vector<double> w;
    int64_t stride;
    std::vector<double> expected;
  };
  const std::vector<Case> cases = {
      {{1, kInfinity}, 1, {1, kInfinity, kInfinity, kInfinity}},
      {{-kInfinity, 1}, 1, {-kInfinity, -kInfinity, -kInfinity, 3}},
      {{1, 1, kNaN, 1}, 2, {1, 1, kNaN, 3, kNaN, 5, kNaN, 3}},
      {{1, 2, 3, 4}, 2, {1, 2, 5, 8, 9, 14, 9, 12}},
  };
  for (const Case& c : cases) {
    for (const auto& form : {Constant, Given, Symbolic}) {
      OneNode node{"ConvTranspose", 11, {{"strides", Ints{c.stride}}}, {}};
      node.inputs = {Given({1, 1, 3}, {1, 2, 3}),
                     form({1, 1, int64_t(c.w.size())}, c.w, ElementType::kFloat32)};
      const auto result = RunOperator(node);
      ASSERT_TRUE(result.ok()) << result.status().Text();
      EXPECT_THAT(ops::Numbers((*result)[0]),
                  testing::Pointwise(testing::NanSensitiveDoubleEq(), c.expected));
    }
  }
}

TEST(ConvRefusalTest, NamesWhatDisagrees) {
  OneNode node{
      "Conv", 11, {}, {Given({1, 4, 5, 5}, Numbers(100, 1)), Given({2, 3, 3, 3}, Numbers(54, 1))}};
  auto result = RunOperator(node);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), base::Code::kMismatchingShape);
  EXPECT_THAT(result.status().Text(), HasSubstr("differ: 4 and 3"));

  node.attributes["strides"] = Ints{0, 1};
  node.inputs[1] = Given({2, 4, 3, 3}, Numbers(72, 1));
  result = RunOperator(node);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), base::Code::kInvalidModel);
  EXPECT_THAT(result.status().Text(), HasSubstr("strides has an element (0) outside [1,"));
}

TEST(ConvRefusalTest, RefusesOneBiasForAllChannels) {
  for (const char* op_type : {"Conv", "ConvTranspose"}) {
    for (const auto& form : {Given, Symbolic}) {
      const bool is_transposed = op_type[4] != 0;
      const auto type = ElementType::kFloat32;
      const auto out =
          RunOperator({op_type,
                       11,
                       {},
                       {Given({1, 2, 5, 5}, Numbers(50, 1)),
                        Given({is_transposed ? 2 : 3, is_transposed ? 3 : 2, 2, 2}, Numbers(24, 1)),
                        form({1}, {2}, type)}});
      ASSERT_FALSE(out.ok());
      EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
      EXPECT_THAT(out.status().Text(), HasSubstr("number of channels differ"));
    }
  }
}

TEST(GemmTest, StretchesCOnlyWithBroadcastBeforeOpset7) {
  OneNode node{"Gemm",
               6,
               {},
               {Given({2, 2}, {1, 2, 3, 4}), Given({2, 2}, {1, 0, 0, 1}), Given({2}, {10, 20})}};
  auto refused = RunOperator(node);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), base::Code::kMismatchingShape);
  node.attributes["broadcast"] = int64_t{1};
  auto result = RunOperator(node);
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_EQ(ops::Numbers((*result)[0]), (std::vector<double>{11, 22, 13, 24}));
}

TEST(GemmTest, ScalesIntegers) {
  OneNode node{
      "Gemm",
      13,
      {{"alpha", 0.5f}, {"beta", 3.0f}, {"transB", int64_t{1}}},
      {Given({1, 2}, {3, 4}, ElementType::kInt32), Given({2, 2}, {1, 2, 5, 6}, ElementType::kInt32),
       Given({}, {7}, ElementType::kInt32)}};
  auto result = RunOperator(node);
  ASSERT_TRUE(result.ok()) << result.status().Text();
  // 0.5 * 11 + 21 and 0.5 * 39 + 21, cut off.
  EXPECT_EQ(ops::Numbers((*result)[0]), (std::vector<double>{26, 40}));
}

struct EinsumCase {
  std::string equation;
  std::vector<tensor::Extents> inputs;
  std::vector<double> expected;  // for operands of 1, 2, 3, ...
};

class EinsumTest : public ::testing::TestWithParam<EinsumCase> {};

TEST_P(EinsumTest, EqualsHandComputedSums) {
  for (bool is_symbolic : {false, true}) {
    OneNode node{"Einsum", 12, {{"equation", GetParam().equation}}};
    for (const tensor::Extents& extents : GetParam().inputs) {
      std::vector<double> values;
      for (int64_t k = 0; k < tensor::ElementCount(extents); ++k) values.push_back(1.0 + k);
      node.inputs.push_back(is_symbolic ? Symbolic(extents, values) : Given(extents, values));
    }
    auto result = RunOperator(node);
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_EQ(ops::Numbers((*result)[0]), GetParam().expected) << GetParam().equation;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Equations, EinsumTest,
    ::testing::Values(EinsumCase{"ii->i", {{2, 2}}, {1, 4}}, EinsumCase{"ii", {{2, 2}}, {5}},
                      EinsumCase{"ba", {{2, 2}}, {1, 3, 2, 4}},
                      // The third power of the matrix 1 2 / 3 4.
                      EinsumCase{"ij,jk,kl->il", {{2, 2}, {2, 2}, {2, 2}}, {37, 54, 81, 118}},
                      EinsumCase{"i,j->ji", {{2}, {3}}, {1, 2, 2, 4, 3, 6}},
                      // j is in A alone: summed before it meets B.
                      EinsumCase{"ij,k->ik", {{2, 2}, {2}}, {3, 6, 7, 14}},
                      EinsumCase{"...i,...i->...", {{2, 2}, {2}}, {5, 11}},
                      EinsumCase{"i,i,i->", {{2}, {2}, {2}}, {9}},
                      // Summed axes that do not step through both factors as one.
                      EinsumCase{"abc,dcb->ad", {{1, 2, 2}, {1, 2, 2}}, {29}},
                      EinsumCase{"bac,abd->cd", {{2, 2, 2}, {2, 2, 1}}, {48, 58}},
                      // a is in A alone, c and d in B.
                      EinsumCase{"ab,cbd->b", {{2, 2}, {2, 2, 2}}, {56, 132}},
                      // a stands still in the first two.
                      EinsumCase{"ab,ca,ac->b", {{1, 2}, {2, 1}, {2, 2}}, {16, 32}},
                      // c weighs b: a product of a and b would have an axis more than they.
                      EinsumCase{"ac,bc,c->ab", {{2, 2}, {1, 2}, {2}}, {9, 19}}));

}  // namespace
}  // namespace onnxifi::ops
