// SPDX-License-Identifier: Apache-2.0
//
// Broadcasting of element-wise operators in the opsets that ONNX's own cases no longer cover, and
// with symbolic extents.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<double> Count(int count, double start) {
  std::vector<double> values;
  for (int k = 0; k < count; ++k) values.push_back(start + k);
  return values;
}

struct LegacyCase {
  std::string op_type;
  int version;
  double (*function)(double, double);
};

class LegacyBroadcastTest : public ::testing::TestWithParam<LegacyCase> {};

TEST_P(LegacyBroadcastTest, PlacesBAtTheAxis) {
  // A is [2, 3, 4]; B has the extents of the axes [axis, axis + its rank).
  for (int64_t axis : {0, 1, 2}) {
    const int64_t extent = axis + 2;
    OneNode node{GetParam().op_type, GetParam().version, {{"broadcast", int64_t{1}}}};
    if (axis != 2) node.attributes["axis"] = axis;  // the last axis is the default
    const std::vector<double> a = Count(24, 1);
    const std::vector<double> b = Count(static_cast<int>(extent), 8);
    node.inputs = {Given({2, 3, 4}, a), Given({extent}, b)};
    auto out = RunOperator(node);
    ASSERT_TRUE(out.ok()) << out.status().Text();

    std::vector<double> expected;
    for (int k = 0; k < 24; ++k) {
      const int coordinates[] = {k / 12, k / 4 % 3, k % 4};
      expected.push_back(static_cast<float>(GetParam().function(a[k], b[coordinates[axis]])));
    }
    EXPECT_THAT(Numbers((*out)[0]), ElementsAreArray(expected)) << "axis " << axis;
  }
}

TEST_P(LegacyBroadcastTest, RefusesRanksThatDifferWithoutTheAttribute) {
  auto out = RunOperator({GetParam().op_type,
                          GetParam().version,
                          {},
                          {Given({2, 3}, Count(6, 1)), Given({3}, Count(3, 1))}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
  EXPECT_THAT(std::string(out.status().sentence()), HasSubstr("Ranks 2 and 1 differ"));
}

INSTANTIATE_TEST_SUITE_P(
    Opsets, LegacyBroadcastTest,
    ::testing::Values(LegacyCase{"Add", 1, [](double a, double b) { return a + b; }},
                      LegacyCase{"Add", 6, [](double a, double b) { return a + b; }},
                      LegacyCase{"Sub", 6, [](double a, double b) { return a - b; }},
                      LegacyCase{"Mul", 1, [](double a, double b) { return a * b; }},
                      LegacyCase{"Div", 6, [](double a, double b) { return a / b; }},
                      LegacyCase{"Less", 1, [](double a, double b) { return a < b ? 1.0 : 0; }},
                      LegacyCase{"Equal", 1, [](double a, double b) { return a == b ? 1.0 : 0; }},
                      LegacyCase{"Greater", 1, [](double a, double b) { return a > b ? 1.0 : 0; }}),
    [](const auto& info) { return info.param.op_type + std::to_string(info.param.version); });

TEST(BroadcastTest, SymbolicExtentsStretchWhereTheyTurnOutToBeOne) {
  for (int64_t extent : {1, 3}) {
    auto out = RunOperator({"Add",
                            14,
                            {},
                            {Symbolic({2, extent}, Count(2 * static_cast<int>(extent), 0)),
                             Symbolic({3}, {10, 20, 30})}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT((*out)[0].extents(), ElementsAre(2, 3));
    if (extent == 1) {
      EXPECT_THAT(Numbers((*out)[0]), ElementsAre(10, 20, 30, 11, 21, 31));
    }
    if (extent == 3) {
      EXPECT_THAT(Numbers((*out)[0]), ElementsAre(10, 21, 32, 13, 24, 35));
    }
  }
}

TEST(BroadcastTest, SymbolicExtentsThatDoNotFitFailWhenTheyAreKnown) {
  auto out = RunOperator({"Add", 14, {}, {Symbolic({2}, {1, 2}), Symbolic({3}, {10, 20, 30})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
}

TEST(BroadcastTest, RefusesInputsOfDifferentTypes) {
  auto out =
      RunOperator({"Add", 14, {}, {Given({1}, {1}), Given({1}, {1}, tensor::ElementType::kInt32)}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kMismatchingDatatype);
  EXPECT_THAT(std::string(out.status().sentence()),
              HasSubstr("Input 0 is float and input 1 is int32"));
}

TEST(BroadcastTest, VariadicInputsHadOneShapeBeforeOpset8) {
  for (int version : {6, 8}) {
    auto out = RunOperator({"Sum", version, {}, {Given({2}, {1, 2}), Given({1}, {5})}});
    EXPECT_EQ(out.ok(), version == 8);
    if (version == 8) {
      EXPECT_THAT(Numbers((*out)[0]), ElementsAre(6, 7));
    }
  }
}

TEST(BroadcastTest, SlopesOfPReluArePerChannelBeforeOpset7) {
  for (int version : {1, 6}) {
    auto out = RunOperator(
        {"PRelu", version, {}, {Given({1, 2, 2}, {-1, 2, -3, -4}), Given({2}, {10, 100})}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(-10, 2, -300, -400));
  }
}

}  // namespace
}  // namespace onnxifi::ops
