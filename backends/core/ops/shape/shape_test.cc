// SPDX-License-Identifier: Apache-2.0
//
// Operators on shapes in old opsets, with extents, axes and positions that are known only when they
// run, and what they refuse.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/ops/lower_graph.h"
#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using tensor::Extents;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

std::vector<double> Count(int count) {
  std::vector<double> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

NodeInput RunTimeInts(const std::vector<double>& values) {
  return Given({static_cast<int64_t>(values.size())}, values, ElementType::kInt64);
}

// How many is known when the node runs, too.
NodeInput UnknownInts(const std::vector<double>& values) {
  NodeInput input = RunTimeInts(values);
  input.kind = NodeInput::Kind::kSymbolic;
  return input;
}

// Nodes that give their elements in order under other extents.
struct ExtentsCase {
  std::string name;
  OneNode node;
  Extents expected;
};

class SameElementsTest : public ::testing::TestWithParam<ExtentsCase> {};

TEST_P(SameElementsTest, GivesTheExtents) {
  auto out = RunOperator(GetParam().node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), GetParam().expected);
  EXPECT_EQ(Numbers((*out)[0]), Count(24));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SameElementsTest,
    ::testing::Values(
        ExtentsCase{"ReshapeAttribute",
                    {"Reshape", 1, {{"shape", Ints{0, -1}}}, {Given({2, 3, 4}, Count(24))}},
                    {2, 12}},
        ExtentsCase{"ReshapeAtRunTime",
                    {"Reshape", 14, {}, {Symbolic({2, 3, 4}, Count(24)), RunTimeInts({4, 0, -1})}},
                    {4, 3, 2}},
        ExtentsCase{"SqueezeAtRunTime",
                    {"Squeeze", 13, {}, {Symbolic({1, 24, 1}, Count(24)), RunTimeInts({-1, 0})}},
                    {24}},
        ExtentsCase{"SqueezeOfTheOnesOfARun",
                    {.op_type = "Squeeze",
                     .version = 13,
                     .inputs = {Symbolic({1, 4, 1, 6}, Count(24))},
                     .declared_rank = 2},
                    {4, 6}},
        ExtentsCase{"SqueezeKeepsAOneOfTheDeclaredRank",
                    {.op_type = "Squeeze",
                     .version = 1,
                     .inputs = {Symbolic({1, 24}, Count(24))},
                     .declared_rank = 2},
                    {1, 24}},
        ExtentsCase{"UnsqueezeAtRunTime",
                    {"Unsqueeze", 13, {}, {Symbolic({4, 6}, Count(24)), RunTimeInts({-2, 0})}},
                    {1, 4, 1, 6}},
        ExtentsCase{"UnsqueezeAttribute",
                    {"Unsqueeze", 1, {{"axes", Ints{1, 2}}}, {Given({4, 6}, Count(24))}},
                    {4, 1, 1, 6}},
        ExtentsCase{"FlattenSymbolic",
                    {"Flatten", 9, {{"axis", int64_t{2}}}, {Symbolic({2, 3, 4}, Count(24))}},
                    {6, 4}}),
    [](const auto& info) { return info.param.name; });

// Nodes on 0..23 as [4, 6] (or what the node says), with the expected numbers.
struct NumbersCase {
  std::string name;
  OneNode node;
  Extents extents;
  std::vector<double> expected;
};

class NumbersTest : public ::testing::TestWithParam<NumbersCase> {};

TEST_P(NumbersTest, GivesTheNumbers) {
  auto out = RunOperator(GetParam().node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), GetParam().extents);
  EXPECT_THAT(Numbers((*out)[0]), ElementsAreArray(GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, NumbersTest,
    ::testing::Values(
        NumbersCase{"SliceAttributes",
                    {"Slice",
                     1,
                     {{"starts", Ints{1, -2}}, {"ends", Ints{3, 1000}}},
                     {Given({4, 6}, Count(24))}},
                    {2, 2},
                    {10, 11, 16, 17}},
        NumbersCase{"SliceBackwardsAtRunTime",
                    {"Slice",
                     13,
                     {},
                     {Symbolic({4, 6}, Count(24)), RunTimeInts({-1, 5}), RunTimeInts({-100, 0}),
                      RunTimeInts({0, 1}), RunTimeInts({-2, -3})}},
                    {2, 2},
                    {23, 20, 11, 8}},
        // Of how many axes is known when it runs, of a list as long as another, and of one axis.
        NumbersCase{
            "SliceAtPositionsOfUnknownNumber",
            {"Slice",
             13,
             {},
             {Symbolic({4, 6}, Count(24)), UnknownInts({1}), RunTimeInts({3}), UnknownInts({0})}},
            {2, 6},
            {6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}},
        NumbersCase{
            "SliceOfTheFirstOfTwoAxes",
            {"Slice", 13, {}, {Symbolic({4, 2}, Count(8)), UnknownInts({-1}), UnknownInts({9})}},
            {1, 2},
            {6, 7}},
        NumbersCase{
            "SliceOfNoAxis",
            {"Slice", 13, {}, {Symbolic({2, 2}, Count(4)), UnknownInts({}), UnknownInts({})}},
            {2, 2},
            {0, 1, 2, 3}},
        NumbersCase{
            "SliceOfAListAtPositionsOfUnknownNumber",
            {"Slice", 13, {}, {Symbolic({5}, Count(5)), UnknownInts({1}), UnknownInts({4})}},
            {3},
            {1, 2, 3}},
        NumbersCase{
            "SliceOfNothing",
            {"Slice", 13, {}, {Symbolic({4, 6}, Count(24)), RunTimeInts({3}), RunTimeInts({1})}},
            {0, 6},
            {}},
        NumbersCase{"PadByAttributes",
                    {"Pad", 1, {{"paddings", Ints{1, 0}}, {"value", 7.0f}}, {Given({2}, {1, 2})}},
                    {3},
                    {7, 1, 2}},
        NumbersCase{"PadAtRunTime",
                    {"Pad",
                     18,
                     {},
                     {Symbolic({1, 3}, {1, 2, 3}), RunTimeInts({-1, 2}), Given({}, {9}),
                      RunTimeInts({-1})}},
                    {1, 4},
                    {2, 3, 9, 9}},
        NumbersCase{"PadReflectsTwice",
                    {"Pad",
                     18,
                     {{"mode", std::string("reflect")}},
                     {Given({3}, {1, 2, 3}), Constant({2}, {5, 0}, ElementType::kInt64)}},
                    {8},
                    {2, 1, 2, 3, 2, 1, 2, 3}},
        NumbersCase{"GatherOutOfRangeReadsZero",
                    {"Gather", 13, {}, {Given({3}, {5, 6, 7}), RunTimeInts({-1, 3, -4, 9e18, 0})}},
                    {5},
                    {7, 0, 0, 0, 5}},
        NumbersCase{"GatherElementsOutOfRangeReadsZero",
                    {"GatherElements",
                     13,
                     {},
                     {Given({2, 1}, {5, 6}), Given({3, 1}, {1, -3, 2}, ElementType::kInt32)}},
                    {3, 1},
                    {6, 0, 0}},
        NumbersCase{"GatherElementsBeyondAnotherAxisReadsZero",
                    {"GatherElements",
                     13,
                     {{"axis", int64_t{1}}},
                     {Given({2, 2}, {1, 2, 3, 4}),
                      Given({3, 2}, {1, 0, -1, 2, 0, 1}, ElementType::kInt64)}},
                    {3, 2},
                    {2, 1, 4, 0, 0, 0}},
        NumbersCase{
            "GatherNdOutOfRangeReadsZero",
            {"GatherND",
             13,
             {},
             {Given({2, 2}, {1, 2, 3, 4}), Given({2, 2}, {1, -1, 0, 2}, ElementType::kInt64)}},
            {2},
            {4, 0}},
        NumbersCase{"TileOneAxis",
                    {"Tile",
                     1,
                     {},
                     {Given({2, 2}, {1, 2, 3, 4}), RunTimeInts({2}),
                      Constant({1}, {1}, ElementType::kInt64)}},
                    {2, 4},
                    {1, 2, 1, 2, 3, 4, 3, 4}},
        NumbersCase{"OneHotOfDepthAtRunTime",
                    {"OneHot",
                     11,
                     {},
                     {Given({3}, {0, -1, 5}, ElementType::kInt64),
                      Given({}, {2}, ElementType::kFloat32), Given({2}, {3, 8})}},
                    {3, 2},
                    {8, 3, 3, 8, 3, 3}},
        NumbersCase{"RangeOfFloats",
                    {"Range", 11, {}, {Given({}, {1}), Given({}, {0}), Given({}, {-0.25})}},
                    {4},
                    {1, 0.75, 0.5, 0.25}},
        NumbersCase{"RangeOfTwiceTheLargestDistance",
                    {"Range",
                     11,
                     {},
                     {Constant({}, {-0x1p63}, ElementType::kInt64),
                      Constant({}, {0x1p62}, ElementType::kInt64),
                      Constant({}, {0x1p62}, ElementType::kInt64)}},
                    {3},
                    {-0x1p63, -0x1p62, 0}},
        NumbersCase{"RangeOfAnInfiniteDeltaBackwards",
                    {"Range", 11, {}, {Given({}, {5}), Given({}, {0}), Given({}, {-INFINITY})}},
                    {0},
                    {}},
        NumbersCase{"UpsampleByAttributes",
                    {"Upsample",
                     1,
                     {{"height_scale", 1.0f}, {"width_scale", 2.0f}},
                     {Symbolic({1, 1, 1, 2}, {1, 2})}},
                    {1, 1, 1, 4},
                    {1, 1, 2, 2}},
        NumbersCase{"ResizeOpset10ShrinksByCeil",
                    {"Resize", 10, {}, {Given({4}, {1, 2, 3, 4}), Given({1}, {0.6})}},
                    {2},
                    {1, 3}},
        // How many numbers there must be follows from the rank, where their list does not tell.
        NumbersCase{"TileByAListOfAnyLength",
                    {"Tile", 13, {}, {Symbolic({1, 2}, {1, 2}), UnknownInts({2, 1})}},
                    {2, 2},
                    {1, 2, 1, 2}},
        NumbersCase{"PadByAListOfAnyLength",
                    {"Pad", 13, {}, {Symbolic({2}, {1, 2}), UnknownInts({1, 2})}},
                    {5},
                    {0, 1, 2, 0, 0}},
        NumbersCase{"ReshapeToTheDeclaredRank",
                    {.op_type = "Reshape",
                     .version = 14,
                     .inputs = {Symbolic({4}, {1, 2, 3, 4}), UnknownInts({2, -1})},
                     .declared_rank = 2},
                    {2, 2},
                    {1, 2, 3, 4}},
        NumbersCase{"ExpandToTheDeclaredRank",
                    {.op_type = "Expand",
                     .version = 13,
                     .inputs = {Symbolic({2}, {1, 2}), UnknownInts({2, 1})},
                     .declared_rank = 2},
                    {2, 2},
                    {1, 2, 1, 2}},
        NumbersCase{"ReduceSumToTheDeclaredRank",
                    {.op_type = "ReduceSum",
                     .version = 13,
                     .attributes = {{"keepdims", int64_t{0}}},
                     .inputs = {Symbolic({2, 1, 3}, Count(6)), UnknownInts({0, 1})},
                     .declared_rank = 1},
                    {3},
                    {3, 5, 7}},
        NumbersCase{
            "Col2ImToTheDeclaredRank",
            {.op_type = "Col2Im",
             .version = 18,
             .attributes = {{"strides", Ints{1, 2}}},
             .inputs = {Given({1, 2, 2}, {1, 2, 3, 4}), UnknownInts({1, 4}), UnknownInts({1, 2})},
             .declared_rank = 4},
            {1, 1, 1, 4},
            {1, 3, 2, 4}},
        NumbersCase{"ExpandByFewerExtentsThanDeclared",
                    {.op_type = "Expand",
                     .version = 13,
                     .inputs = {Symbolic({2, 1}, {1, 2}), UnknownInts({3})},
                     .declared_rank = 2},
                    {2, 3},
                    {1, 1, 1, 2, 2, 2}},
        NumbersCase{"ExpandByNoExtents",
                    {.op_type = "Expand",
                     .version = 13,
                     .inputs = {Symbolic({2, 1}, {1, 2}), UnknownInts({})},
                     .declared_rank = 2},
                    {2, 1},
                    {1, 2}},
        NumbersCase{
            "ResizeToAListOfAnyLength",
            {"Resize", 13, {}, {Symbolic({2}, {1, 2}), Omitted(), Omitted(), UnknownInts({4})}},
            {4},
            {1, 1, 2, 2}},
        NumbersCase{"CumSumAlongAListOfAnyLength",
                    {"CumSum", 14, {}, {Symbolic({3}, {1, 2, 3}), UnknownInts({0})}},
                    {3},
                    {1, 3, 6}},
        // The float32 nearest to 0.7 is below it.
        NumbersCase{"ResizeRoundsExtentsToFloat",
                    {"Resize", 13, {}, {Given({10}, Count(10)), Omitted(), Constant({1}, {0.7})}},
                    {7},
                    {0, 2, 3, 4, 6, 7, 9}},
        NumbersCase{
            "ResizeRoundsSymbolicExtentsToFloat",
            {"Resize", 13, {}, {Symbolic({10}, Count(10)), Omitted(), Constant({1}, {0.7})}},
            {7},
            {0, 2, 3, 4, 6, 7, 9}},
        NumbersCase{"ResizeRoundsExtentsToFloatAtRunTime",
                    {"Resize", 13, {}, {Given({10}, Count(10)), Omitted(), Given({1}, {0.7})}},
                    {7},
                    {0, 2, 3, 4, 6, 7, 9}},
        // The float32 nearest to 1 / 3 is above it.
        NumbersCase{"ResizeByAThirdTakesEveryThird",
                    {"Resize",
                     13,
                     {{"coordinate_transformation_mode", std::string("asymmetric")},
                      {"nearest_mode", std::string("floor")}},
                     {Given({9}, Count(9)), Omitted(), Constant({1}, {1.0 / 3})}},
                    {3},
                    {0, 3, 6}},
        // (y + 0.5) / scale: 0.25, 0.75, 1.25 ...
        NumbersCase{"ResizeOfNearestNeighboursAsTensorFlow",
                    {"Resize",
                     11,
                     {{"coordinate_transformation_mode", std::string("tf_half_pixel_for_nn")},
                      {"nearest_mode", std::string("floor")}},
                     {Given({4}, Count(4)), Constant({0}, {}), Constant({1}, {2})}},
                    {8},
                    {0, 0, 1, 1, 2, 2, 3, 3}},
        NumbersCase{"ResizeOfFewerNearestNeighboursAsTensorFlow",
                    {"Resize",
                     13,
                     {{"coordinate_transformation_mode", std::string("tf_half_pixel_for_nn")},
                      {"nearest_mode", std::string("floor")}},
                     {Symbolic({4}, Count(4)), Omitted(), Constant({1}, {0.5})}},
                    {2},
                    {1, 3}},
        NumbersCase{"ResizeOfNearestNeighboursToTheSameExtent",
                    {"Resize",
                     11,
                     {{"coordinate_transformation_mode", std::string("tf_half_pixel_for_nn")},
                      {"nearest_mode", std::string("ceil")}},
                     {Given({4}, Count(4)), Constant({0}, {}), Constant({1}, {1})}},
                    {4},
                    {0, 1, 2, 3}},
        // Exact arithmetic puts element 19 at a scale of 1.3 in the middle between two, and 43
        // at 2.9; that of float32 puts both beside it.
        NumbersCase{"ResizeKnowsTiesOfRoundedScalesBelow",
                    {"Resize",
                     19,
                     {{"mode", std::string("nearest")}},
                     {Given({20}, Count(20)), Omitted(), Constant({1}, {1.3})}},
                    {26},
                    {0,  1,  1,  2,  3,  4,  4,  5,  6,  7,  8,  8,  9,
                     10, 11, 11, 12, 13, 14, 14, 15, 16, 17, 18, 18, 19}},
        NumbersCase{
            "ResizeKnowsTiesOfRoundedScalesAbove",
            {"Resize",
             19,
             {{"nearest_mode", std::string("round_prefer_ceil")}},
             {Symbolic({16}, Count(16)), Omitted(), Constant({1}, {2.9})}},
            {46},
            {0, 0, 0, 1, 1, 1, 2,  2,  2,  3,  3,  3,  4,  4,  5,  5,  5,  6,  6,  6,  7,  7,  7,
             8, 8, 8, 9, 9, 9, 10, 10, 10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 15, 15, 15}},
        NumbersCase{"ResizeKnowsTiesOfSizes",
                    {"Resize",
                     13,
                     {{"nearest_mode", std::string("round_prefer_ceil")}},
                     {Given({20}, Count(20)), Omitted(), Omitted(),
                      Constant({1}, {6}, ElementType::kInt64)}},
                    {6},
                    {1, 5, 8, 11, 15, 18}}),
    [](const auto& info) { return info.param.name; });

// numpy's float32 product, of many extents and scales at once.
TEST(ResizeTest, ScalesSymbolicExtentsAsFloat32Does) {
  for (const float scale : {0.7F, 0.1F, 1.4F, 0.35F, 1.0F / 3, 0.29F, 2.5F, 3.3F, 0.013F}) {
    for (const int64_t in : {1, 2, 3, 5, 10, 20, 30, 50, 75, 100, 150, 225, 300, 900, 1801}) {
      const auto want = static_cast<int64_t>(std::floor(static_cast<float>(in) * scale));
      if (want == 0) continue;
      const std::vector<double> x(static_cast<size_t>(in), 1.0);
      const auto out =
          RunOperator({"Resize", 13, {}, {Symbolic({in}, x), Omitted(), Constant({1}, {scale})}});
      ASSERT_TRUE(out.ok()) << out.status().Text();
      EXPECT_EQ((*out)[0].extents(), (Extents{want})) << scale << " of " << in;
    }
  }
}

// What PyTorch 1.0 to 1.2 write for an image that is made twice as large: the scales are
// floor(extent * 2.0) / extent. Known before a run, whether the extents are numbers or symbols.
TEST(ResizeTest, TakesScalesThatAreQuotientsOfExtents) {
  for (const int64_t declared : {-1, 2}) {
    graph::testing::GraphBuilder builder("g");
    graph::Type type{.kind = graph::Type::Kind::kTensor, .element = ElementType::kFloat32};
    type.extents = {{1, ""}, {1, ""}, {declared, "H"}, {declared, "W"}};
    const graph::ValueId x = builder.AddInput("x", type);
    const auto floats = [&](const Extents& extents, const std::vector<double>& numbers) {
      return builder.AddConstant(MakeTensor(ElementType::kFloat32, extents, numbers));
    };
    const graph::ValueId shape = builder.AddNode("Shape", 1, {x});
    graph::ValueIds scales = {floats({2}, {1, 1})};
    for (const double axis : {2, 3}) {
      const graph::ValueId extent = builder.AddNode(
          "Cast", 9,
          {builder.AddNode(
              "Gather", 1,
              {shape, builder.AddConstant(MakeTensor(ElementType::kInt64, {}, {axis}))},
              {{"axis", int64_t{0}}})},
          {{"to", int64_t{1}}});
      const graph::ValueId larger =
          builder.AddNode("Floor", 6, {builder.AddNode("Mul", 7, {extent, floats({}, {2})})});
      scales.push_back(builder.AddNode("Unsqueeze", 1,
                                       {builder.AddNode("Div", 7, {larger, extent})},
                                       {{"axes", std::vector<int64_t>{0}}}));
    }
    builder.SetOutputs({builder.AddNode(
        "Upsample", 9, {x, builder.AddNode("Concat", 4, scales, {{"axis", int64_t{0}}})},
        {{"mode", std::string("nearest")}})});
    const auto out =
        RunGraph(builder.Take(), {MakeTensor(ElementType::kFloat32, {1, 1, 2, 2}, Count(4))},
                 [](program::Program& program) {
                   EXPECT_TRUE(std::ranges::none_of(program.steps, program::IsRunByExecution));
                 });
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_EQ((*out)[0].extents(), (Extents{1, 1, 4, 4}));
    EXPECT_THAT(Numbers((*out)[0]), ElementsAreArray(std::vector<double>{0, 0, 1, 1, 0, 0, 1, 1, 2,
                                                                         2, 3, 3, 2, 2, 3, 3}));
  }
}

struct RefusalCase {
  std::string name;
  OneNode node;
  base::Code code;
  std::string sentence;
};

class ShapeRefusalTest : public ::testing::TestWithParam<RefusalCase> {};

TEST_P(ShapeRefusalTest, NamesTheValueAndTheLimit) {
  auto out = RunOperator(GetParam().node);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), GetParam().code) << out.status().Text();
  EXPECT_THAT(out.status().Text(), HasSubstr(GetParam().sentence));
}

// Models of tables split a row of all features, some hundred of them of their own lengths.
TEST(SplitTest, TakesAnyNumberOfConstantLengths) {
  constexpr int64_t kParts = 300;
  std::vector<double> lengths;
  int64_t sum = 0;
  for (int64_t k = 0; k < kParts; ++k) sum += static_cast<int64_t>(lengths.emplace_back(k % 7));
  OneNode node{"Split", 13};
  node.inputs = {Given({sum}, Count(sum)), Constant({kParts}, lengths, ElementType::kInt64)};
  node.wanted.assign(kParts, true);
  const auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  double next = Count(sum)[0];
  for (size_t k = 0; k < lengths.size(); ++k) {
    const std::vector<double> part = Numbers((*out)[k]);
    ASSERT_EQ(static_cast<double>(part.size()), lengths[k]) << k;
    for (const double number : part) EXPECT_EQ(number, next++) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ShapeRefusalTest,
    ::testing::Values(
        RefusalCase{"ReshapeOfOtherCount",
                    {"Reshape", 14, {}, {Given({4}, Count(4)), RunTimeInts({3})}},
                    base::Code::kMismatchingShape,
                    "element counts"},
        RefusalCase{"ReshapeBelowMinusOne",
                    {"Reshape", 14, {}, {Given({4}, Count(4)), RunTimeInts({-2, -2})}},
                    base::Code::kInvalidModel,
                    "below -1"},
        RefusalCase{"ReshapeOfTwoUnknowns",
                    {"Reshape",
                     14,
                     {},
                     {Given({4}, Count(4)), Constant({2}, {-1, -1}, ElementType::kInt64)}},
                    base::Code::kInvalidModel,
                    "More than one extent is -1"},
        RefusalCase{"SqueezeOfTwo",
                    {"Squeeze", 1, {{"axes", Ints{0}}}, {Given({2, 1}, {1, 2})}},
                    base::Code::kMismatchingShape,
                    "Axis 0 of extent 2"},
        RefusalCase{"ExpandByMoreExtentsThanDeclared",
                    {.op_type = "Expand",
                     .version = 13,
                     .inputs = {Symbolic({2}, {1, 2}), UnknownInts({3, 2})},
                     .declared_rank = 1},
                    base::Code::kMismatchingShape,
                    "declared with 1 axes and has"},
        RefusalCase{"SqueezeOfOtherOnesThanDeclared",
                    {.op_type = "Squeeze",
                     .version = 13,
                     .inputs = {Symbolic({1, 1, 1}, {1})},
                     .declared_rank = 1},
                    base::Code::kUnsupportedShape,
                    "declared with 1 axes, for which 2 extents of"},
        RefusalCase{"SqueezeOfAOneOfNoDeclaredRank",
                    {"Squeeze", 13, {}, {Symbolic({1, 2}, {1, 2})}},
                    base::Code::kUnsupportedShape,
                    "is 1 in the run, and the graph is lowered for the rank of other runs"},
        RefusalCase{"SqueezeOfTwoAtRunTime",
                    {"Squeeze", 13, {}, {Symbolic({2, 1}, {1, 2}), RunTimeInts({0})}},
                    base::Code::kMismatchingShape,
                    "must be 1"},
        RefusalCase{"ConcatOfOtherExtents",
                    {"Concat",
                     13,
                     {{"axis", int64_t{0}}},
                     {Given({1, 2}, {1, 2}), Given({1, 3}, {1, 2, 3})}},
                    base::Code::kMismatchingShape,
                    "Extents of axis 1 differ: 2 and 3"},
        RefusalCase{"SplitOfOtherSum",
                    {"Split", 13, {}, {Given({4}, Count(4)), RunTimeInts({1, 2})}, {true, true}},
                    base::Code::kMismatchingShape,
                    "sum of split"},
        RefusalCase{
            "SliceAtTooManyPositions",
            {"Slice", 13, {}, {Symbolic({4}, Count(4)), UnknownInts({0, 1}), UnknownInts({4, 4})}},
            base::Code::kMismatchingShape,
            "More axes are sliced than the 1 that there are"},
        RefusalCase{"SliceFromFewerPositions",
                    {"Slice", 13, {}, {Symbolic({4}, Count(4)), UnknownInts({}), UnknownInts({4})}},
                    base::Code::kMismatchingShape,
                    "The extent of input 2 and that of starts differ"},
        RefusalCase{
            "SliceAtFewerPositionsThanAxes",
            {"Slice",
             13,
             {},
             {Symbolic({2, 2}, Count(4)), UnknownInts({1}), UnknownInts({2}), RunTimeInts({0, 1})}},
            base::Code::kMismatchingShape,
            "The extent of input 1 and that of starts, ends, axes or steps differ"},
        RefusalCase{"TileByTooLongAList",
                    {"Tile", 13, {}, {Symbolic({2}, {1, 2}), UnknownInts({2, 1})}},
                    base::Code::kMismatchingShape,
                    "The extent of input 1 and the number needed differ"},
        RefusalCase{"SliceByZero",
                    {"Slice",
                     13,
                     {},
                     {Given({4}, Count(4)), RunTimeInts({0}), RunTimeInts({4}), RunTimeInts({0}),
                      RunTimeInts({0})}},
                    base::Code::kInvalidModel,
                    "A step is 0"},
        RefusalCase{"RangeByZero",
                    {"Range",
                     11,
                     {},
                     {Given({}, {1}, ElementType::kInt64), Given({}, {1}, ElementType::kInt64),
                      Given({}, {0}, ElementType::kInt64)}},
                    base::Code::kInvalidModel,
                    "Range: The delta is 0."},
        RefusalCase{
            "RangeByAConstantZero",
            {"Range",
             11,
             {},
             {Constant({}, {0}, ElementType::kInt64), Constant({}, {5}, ElementType::kInt64),
              Constant({}, {0}, ElementType::kInt64)}},
            base::Code::kInvalidModel,
            "Range: The delta is 0."},
        RefusalCase{"RangeOfFloatsByZero",
                    {"Range", 11, {}, {Given({}, {0}), Given({}, {5}), Given({}, {0})}},
                    base::Code::kInvalidModel,
                    "Range: The delta is 0."},
        RefusalCase{"RangeToInfinity",
                    {"Range", 11, {}, {Given({}, {0}), Given({}, {INFINITY}), Given({}, {1})}},
                    base::Code::kInvalidModel,
                    "(limit - start) / delta, is not finite"},
        RefusalCase{"RangeByNaN",
                    {"Range", 11, {}, {Given({}, {0}), Given({}, {5}), Given({}, {NAN})}},
                    base::Code::kInvalidModel,
                    "(limit - start) / delta, is not finite"},
        RefusalCase{
            "AxisOutOfRange",
            {"Gather", 13, {{"axis", int64_t{2}}}, {Given({2, 2}, Count(4)), RunTimeInts({0})}},
            base::Code::kInvalidModel,
            "Axis 2 is outside [-2, 1]"},
        RefusalCase{"NegativeExtent",
                    {"ConstantOfShape", 9, {}, {RunTimeInts({-3})}},
                    base::Code::kInvalidModel,
                    "negative"},
        RefusalCase{"ScaleOfNothing",
                    {"Resize", 13, {}, {Given({4}, Count(4)), Omitted(), Constant({1}, {0})}},
                    base::Code::kUnsupportedAttribute,
                    "Scale 0.000000"}),
    [](const auto& info) { return info.param.name; });

// The import has made it dense.
TEST(ConstantTest, TakesASparseValue) {
  const auto out =
      RunOperator({"Constant",
                   13,
                   {{"sparse_value", MakeTensor(ElementType::kFloat32, {2, 2}, {0, 3, 0, 4})}}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ(Numbers((*out)[0]), (std::vector<double>{0, 3, 0, 4}));
}

// y = -(axes + x), all of one element; `of_constant`, `of_sum` and `of_output` are what the graph
// declares.
graph::Graph AddConstant(const Extents& of_constant, const Extents& of_sum,
                         const Extents& of_output = {1}) {
  graph::Graph graph;
  const auto add = [&graph](const char* name, const Extents& extents) {
    graph::Type type{.kind = graph::Type::Kind::kTensor, .element = ElementType::kInt64};
    type.extents.emplace();
    for (const int64_t extent : extents) type.extents->push_back({extent, ""});
    return graph.AddValue({.name = name, .type = std::move(type)});
  };
  const graph::ValueId x = add("x", {1}), constant = add("axes", of_constant);
  const graph::ValueId sum = add("sum", of_sum), y = add("y", of_output);
  graph.inputs = {x};
  graph.outputs = {y};
  graph::Node value{.op_type = "Constant", .since_version = 13};
  value.attributes = {{"value", MakeTensor(ElementType::kInt64, {1}, {5})}};
  value.outputs = {constant};
  graph::Node addition{.op_type = "Add", .since_version = 14};
  addition.inputs = {constant, x};
  addition.outputs = {sum};
  graph::Node negation{.op_type = "Neg", .since_version = 13};
  negation.inputs = {sum};
  negation.outputs = {y};
  graph.nodes = {value, addition, negation};
  return graph;
}

// The refusal of a support check; empty: there is none.
std::string Refusal(const graph::Graph& graph, Carrier carrier) {
  const SupportAnswer answer =
      LowerEachNode(graph, /*functions=*/nullptr, /*check=*/nullptr, carrier);
  std::string text = answer.edges.ok() ? "" : answer.edges.Text();
  for (const base::Status& status : answer.nodes) {
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), base::Code::kMismatchingShape);
    text += status.Text();
  }
  return text;
}

// Whatever is declared, y is -7 and has one element.
void ExpectRuns(const graph::Graph& graph) {
  EXPECT_EQ(Refusal(graph, Carrier::kValues), "");
  const auto out = RunGraph(graph, {MakeTensor(ElementType::kInt64, {1}, {2})});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), (Extents{1}));
  EXPECT_EQ(Numbers((*out)[0]), (std::vector<double>{-7}));
}

// ONNX Runtime's model builder declares lists of one axis as scalars, and ONNX Runtime loads them.
TEST(DeclaredShapesTest, OfConstantsDoNotCount) {
  const graph::Graph graph = AddConstant({}, {1});
  EXPECT_EQ(Refusal(graph, Carrier::kDescriptors), "");
  ExpectRuns(graph);
}

// Extents of what stands between nodes are left behind by tools that change these.
TEST(DeclaredShapesTest, OfExtentsBetweenNodesDoNotCount) {
  const graph::Graph graph = AddConstant({1}, {3});
  EXPECT_EQ(Refusal(graph, Carrier::kDescriptors), "");
  ExpectRuns(graph);
}

// ONNXIFI asks for both. Values bring their shapes, and ONNX Runtime gives what it computes:
// PyTorch declares elements as lists of one, skl2onnx declares as many targets as there are
// features.
TEST(DeclaredShapesTest, OfRanksAndOutputsCountWhereCallersMakeTheOutputs) {
  graph::Graph graph = AddConstant({1}, {});
  // What follows is judged by what is declared.
  EXPECT_EQ(Refusal(graph, Carrier::kDescriptors),
            "Value 'sum' is declared [] but is [1].Value 'y' is declared [1] but is [].");
  ExpectRuns(graph);
  graph = AddConstant({1}, {1}, {2});
  EXPECT_EQ(Refusal(graph, Carrier::kDescriptors), "Value 'y' is declared [2] but is [1].");
  ExpectRuns(graph);
  graph = AddConstant({1}, {1}, {1, 1});
  EXPECT_EQ(Refusal(graph, Carrier::kDescriptors), "Value 'y' is declared [1, 1] but is [1].");
  ExpectRuns(graph);
}

// A support check has no numbers of a long list of lengths.
TEST(SplitTest, IsClaimedWithoutItsLengths) {
  constexpr int64_t kParts = 100;
  graph::Graph graph;
  const auto add = [&graph](const std::string& name, ElementType element, int64_t extent) {
    graph::Type type{.kind = graph::Type::Kind::kTensor, .element = element};
    type.extents = {{extent, ""}};
    return graph.AddValue({.name = name, .type = std::move(type)});
  };
  const graph::ValueId x = add("x", ElementType::kFloat32, kParts);
  const graph::ValueId lengths = add("lengths", ElementType::kInt64, kParts);
  graph.values[lengths].is_weight = true;
  graph::Node split{.op_type = "Split", .since_version = 13, .inputs = {x, lengths}};
  for (int64_t k = 0; k < kParts; ++k) {
    split.outputs.push_back(add("y" + std::to_string(k), ElementType::kFloat32, 1));
  }
  graph.inputs = {x};
  graph.outputs = split.outputs;
  graph.nodes = {split};
  EXPECT_EQ(Refusal(graph, Carrier::kDescriptors), "");
  const std::vector<double> ones(kParts, 1);
  graph.values[lengths].constant = MakeTensor(ElementType::kInt64, {kParts}, ones);
  EXPECT_EQ(Refusal(graph, Carrier::kDescriptors), "");
}

}  // namespace
}  // namespace onnxifi::ops
