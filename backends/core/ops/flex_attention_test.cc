// SPDX-License-Identifier: Apache-2.0
//
// FlexAttention against loops in double precision: shared heads, a scale, graphs on scores and
// probabilities, extents known only when it runs.

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

constexpr int kBatch = 2, kHeads = 4, kRows = 3, kColumns = 5, kSize = 6, kWidth = 7;

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

// tanh of the scaled scores, the root of the probabilities.
std::vector<double> Expected(const std::vector<double>& q, const std::vector<double>& k,
                             const std::vector<double>& v, double scale, int group) {
  const int shared_heads = kHeads / group;
  std::vector<double> expected;
  for (int n = 0; n < kBatch; ++n) {
    for (int head = 0; head < kHeads; ++head) {
      const size_t shared = size_t(n * shared_heads + head / group);
      for (int row = 0; row < kRows; ++row) {
        std::vector<double> shares;
        double sum = 0;
        for (int column = 0; column < kColumns; ++column) {
          double score = 0;
          for (int e = 0; e < kSize; ++e) {
            score += q[(size_t(n * kHeads + head) * kRows + size_t(row)) * kSize + size_t(e)] *
                     k[(shared * kColumns + size_t(column)) * kSize + size_t(e)];
          }
          shares.push_back(std::exp(std::tanh(scale * score)));
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
  return expected;
}

TEST(FlexAttentionTest, AppliesGraphsBeforeAndAfterTheSoftmax) {
  for (const auto& form : {Given, Symbolic}) {
    for (const int group : {1, 2, 4}) {
      for (const bool has_scale : {false, true}) {
        SCOPED_TRACE(group * 4 + has_scale * 2 + (form == Symbolic));
        const int shared = kHeads / group;
        const auto q = Draw(size_t(kBatch) * kHeads * kRows * kSize, 1);
        const auto k = Draw(size_t(kBatch * shared) * kColumns * kSize, 2);
        const auto v = Draw(size_t(kBatch * shared) * kColumns * kWidth, 3);
        OneNode node{"FlexAttention",
                     1,
                     {{"score_mod", Modifier("Tanh", 13)}, {"prob_mod", Modifier("Sqrt", 13)}},
                     {form({kBatch, kHeads, kRows, kSize}, q, ElementType::kFloat32),
                      form({kBatch, shared, kColumns, kSize}, k, ElementType::kFloat32),
                      form({kBatch, shared, kColumns, kWidth}, v, ElementType::kFloat32)}};
        if (has_scale) node.attributes["scale"] = 0.75f;
        node.domain = "ai.onnx.preview";
        const auto out = RunOperator(node);
        ASSERT_TRUE(out.ok()) << out.status().Text();
        ASSERT_EQ((*out)[0].extents(), (tensor::Extents{kBatch, kHeads, kRows, kWidth}));
        const std::vector<double> expected =
            Expected(q, k, v, has_scale ? 0.75 : 1 / std::sqrt(double(kSize)), group);
        const std::vector<double> found = Numbers((*out)[0]);
        for (size_t at = 0; at < expected.size(); ++at) {
          ASSERT_NEAR(found[at], expected[at], 1e-5) << at;
        }
      }
    }
  }
}

TEST(FlexAttentionTest, OfNoHeadsIsNothing) {
  for (const int64_t shared : {0, 2}) {
    for (const auto& form : {Given, Symbolic}) {
      const auto drawn = [&](int64_t heads) {
        return form({1, heads, 1, 1}, Draw(size_t(heads), 1), ElementType::kFloat32);
      };
      OneNode node{"FlexAttention", 1, {}, {drawn(0), drawn(shared), drawn(shared)}};
      node.domain = "ai.onnx.preview";
      const auto out = RunOperator(node);
      ASSERT_TRUE(out.ok()) << out.status().Text();
      EXPECT_EQ((*out)[0].extents(), (tensor::Extents{1, 0, 1, 1}));
    }
  }
}

TEST(FlexAttentionTest, RefusesHeadsThatDoNotFit) {
  struct Case {
    int64_t q, k, v;
    const char* sentence;
  };
  for (const Case& c :
       {Case{3, 2, 2, "are no multiple of those of K and V"},
        Case{2, 0, 0, "are no multiple of those of K and V"}, Case{2, 2, 1, "differ in number"}}) {
    for (const auto& form : {Given, Symbolic}) {
      const auto drawn = [&](int64_t heads) {
        return form({1, heads, 1, 1}, Draw(size_t(heads), 1), ElementType::kFloat32);
      };
      OneNode node{"FlexAttention", 1, {}, {drawn(c.q), drawn(c.k), drawn(c.v)}};
      node.domain = "ai.onnx.preview";
      const auto out = RunOperator(node);
      ASSERT_FALSE(out.ok());
      EXPECT_EQ(out.status().code(), base::Code::kInvalidModel);
      EXPECT_THAT(out.status().Text(), HasSubstr(c.sentence));
    }
  }
}

}  // namespace
}  // namespace onnxifi::ops
