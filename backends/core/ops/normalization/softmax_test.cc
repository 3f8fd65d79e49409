// SPDX-License-Identifier: Apache-2.0
//
// Softmax, LogSoftmax and Hardmax with the rows of both definitions, against float64 loops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

// Replaces the elements `members` of `data`, one row, by the operator's result.
void Normalise(const std::string& op_type, std::vector<double>& data,
               const std::vector<int>& members) {
  std::vector<double> row;
  for (int k : members) row.push_back(data[k]);
  const auto largest = std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double x : row) sum += std::exp(x - *largest);
  for (size_t n = 0; n < row.size(); ++n) {
    const double log_probability = row[n] - *largest - std::log(sum);
    if (op_type == "Softmax") data[members[n]] = std::exp(log_probability);
    if (op_type == "LogSoftmax") data[members[n]] = log_probability;
    if (op_type == "Hardmax") data[members[n]] = &row[n] == &*largest ? 1 : 0;
  }
}

class SoftmaxTest : public ::testing::TestWithParam<std::string> {};

TEST_P(SoftmaxTest, NormalisesTheRowsOfItsVersion) {
  std::vector<double> data;
  for (int k = 0; k < 24; ++k) data.push_back(100 * ((k * 5) % 7) - 300);  // with ties
  for (int version : {1, 11, 13}) {
    for (int64_t axis = 0; axis < 3; ++axis) {
      // Row of an element of [2, 3, 4]: what remains of its position without the row's axes.
      std::map<int, std::vector<int>> rows;
      for (int k = 0; k < 24; ++k) {
        const int flattened[] = {0, k / 12, k / 4};
        const int without[] = {k % 12, k / 12 * 4 + k % 4, k / 4};
        rows[version < 13 ? flattened[axis] : without[axis]].push_back(k);
      }
      std::vector<double> expected = data;
      for (const auto& [row, members] : rows) Normalise(GetParam(), expected, members);
      for (auto make : {Given, Symbolic}) {
        auto out = RunOperator({GetParam(),
                                version,
                                {{"axis", axis}},
                                {make({2, 3, 4}, data, tensor::ElementType::kFloat32)}});
        ASSERT_TRUE(out.ok()) << out.status().Text();
        EXPECT_THAT(Numbers((*out)[0]), Pointwise(DoubleNear(1e-4), expected))
            << "version " << version << ", axis " << axis;
      }
    }
  }
}

TEST_P(SoftmaxTest, DefaultAxisIsOneBeforeOpset13AndTheLastSince) {
  const std::vector<double> data = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int version : {11, 13}) {
    auto by_default = RunOperator({GetParam(), version, {}, {Given({2, 2, 2}, data)}});
    auto given = RunOperator({GetParam(),
                              version,
                              {{"axis", int64_t{version == 11 ? 1 : 2}}},
                              {Given({2, 2, 2}, data)}});
    ASSERT_TRUE(by_default.ok() && given.ok());
    EXPECT_EQ(Numbers((*by_default)[0]), Numbers((*given)[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, SoftmaxTest,
                         ::testing::Values("Softmax", "LogSoftmax", "Hardmax"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace onnxifi::ops
