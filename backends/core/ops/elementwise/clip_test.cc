// SPDX-License-Identifier: Apache-2.0
//
// Clip with bounds as attributes, as inputs, as neither.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

struct ClipCase {
  std::string name;
  OneNode node;
  std::vector<double> expected;
};

class ClipTest : public ::testing::TestWithParam<ClipCase> {};

TEST_P(ClipTest, Limits) {
  auto out = RunOperator(GetParam().node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAreArray(GetParam().expected));
}

const NodeInput kData = Given({4}, {-3, -1, 1, 3});

INSTANTIATE_TEST_SUITE_P(
    Versions, ClipTest,
    ::testing::Values(
        ClipCase{
            "Attributes1", {"Clip", 1, {{"min", -2.f}, {"max", 2.f}}, {kData}}, {-2, -1, 1, 2}},
        ClipCase{"OneAttribute6", {"Clip", 6, {{"max", 2.f}}, {kData}}, {-3, -1, 1, 2}},
        ClipCase{"NoAttribute6", {"Clip", 6, {}, {kData}}, {-3, -1, 1, 3}},
        ClipCase{
            "Inputs11", {"Clip", 11, {}, {kData, Given({}, {-2}), Given({}, {2})}}, {-2, -1, 1, 2}},
        ClipCase{
            "OnlyMax11", {"Clip", 11, {}, {kData, Omitted(), Constant({}, {0})}}, {-3, -1, 0, 0}},
        ClipCase{"Constants13",
                 {"Clip", 13, {}, {kData, Constant({}, {-2}), Constant({1}, {0.5})}},
                 {-2, -1, 0.5, 0.5}},
        ClipCase{"ConstantsOfInt64",
                 {"Clip",
                  13,
                  {},
                  {Given({2}, {-9e15, 5}, tensor::ElementType::kInt64),
                   Constant({}, {-9007199254740991}, tensor::ElementType::kInt64),
                   Constant({}, {4}, tensor::ElementType::kInt64)}},
                 {-9e15, 4}},
        ClipCase{"ConstantsOfUint64",
                 {"Clip",
                  13,
                  {},
                  {Given({2}, {1, 9}, tensor::ElementType::kUint64),
                   Constant({}, {3}, tensor::ElementType::kUint64),
                   Constant({}, {7}, tensor::ElementType::kUint64)}},
                 {3, 7}},
        ClipCase{"ConstantsOfFloat16",
                 {"Clip",
                  13,
                  {},
                  {Given({2}, {-3, 3}, tensor::ElementType::kFloat16),
                   Constant({}, {-1.5}, tensor::ElementType::kFloat16), Omitted()}},
                 {-1.5, 3}},
        ClipCase{"CrossedConstants13",
                 {"Clip", 13, {}, {kData, Constant({}, {2}), Constant({}, {-2})}},
                 {-2, -2, -2, -2}},
        ClipCase{"CrossedBounds13",
                 {"Clip", 13, {}, {kData, Given({}, {2}), Given({}, {-2})}},
                 {-2, -2, -2, -2}},
        ClipCase{"Symbolic13", {"Clip", 13, {}, {Symbolic({2}, {-9, 9}), Given({1}, {0})}}, {0, 9}},
        ClipCase{"Int8",
                 {"Clip",
                  12,
                  {},
                  {Given({2}, {-128, 127}, tensor::ElementType::kInt8),
                   Given({}, {-100}, tensor::ElementType::kInt8)}},
                 {-100, 127}}),
    [](const auto& info) { return info.param.name; });

TEST(ClipRefusalTest, NamesTheShapeOfABoundThatIsNoScalar) {
  auto out = RunOperator({"Clip", 13, {}, {kData, Given({2}, {0, 1})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
  EXPECT_THAT(std::string(out.status().sentence()), HasSubstr("Input 1 has shape [2]"));
}

}  // namespace
}  // namespace onnxifi::ops
