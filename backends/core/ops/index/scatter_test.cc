// SPDX-License-Identifier: Apache-2.0
//
// Scatter, gather, top-k and their relatives where ONNX's own cases are silent: positions out of
// range, old opsets, counts and lengths known only when they run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ScatterTest, SkipsPositionsOutOfRange) {
  for (ElementType type : {ElementType::kInt32, ElementType::kInt64}) {
    auto out = RunOperator({"ScatterElements",
                            18,
                            {},
                            {Symbolic({3}, {1, 2, 3}), Given({4}, {3, -4, -1, 1 << 30}, type),
                             Given({4}, {7, 7, 9, 7})}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(1, 2, 9));
  }
}

TEST(ScatterTest, NdSkipsTuplesOfWhichOneIsOutOfRange) {
  auto out = RunOperator(
      {"ScatterND",
       11,
       {},
       {Given({2, 2}, {1, 2, 3, 4}), Given({3, 2}, {0, 2, -1, -1, 5, 0}, ElementType::kInt64),
        Given({3}, {7, 8, 9})}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(1, 2, 3, 8));
}

TEST(ScatterTest, CombinesDuplicatesInOrder) {
  auto out = RunOperator(
      {"ScatterElements",
       18,
       {{"reduction", std::string("mul")}},
       {Given({2}, {2, 5}), Given({3}, {0, 0, 1}, ElementType::kInt64), Given({3}, {3, 4, 10})}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(24, 50));
}

// All pairs of a datum and an update, and a datum with two updates; the expected values are
// numpy's, and ONNX Runtime's for add and mul (it has neither max nor min of bools).
TEST(ScatterTest, CombinesBoolsAsOrAndAnd) {
  const std::vector<double> kOr = {0, 1, 1, 1, 1};
  const std::vector<double> kAnd = {0, 0, 0, 1, 0};
  const struct {
    const char* reduction;
    const std::vector<double>& expected;
  } kCases[] = {{"add", kOr}, {"max", kOr}, {"mul", kAnd}, {"min", kAnd}};
  for (const auto& [reduction, expected] : kCases) {
    const auto data = Symbolic({5}, {0, 0, 1, 1, 1}, ElementType::kBool);
    const auto updates = Symbolic({6}, {0, 1, 0, 1, 1, 0}, ElementType::kBool);
    for (const bool is_nd : {false, true}) {
      auto out = RunOperator({is_nd ? "ScatterND" : "ScatterElements",
                              18,
                              {{"reduction", std::string(reduction)}},
                              {data,
                               Given(is_nd ? tensor::Extents{6, 1} : tensor::Extents{6},
                                     {0, 1, 2, 3, 4, 4}, ElementType::kInt64),
                               updates}});
      ASSERT_TRUE(out.ok()) << out.status().Text();
      EXPECT_EQ((*out)[0].type(), ElementType::kBool);
      EXPECT_EQ(Numbers((*out)[0]), expected) << reduction << (is_nd ? " of tuples" : "");
    }
  }
}

TEST(ScatterTest, RefusesAnUnknownReduction) {
  auto out =
      RunOperator({"ScatterND",
                   18,
                   {{"reduction", std::string("mean")}},
                   {Given({1}, {1}), Given({1, 1}, {0}, ElementType::kInt64), Given({1}, {1})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kUnsupportedAttribute);
  EXPECT_THAT(out.status().Text(), HasSubstr("'mean' is not none, add, mul, min or max"));
}

// Rows and elements of the same data: how long a tuple is, the updates' rank tells.
TEST(ScatterTest, NdTakesTheLengthOfTuplesFromRanks) {
  const NodeInput data = Symbolic({2, 2}, {1, 2, 3, 4});
  auto out =
      RunOperator({"ScatterND",
                   18,
                   {{"reduction", std::string("add")}},
                   {data, Symbolic({1, 1}, {1}, ElementType::kInt64), Symbolic({1, 2}, {10, 20})}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(1, 2, 13, 24));
  out = RunOperator(
      {"ScatterND",
       18,
       {},
       {data, Symbolic({2, 2}, {0, 1, 1, -2}, ElementType::kInt64), Symbolic({2}, {8, 9})}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(1, 8, 9, 4));
}

TEST(ScatterTest, NdRefusesTuplesOfAnotherLengthThanRanksLeave) {
  auto out = RunOperator({"ScatterND",
                          18,
                          {},
                          {Symbolic({2, 2}, {1, 2, 3, 4}),
                           Symbolic({1, 1}, {1}, ElementType::kInt64), Symbolic({1}, {9})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
  EXPECT_THAT(out.status().Text(), HasSubstr("is not the 2 that the ranks"));
  EXPECT_THAT(out.status().Text(), HasSubstr("= 1"));
  out = RunOperator({"ScatterND",
                     18,
                     {},
                     {Symbolic({2, 2}, {1, 2, 3, 4}), Symbolic({1, 1}, {1}, ElementType::kInt64),
                      Symbolic({1, 2, 1}, {8, 9})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kInvalidModel);
  EXPECT_THAT(out.status().Text(), HasSubstr("(0) is outside [1, 2]"));
}

TEST(GatherNdTest, TakesTheLengthOfTuplesFromTheDeclaredRank) {
  const NodeInput data = Symbolic({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  OneNode node{"GatherND", 13, {}, {data, Symbolic({2, 1}, {1, 0}, ElementType::kInt64)}};
  node.declared_rank = 3;
  auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), (tensor::Extents{2, 2, 2}));
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(4, 5, 6, 7, 0, 1, 2, 3));

  node.inputs[1] = Symbolic({2, 3}, {1, 0, 1, 0, 1, -1}, ElementType::kInt64);
  node.declared_rank = 1;
  out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(5, 3));

  node.inputs[1] = Symbolic({2, 1}, {1, 0}, ElementType::kInt64);
  node.attributes["batch_dims"] = int64_t{1};
  node.declared_rank = 2;
  out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(2, 3, 4, 5));
}

TEST(GatherNdTest, RefusesTuplesWhoseLengthNothingTells) {
  OneNode node{"GatherND",
               13,
               {},
               {Given({2, 2}, {0, 1, 2, 3}), Symbolic({2, 1}, {1, 0}, ElementType::kInt64)}};
  auto out = RunOperator(node);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kUnsupportedShape);
  EXPECT_THAT(out.status().Text(), HasSubstr("no rank of the output is declared"));
  node.declared_rank = 1;
  out = RunOperator(node);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kMismatchingShape);
  EXPECT_THAT(out.status().Text(), HasSubstr("is not the 2 that the ranks"));
}

TEST(TopKTest, TakesKFromAnAttributeOrAnInput) {
  OneNode node{"TopK", 1, {{"k", int64_t{2}}}, {Symbolic({4}, {3, 9, 9, 1})}, {true, true}};
  auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(9, 9));
  EXPECT_THAT(Numbers((*out)[1]), ElementsAre(1, 2));

  node = {"TopK",
          11,
          {{"axis", int64_t{0}}, {"largest", int64_t{0}}},
          {Symbolic({2, 2}, {4, 1, 3, 2}), Given({1}, {1}, ElementType::kInt64)},
          {true, true}};
  out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), (tensor::Extents{1, 2}));
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(3, 1));
  EXPECT_THAT(Numbers((*out)[1]), ElementsAre(1, 0));
}

TEST(TopKTest, RefusesMoreThanThereIs) {
  auto out = RunOperator(
      {"TopK", 10, {}, {Given({2}, {1, 2}), Given({1}, {3}, ElementType::kInt64)}, {true, true}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kInvalidModel);
  EXPECT_THAT(out.status().Text(), HasSubstr("outside [0, 2]"));
}

TEST(CompressTest, TakesConditionsShorterAndLongerThanTheAxis) {
  for (const std::vector<double>& condition :
       {std::vector<double>{0, 1}, std::vector<double>{0, 1, 0, 1}}) {
    auto out =
        RunOperator({"Compress",
                     9,
                     {{"axis", int64_t{0}}},
                     {Given({3, 1}, {4, 5, 6}), Given({static_cast<int64_t>(condition.size())},
                                                      condition, ElementType::kBool)}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(5));
  }
}

TEST(CompressTest, TakesAConditionOfAnyRankWhereNoAxisIsGiven) {
  const NodeInput data = Symbolic({2, 3}, {0, 1, 2, 3, 4, 5});
  const auto run = [&](const NodeInput& condition) {
    const auto out = RunOperator({"Compress", 11, {}, {data, condition}});
    EXPECT_TRUE(out.ok()) << out.status().Text();
    return out.ok() ? Numbers((*out)[0]) : std::vector<double>();
  };
  EXPECT_THAT(run(Symbolic({2, 3}, {0, 1, 0, 0, 1, 1}, ElementType::kBool)), ElementsAre(1, 4, 5));
  EXPECT_THAT(run(Given({1, 2, 2}, {0, 1, 0, 1}, ElementType::kBool)), ElementsAre(1, 3));
  EXPECT_THAT(run(Given({}, {1}, ElementType::kBool)), ElementsAre(0));
}

TEST(CompressTest, RefusesAConditionOfTwoAxesAlongOne) {
  const auto out =
      RunOperator({"Compress",
                   11,
                   {{"axis", int64_t{1}}},
                   {Given({2, 2}, {1, 2, 3, 4}), Given({1, 2}, {0, 1}, ElementType::kBool)}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kInvalidModel);
  EXPECT_THAT(out.status().Text(),
              HasSubstr("has 2 axes instead of the one that selects along 'axis'"));
}

TEST(NonZeroTest, GivesNothingForZeros) {
  auto out = RunOperator({"NonZero", 13, {}, {Symbolic({2, 2}, {0, 0, 0, 0})}});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), (tensor::Extents{2, 0}));
}

TEST(UniqueTest, GroupsInOrderOfValueOrOfAppearance) {
  OneNode node{"Unique", 11, {}, {Symbolic({5}, {3, 1, 3, 2, 1})}, {true, true, true, true}};
  auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(Numbers((*out)[1]), ElementsAre(1, 3, 0));
  EXPECT_THAT(Numbers((*out)[2]), ElementsAre(2, 0, 2, 1, 0));
  EXPECT_THAT(Numbers((*out)[3]), ElementsAre(2, 1, 2));

  node.attributes["sorted"] = int64_t{0};
  out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(3, 1, 2));
  EXPECT_THAT(Numbers((*out)[1]), ElementsAre(0, 1, 3));
  EXPECT_THAT(Numbers((*out)[2]), ElementsAre(0, 1, 0, 2, 1));
  EXPECT_THAT(Numbers((*out)[3]), ElementsAre(2, 2, 1));
}

TEST(NonMaxSuppressionTest, KeepsTheBestOfEachOverlap) {
  // Boxes 0 and 1 share half of their area, box 2 stands apart and scores too little.
  OneNode node{"NonMaxSuppression",
               11,
               {},
               {Symbolic({1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 2, 5, 5, 6, 6}),
                Symbolic({1, 1, 3}, {0.5, 0.9, 0.1}), Given({1}, {5}, ElementType::kInt64),
                Given({1}, {0.4}), Given({1}, {0.2})}};
  auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(0, 0, 1));
  node.inputs[3] = Given({1}, {0.6});
  node.inputs[4] = Omitted();
  out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0, 2));
}

}  // namespace
}  // namespace onnxifi::ops
