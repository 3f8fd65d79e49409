// SPDX-License-Identifier: Apache-2.0
//
// CumSum and CumProd along every axis, in both directions, with the axis known before and only
// while running.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::ElementsAreArray;

struct Running {
  std::string op_type;
  int version;
  double neutral;
  double (*combine)(double a, double b);
};

const tensor::Extents kExtents = {2, 3, 4};

// Loops over [2, 3, 4], whose axes have the steps 12, 4 and 1.
std::vector<double> Expected(const Running& with, const std::vector<double>& data, int axis,
                             bool is_exclusive, bool is_reversed) {
  const int steps[] = {12, 4, 1};
  const int step = steps[axis];
  const auto extent = static_cast<int>(kExtents[axis]);
  std::vector<double> results(data.size());
  for (int first = 0; first < 24; ++first) {
    if (first / step % extent != 0) continue;
    double running = with.neutral;
    for (int n = 0; n < extent; ++n) {
      const int at = first + (is_reversed ? extent - 1 - n : n) * step;
      const double next = with.combine(running, data[at]);
      results[at] = is_exclusive ? running : next;
      running = next;
    }
  }
  return results;
}

class CumulativeTest : public ::testing::TestWithParam<Running> {};

TEST_P(CumulativeTest, MatchesLoops) {
  std::vector<double> data;
  for (int k = 0; k < 24; ++k) data.push_back(1 + k % 5);
  for (int64_t axis : {-3, -1, 0, 1, 2}) {
    for (int flags = 0; flags < 4; ++flags) {
      for (auto make_axis : {Given, Constant}) {
        for (auto make_data : {Given, Symbolic}) {
          const bool is_exclusive = (flags & 1) != 0, is_reversed = (flags & 2) != 0;
          auto out = RunOperator(
              {GetParam().op_type,
               GetParam().version,
               {{"exclusive", int64_t{is_exclusive}}, {"reverse", int64_t{is_reversed}}},
               {make_data(kExtents, data, ElementType::kInt64),
                make_axis({}, {static_cast<double>(axis)}, ElementType::kInt32)}});
          ASSERT_TRUE(out.ok()) << out.status().Text();
          EXPECT_THAT(Numbers((*out)[0]),
                      ElementsAreArray(Expected(GetParam(), data,
                                                static_cast<int>(axis < 0 ? axis + 3 : axis),
                                                is_exclusive, is_reversed)))
              << "axis " << axis << ", flags " << flags;
        }
      }
    }
  }
}

TEST_P(CumulativeTest, RefusesAScalar) {
  for (auto make_axis : {Given, Constant}) {
    const auto out = RunOperator(
        {GetParam().op_type,
         GetParam().version,
         {{"reverse", int64_t{1}}},
         {Given({}, {3}, ElementType::kInt64), make_axis({}, {0}, ElementType::kInt32)}});
    ASSERT_FALSE(out.ok());
    EXPECT_THAT(std::string(out.status().sentence()), ::testing::HasSubstr("is a scalar"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operators, CumulativeTest,
    ::testing::Values(Running{"CumSum", 14, 0, [](double a, double b) { return a + b; }},
                      Running{"CumProd", 26, 1, [](double a, double b) { return a * b; }}),
    [](const auto& info) { return info.param.op_type; });

}  // namespace
}  // namespace onnxifi::ops
