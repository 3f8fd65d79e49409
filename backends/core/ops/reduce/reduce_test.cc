// SPDX-License-Identifier: Apache-2.0
//
// Reductions: every operator over every set of axes, given as an attribute, as a constant and at
// run time, against float64 loops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using tensor::Extents;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct ReduceCase {
  std::string op_type;
  double (*reduce)(const std::vector<double>& elements);
};

double Sum(const std::vector<double>& elements) {
  double sum = 0;
  for (double element : elements) sum += element;
  return sum;
}

template <typename Function>
double SumOf(const std::vector<double>& elements, Function function) {
  double sum = 0;
  for (double element : elements) sum += function(element);
  return sum;
}

const ReduceCase kCases[] = {
    {"ReduceSum", Sum},
    {"ReduceMean", [](const auto& x) { return Sum(x) / static_cast<double>(x.size()); }},
    {"ReduceMax", [](const auto& x) { return *std::max_element(x.begin(), x.end()); }},
    {"ReduceMin", [](const auto& x) { return *std::min_element(x.begin(), x.end()); }},
    {"ReduceProd",
     [](const auto& x) {
       double product = 1;
       for (double element : x) product *= element;
       return product;
     }},
    {"ReduceL1", [](const auto& x) { return SumOf(x, [](double v) { return std::fabs(v); }); }},
    {"ReduceL2", [](const auto& x) { return std::sqrt(SumOf(x, [](double v) { return v * v; })); }},
    {"ReduceLogSum", [](const auto& x) { return std::log(Sum(x)); }},
    {"ReduceLogSumExp",
     [](const auto& x) { return std::log(SumOf(x, [](double v) { return std::exp(v); })); }},
    {"ReduceSumSquare", [](const auto& x) { return SumOf(x, [](double v) { return v * v; }); }},
};

const Extents kExtents = {2, 3, 4};

std::vector<double> Data() {
  std::vector<double> data;
  for (int k = 0; k < 24; ++k) data.push_back(0.25 + 0.125 * ((k * 7) % 24));
  return data;
}

// The elements of each result, for axes in `mask`.
std::vector<double> Expected(const ReduceCase& with, int mask) {
  std::map<int, std::vector<double>> groups;
  const std::vector<double> data = Data();
  for (int k = 0; k < 24; ++k) {
    const int coordinates[] = {k / 12, k / 4 % 3, k % 4};
    int group = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const bool is_kept = (mask >> axis & 1) == 0;
      group = group * 4 + (is_kept ? coordinates[axis] : 0);
    }
    groups[group].push_back(data[k]);
  }
  std::vector<double> results;
  for (const auto& [group, elements] : groups) results.push_back(with.reduce(elements));
  return results;
}

Extents ExpectedExtents(int mask, bool keepdims) {
  Extents extents;
  for (int axis = 0; axis < 3; ++axis) {
    const bool is_kept = (mask >> axis & 1) == 0;
    if (is_kept || keepdims) extents.push_back(is_kept ? kExtents[axis] : 1);
  }
  return extents;
}

class ReduceTest : public ::testing::TestWithParam<ReduceCase> {};

TEST_P(ReduceTest, MatchesLoopsOverEverySetOfAxes) {
  enum class Source { kAttribute, kConstant, kRunTime, kRunTimeSymbolic };
  for (Source source :
       {Source::kAttribute, Source::kConstant, Source::kRunTime, Source::kRunTimeSymbolic}) {
    for (int mask = 1; mask < 8; ++mask) {
      for (int64_t keepdims : {0, 1}) {
        std::vector<int64_t> axes;
        for (int axis = 2; axis >= 0; --axis) {  // not in ascending order, and one from behind
          if ((mask >> axis & 1) != 0) axes.push_back(axis == 1 ? -2 : axis);
        }
        OneNode node{
            GetParam().op_type, source == Source::kAttribute ? 11 : 18, {{"keepdims", keepdims}}};
        if (node.op_type == "ReduceSum" && source != Source::kAttribute) node.version = 13;
        const bool is_symbolic = source == Source::kRunTimeSymbolic;
        node.inputs = {is_symbolic ? Symbolic(kExtents, Data()) : Given(kExtents, Data())};
        const std::vector<double> numbers(axes.begin(), axes.end());
        const Extents count = {static_cast<int64_t>(axes.size())};
        if (source == Source::kAttribute) {
          node.attributes["axes"] = axes;
        } else if (source == Source::kConstant) {
          node.inputs.push_back(Constant(count, numbers, ElementType::kInt64));
        } else {
          node.inputs.push_back(Given(count, numbers, ElementType::kInt64));
        }
        auto out = RunOperator(node);
        ASSERT_TRUE(out.ok()) << out.status().Text();
        EXPECT_THAT((*out)[0].extents(), ElementsAreArray(ExpectedExtents(mask, keepdims != 0)));
        EXPECT_THAT(Numbers((*out)[0]), Pointwise(DoubleNear(2e-4), Expected(GetParam(), mask)))
            << "axes " << mask << ", source " << static_cast<int>(source);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, ReduceTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.op_type; });

TEST(ReduceAxesTest, EmptyAxesReduceEverythingOrNothing) {
  const NodeInput none = Given({0}, {}, ElementType::kInt64);
  for (const NodeInput& axes : {none, Omitted()}) {
    auto all =
        RunOperator({"ReduceSum", 13, {{"keepdims", int64_t{0}}}, {Given({2}, {3, -4}), axes}});
    ASSERT_TRUE(all.ok()) << all.status().Text();
    EXPECT_THAT(Numbers((*all)[0]), ElementsAre(-1));
    // Nothing is added up, but the square is still taken.
    auto kept = RunOperator({"ReduceSumSquare",
                             18,
                             {{"noop_with_empty_axes", int64_t{1}}},
                             {Given({2}, {3, -4}), axes}});
    ASSERT_TRUE(kept.ok()) << kept.status().Text();
    EXPECT_THAT(Numbers((*kept)[0]), ElementsAre(9, 16));
  }
}

TEST(ReduceAxesTest, RefusesAxesOutsideTheRank) {
  auto known =
      RunOperator({"ReduceMax", 11, {{"axes", std::vector<int64_t>{2}}}, {Given({2}, {3, 4})}});
  ASSERT_FALSE(known.ok());
  EXPECT_EQ(known.status().code(), base::Code::kInvalidModel);
  EXPECT_THAT(std::string(known.status().sentence()), HasSubstr("Axis 2 is outside [-1, 0]"));
  auto at_run_time = RunOperator(
      {"ReduceMax", 18, {}, {Given({2}, {3, 4}), Given({1}, {2}, ElementType::kInt64)}});
  EXPECT_FALSE(at_run_time.ok());
}

TEST(ReduceEmptyTest, GivesTheNeutralElement) {
  const std::pair<std::string, double> kNeutral[] = {{"ReduceSum", 0},
                                                     {"ReduceProd", 1},
                                                     {"ReduceMax", -kInfinity},
                                                     {"ReduceMin", kInfinity},
                                                     {"ReduceL1", 0},
                                                     {"ReduceL2", 0},
                                                     {"ReduceSumSquare", 0},
                                                     {"ReduceLogSum", -kInfinity},
                                                     {"ReduceLogSumExp", -kInfinity}};
  for (const auto& [op_type, neutral] : kNeutral) {
    for (auto make : {Given, Symbolic}) {
      auto out = RunOperator({op_type,
                              11,
                              {{"axes", std::vector<int64_t>{1}}},
                              {make({2, 0}, {}, ElementType::kFloat32)}});
      ASSERT_TRUE(out.ok()) << out.status().Text();
      EXPECT_THAT(Numbers((*out)[0]), ElementsAre(neutral, neutral)) << op_type;
    }
  }
  auto least = RunOperator({"ReduceMax", 11, {}, {Given({0}, {}, ElementType::kInt8)}});
  ASSERT_TRUE(least.ok()) << least.status().Text();
  EXPECT_THAT(Numbers((*least)[0]), ElementsAre(-128));
}

TEST(ReduceLogSumExpTest, NeitherOverflowsNorLosesInfinities) {
  const std::pair<std::vector<double>, double> kRows[] = {{{1000, 1000}, 1000 + std::log(2.0)},
                                                          {{-1000, -1000}, -1000 + std::log(2.0)},
                                                          {{-kInfinity, 3}, 3},
                                                          {{-kInfinity, -kInfinity}, -kInfinity},
                                                          {{kInfinity, 1}, kInfinity}};
  for (const auto& [row, expected] : kRows) {
    auto out = RunOperator({"ReduceLogSumExp", 13, {}, {Given({2}, row)}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_FLOAT_EQ(static_cast<float>(Numbers((*out)[0])[0]), static_cast<float>(expected));
  }
  auto mixed = RunOperator({"ReduceLogSumExp", 13, {}, {Given({2}, {-kInfinity, kInfinity})}});
  ASSERT_TRUE(mixed.ok());
  EXPECT_EQ(Numbers((*mixed)[0])[0], kInfinity);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& row : {std::vector<double>{nan, 1}, {kInfinity, nan}}) {
    auto out = RunOperator({"ReduceLogSumExp", 13, {}, {Given({2}, row)}});
    ASSERT_TRUE(out.ok());
    EXPECT_TRUE(std::isnan(Numbers((*out)[0])[0])) << row[0];
  }
}

TEST(ReduceIntegerTest, KeepsIntegerSemantics) {
  // Sums wrap; means are cut off towards 0 and do not overflow on the way.
  auto sum = RunOperator({"ReduceSum", 11, {}, {Given({2}, {2147483647, 1}, ElementType::kInt32)}});
  ASSERT_TRUE(sum.ok());
  EXPECT_THAT(Numbers((*sum)[0]), ElementsAre(-2147483648.0));
  auto mean = RunOperator(
      {"ReduceMean", 11, {}, {Given({2}, {2147483647, 2147483644}, ElementType::kInt32)}});
  ASSERT_TRUE(mean.ok());
  EXPECT_THAT(Numbers((*mean)[0]), ElementsAre(2147483645.0));
  auto negative = RunOperator({"ReduceMean", 11, {}, {Given({2}, {-3, -4}, ElementType::kInt32)}});
  ASSERT_TRUE(negative.ok());
  EXPECT_THAT(Numbers((*negative)[0]), ElementsAre(-3));
}

TEST(ReduceMeanTest, IsZeroOverNoElements) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kInt64}) {
    for (const NodeInput& input : {Given({0, 2}, {}, type), Symbolic({0, 2}, {}, type)}) {
      auto out = RunOperator({"ReduceMean",
                              13,
                              {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{0}}},
                              {input}});
      ASSERT_TRUE(out.ok()) << out.status().Text();
      EXPECT_THAT(Numbers((*out)[0]), ElementsAre(0, 0));
    }
  }
}

TEST(ArgExtremeTest, DecidesTiesAndNans) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const NodeInput ties = Given({5}, {1, 7, 7, 0, 0});
  const NodeInput nans = Given({5}, {1, nan, 7, nan, 0});
  struct Case {
    std::string op_type;
    int64_t takes_last;
    NodeInput input;
    double expected;
  };
  const Case kTable[] = {{"ArgMax", 0, ties, 1}, {"ArgMax", 1, ties, 2}, {"ArgMin", 0, ties, 3},
                         {"ArgMin", 1, ties, 4}, {"ArgMax", 0, nans, 1}, {"ArgMin", 1, nans, 3}};
  for (const Case& with : kTable) {
    auto out = RunOperator({with.op_type,
                            13,
                            {{"select_last_index", with.takes_last}, {"keepdims", int64_t{0}}},
                            {with.input}});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(with.expected)) << with.op_type;
  }
}

TEST(ArgExtremeTest, RefusesAnAxisWithoutElements) {
  auto out = RunOperator({"ArgMax", 13, {}, {Symbolic({0, 2}, {})}});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kUnsupportedShape);
}

TEST(ArgExtremeTest, GivesAnEmptyResultOverAnAxisWithoutElements) {
  struct Case {
    std::vector<int64_t> extents;
    int64_t axis;
    int64_t keepdims;
    std::vector<int64_t> expected;
  };
  const Case kTable[] = {{{2, 0, 0}, 1, 1, {2, 1, 0}},
                         {{2, 0, 0}, -1, 0, {2, 0}},
                         {{0, 0}, 0, 0, {0}},
                         {{0, 3}, 1, 1, {0, 1}}};
  for (const std::string op_type : {"ArgMax", "ArgMin"}) {
    for (const Case& with : kTable) {
      for (const NodeInput& input : {Given(with.extents, {}), Symbolic(with.extents, {})}) {
        auto out =
            RunOperator({op_type, 13, {{"axis", with.axis}, {"keepdims", with.keepdims}}, {input}});
        ASSERT_TRUE(out.ok()) << out.status().Text();
        EXPECT_THAT((*out)[0].extents(), ElementsAreArray(with.expected)) << op_type;
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::ops
