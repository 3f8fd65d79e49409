// SPDX-License-Identifier: Apache-2.0
//
// FlexAttention against loops in double precision: shared heads, a scale, graphs on scores and
// probabilities, lengths known only when it runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using tensor::ElementType;
using ::testing::HasSubstr;

constexpr int kBatch = 2, kHeads = 4, kGroup = 2, kRows = 3, kColumns = 5, kSize = 6, kWidth = 7;

std::vector<double> Draw(size_t count, int seed) {
  std::vector<double> numbers;
  for (size_t k = 0; k < count; ++k) {
    numbers.push_back(float(std::sin(double(seed) + 1.1 * double(k * k % 499))));
  }
  return numbers;
}

// op_type applied to the one input.
std::shared_ptr<const graph::Graph> Modifier(const std::string& op_type, int version) {
  auto modifier = std::make_shared<graph::Graph>();
  graph::Value in, out;
  in.name = "in";
  out.name = "out";
  graph::Node node;
  node.op_type = op_type;
  node.since_version = version;
  node.inputs = {modifier->AddValue(in)};
  node.outputs = {modifier->AddValue(out)};
  modifier->inputs = node.inputs;
  modifier->outputs = node.outputs;
  modifier->nodes = {node};
  return modifier;
}

TEST(FlexAttentionTest, AppliesGraphsBeforeAndAfterTheSoftmax) {
  constexpr int kShared = kHeads / kGroup;
  const auto q = Draw(size_t(kBatch) * kHeads * kRows * kSize, 1);
  const auto k = Draw(size_t(kBatch) * kShared * kColumns * kSize, 2);
  const auto v = Draw(size_t(kBatch) * kShared * kColumns * kWidth, 3);
  std::vector<double> expected;
  for (int n = 0; n < kBatch; ++n) {
    for (int head = 0; head < kHeads; ++head) {
      const size_t shared = size_t(n * kShared + head / kGroup);
      for (int row = 0; row < kRows; ++row) {
        std::vector<double> shares;
        double sum = 0;
        for (int column = 0; column < kColumns; ++column) {
          double score = 0;
          for (int e = 0; e < kSize; ++e) {
            score += q[(size_t(n * kHeads + head) * kRows + size_t(row)) * kSize + size_t(e)] *
                     k[(shared * kColumns + size_t(column)) * kSize + size_t(e)];
          }
          shares.push_back(std::exp(std::tanh(0.75 * score)));
          sum += shares.back();
        }
        for (int w = 0; w < kWidth; ++w) {
          double value = 0;
          for (int column = 0; column < kColumns; ++column) {
            value += std::sqrt(shares[size_t(column)] / sum) *
                     v[(shared * kColumns + size_t(column)) * kWidth + size_t(w)];
          }
          expected.push_back(value);
        }
      }
    }
  }
  OneNode node{
      "FlexAttention",
      1,
      {{"scale", 0.75f}, {"score_mod", Modifier("Tanh", 13)}, {"prob_mod", Modifier("Sqrt", 13)}},
      {Given({kBatch, kHeads, kRows, kSize}, q), Given({kBatch, kShared, kColumns, kSize}, k),
       Given({kBatch, kShared, kColumns, kWidth}, v)}};
  node.domain = "ai.onnx.preview";
  const auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  ASSERT_EQ((*out)[0].extents(), (tensor::Extents{kBatch, kHeads, kRows, kWidth}));
  const std::vector<double> found = Numbers((*out)[0]);
  for (size_t at = 0; at < expected.size(); ++at) {
    ASSERT_NEAR(found[at], expected[at], 1e-5) << at;
  }
}

TEST(FlexAttentionTest, NeedsTheNumbersOfHeads) {
  OneNode node{
      "FlexAttention",
      1,
      {},
      {Symbolic({1, 1, 2, 1}, {0, 1}), Given({1, 1, 2, 1}, {0, 1}), Given({1, 1, 2, 1}, {4, 8})}};
  node.domain = "ai.onnx.preview";
  const auto out = RunOperator(node);
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.status().Text(), HasSubstr("numbers of heads are not known"));
}

}  // namespace
}  // namespace onnxifi::ops
