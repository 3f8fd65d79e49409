// SPDX-License-Identifier: Apache-2.0
//
// Scan of opset 8 against loops: a batch in front, sequences of their own lengths, both directions.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using graph::ValueId;
using graph::testing::GraphBuilder;
using tensor::ElementType;
using tensor::Tensor;

constexpr int64_t kBatch = 3, kLength = 5, kSize = 2;

graph::Type FloatType(const tensor::Extents& extents) {
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = ElementType::kFloat32;
  type.extents.emplace();
  for (int64_t extent : extents) type.extents->push_back({extent, ""});
  return type;
}

// The sum so far; what is written is twice that.
std::shared_ptr<const graph::Graph> Sums() {
  GraphBuilder body("body");
  const ValueId state = body.AddInput("state", FloatType({kSize}));
  const ValueId read = body.AddInput("read", FloatType({kSize}));
  const ValueId sum = body.AddNode("Add", 14, {state, read});
  body.SetOutputs({sum, body.AddNode("Add", 14, {sum, sum})});
  return std::make_shared<graph::Graph>(body.Take());
}

std::vector<double> Draw(int64_t count, int64_t seed) {
  std::vector<double> numbers;
  for (int64_t k = 0; k < count; ++k) {
    numbers.push_back(static_cast<double>((k * 37 + seed * 11) % 19) - 9);
  }
  return numbers;
}

struct Expected {
  std::vector<double> states, written;
};

Expected Expect(const std::vector<double>& states, const std::vector<double>& x,
                const std::vector<int64_t>& lengths, bool is_reverse) {
  Expected expected = {states, std::vector<double>(x.size(), 0)};
  for (int64_t n = 0; n < kBatch; ++n) {
    for (int64_t step = 0; step < lengths[static_cast<size_t>(n)]; ++step) {
      const int64_t read = is_reverse ? lengths[static_cast<size_t>(n)] - 1 - step : step;
      for (int64_t k = 0; k < kSize; ++k) {
        double& state = expected.states[static_cast<size_t>(n * kSize + k)];
        state += x[static_cast<size_t>((n * kLength + read) * kSize + k)];
        // Outputs of version 8 have no direction: they are written in the order of steps.
        expected.written[static_cast<size_t>((n * kLength + step) * kSize + k)] = 2 * state;
      }
    }
  }
  return expected;
}

void CheckScan(const std::vector<int64_t>& lengths, bool with_lengths, bool is_reverse,
               bool is_symbolic) {
  const std::vector<double> states = Draw(kBatch * kSize, 1);
  const std::vector<double> x = Draw(kBatch * kLength * kSize, 2);
  OneNode node{"Scan", 8};
  node.attributes = {{"body", Sums()}, {"num_scan_inputs", int64_t{1}}};
  if (is_reverse) node.attributes["directions"] = std::vector<int64_t>{1};
  const auto input = is_symbolic ? Symbolic : Given;
  node.inputs = {with_lengths
                     ? Given({kBatch}, {lengths.begin(), lengths.end()}, ElementType::kInt64)
                     : Omitted(),
                 input({kBatch, kSize}, states, ElementType::kFloat32),
                 input({kBatch, kLength, kSize}, x, ElementType::kFloat32)};
  node.wanted = {true, true};
  const auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  const Expected expected = Expect(states, x, lengths, is_reverse);
  EXPECT_EQ((*out)[0].extents(), (tensor::Extents{kBatch, kSize}));
  EXPECT_EQ((*out)[1].extents(), (tensor::Extents{kBatch, kLength, kSize}));
  EXPECT_EQ(Numbers((*out)[0]), expected.states);
  EXPECT_EQ(Numbers((*out)[1]), expected.written);
}

TEST(ScanBatchesTest, EveryEntryIsScanned) {
  CheckScan({kLength, kLength, kLength}, /*with_lengths=*/false, false, false);
  CheckScan({kLength, kLength, kLength}, /*with_lengths=*/false, true, false);
}

TEST(ScanBatchesTest, EntriesHaveTheirOwnLengths) {
  CheckScan({2, kLength, 1}, /*with_lengths=*/true, false, false);
  CheckScan({2, kLength, 1}, /*with_lengths=*/true, true, false);
}

TEST(ScanBatchesTest, ExtentsMayBeSymbols) {
  CheckScan({kLength, kLength, kLength}, /*with_lengths=*/false, false, true);
  CheckScan({4, 3, kLength}, /*with_lengths=*/true, true, true);
}

}  // namespace
}  // namespace onnxifi::ops
