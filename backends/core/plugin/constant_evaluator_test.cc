// SPDX-License-Identifier: Apache-2.0
//
// Constants are computed once, while the graph is compiled; random numbers and results beyond the
// limit are not.

#include "backends/core/plugin/constant_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/reference/device.h"

namespace onnxifi::plugin {
namespace {

using graph::Graph;
using tensor::ElementType;
using tensor::Tensor;

graph::ValueId AddConstant(Graph& graph, Tensor tensor) {
  graph::Value value{.name = "c" + std::to_string(graph.values.size())};
  value.constant = std::move(tensor);
  return graph.AddValue(std::move(value));
}

Tensor Floats(const tensor::Extents& extents, const std::vector<float>& values) {
  return Tensor::FromValues<float>(ElementType::kFloat32, extents, values);
}

Tensor Bool(bool value) {
  const uint8_t byte = value ? 1 : 0;
  return Tensor::FromValues<uint8_t>(ElementType::kBool, {}, {&byte, 1});
}

// A graph of one node with one output.
Graph MakeGraph(std::string op_type, int version, std::vector<Tensor> inputs) {
  Graph graph;
  graph::Node node{.op_type = std::move(op_type), .since_version = version, .index = 0};
  for (Tensor& input : inputs) node.inputs.push_back(AddConstant(graph, std::move(input)));
  node.outputs = {graph.AddValue({.name = "y"})};
  graph.outputs = node.outputs;
  graph.nodes.push_back(std::move(node));
  return graph;
}

TEST(ConstantEvaluatorTest, ComputesWhatANodeMakesOfConstants) {
  ConstantEvaluator evaluator(nullptr, nullptr);
  const Graph graph =
      MakeGraph("Sub", 14, {Floats({2, 3}, {1, 2, 3, 4, 5, 6}), Floats({3}, {10, 20, 30})});
  const base::Result<std::vector<Tensor>> results = evaluator.Evaluate({graph, 1000});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_EQ((*results)[0].extents(), (tensor::Extents{2, 3}));
  EXPECT_THAT((*results)[0].values<float>(), testing::ElementsAre(-9, -18, -27, -6, -15, -24));
}

TEST(ConstantEvaluatorTest, LeavesRandomNumbersToTheRun) {
  ConstantEvaluator evaluator(nullptr, nullptr);
  const Tensor half = Floats({4}, {0.5F, 0.5F, 0.5F, 0.5F});
  const std::vector<Graph> graphs = [&] {
    std::vector<Graph> made;
    made.push_back(MakeGraph("RandomNormal", 22, {}));
    made.back().nodes[0].attributes["shape"] = std::vector<int64_t>{2, 2};
    made.push_back(MakeGraph("RandomNormalLike", 22, {half}));
    made.push_back(MakeGraph("RandomUniform", 22, {}));
    made.back().nodes[0].attributes["shape"] = std::vector<int64_t>{3};
    made.push_back(MakeGraph("RandomUniformLike", 22, {half}));
    made.push_back(MakeGraph("Bernoulli", 22, {half}));
    made.push_back(MakeGraph("Multinomial", 22, {Floats({1, 4}, {0, 1, 2, 3})}));
    made.push_back(MakeGraph("Dropout", 22, {half, Floats({}, {0.25F}), Bool(true)}));
    return made;
  }();
  for (const Graph& graph : graphs) {
    const base::Result<std::vector<Tensor>> results = evaluator.Evaluate({graph, 1000});
    ASSERT_FALSE(results.ok()) << graph.nodes[0].op_type;
    EXPECT_EQ(results.status().sentence(), "Random numbers are drawn when the graph runs.")
        << graph.nodes[0].op_type;
  }
}

TEST(ConstantEvaluatorTest, ComputesDropoutThatDropsNothing) {
  ConstantEvaluator evaluator(nullptr, nullptr);
  const Graph graph =
      MakeGraph("Dropout", 22, {Floats({3}, {1, -2, 3}), Floats({}, {0.25F}), Bool(false)});
  const base::Result<std::vector<Tensor>> results = evaluator.Evaluate({graph, 1000});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_THAT((*results)[0].values<float>(), testing::ElementsAre(1, -2, 3));
}

TEST(ConstantEvaluatorTest, RefusesResultsBeyondTheLimit) {
  ConstantEvaluator evaluator(nullptr, nullptr);
  const Graph graph = MakeGraph("Neg", 13, {Floats({5}, {1, 2, 3, 4, 5})});
  EXPECT_TRUE(evaluator.Evaluate({graph, 20}).ok());
  const base::Result<std::vector<Tensor>> results = evaluator.Evaluate({graph, 19});
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.status().code(), base::Code::kNoSystemMemory);
}

// The sum of many numbers that are made of one: what is summed is limited.
TEST(ConstantEvaluatorTest, RefusesValuesOnTheWayBeyondTheirLimit) {
  ConstantEvaluator evaluator(nullptr, nullptr);
  const auto make = [](bool is_known) {
    graph::testing::GraphBuilder builder("main");
    const int64_t extents[] = {50, 50};
    const graph::ValueId shape =
        builder.AddConstant(Tensor::FromValues<int64_t>(ElementType::kInt64, {2}, extents));
    const graph::ValueId many =
        is_known ? builder.AddNode("Expand", 13, {builder.AddConstant("a", {3}), shape})
                 : builder.AddNode("NonZero", 13, {builder.AddConstant("a", {0, 0, 5})});
    const graph::ValueId negated = builder.AddNode("Neg", 13, {many});
    builder.SetOutputs({builder.AddNode("ReduceSum", 13, {negated})});
    return builder.Take();
  };
  const Graph graph = make(true);
  const auto results = evaluator.Evaluate({graph, 1000, 10000});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_EQ((*results)[0].values<float>()[0], -7500);
  const auto refused = evaluator.Evaluate({graph, 1000, 9999});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().sentence(),
            "A value of 2500 elements is not within the limit of 9999 bytes for each.");
  const auto unknown = evaluator.Evaluate({make(false), 1000, 9999});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(
      unknown.status().sentence(),
      "A value of a size that is not known beforehand is not within the limit of 9999 bytes for "
      "each.");
}

// The reference, and how often it was asked for a kernel.
class CountingDevice final : public device::Device {
 public:
  device::Memory& memory() override { return reference_.memory(); }
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    return reference_.Select(facts);
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override {
    ++builds;
    return reference_.Build(recipe);
  }

  int builds = 0;

 private:
  reference::Device reference_;
};

TEST(ConstantEvaluatorTest, AsksTheDeviceForLargeConstantsOnly) {
  CountingDevice device;
  ConstantEvaluator evaluator(nullptr, &device);
  ASSERT_TRUE(evaluator.Evaluate({MakeGraph("Neg", 13, {Floats({3}, {1, 2, 3})}), 1 << 20}).ok());
  EXPECT_EQ(device.builds, 0);

  std::vector<float> values(3 * 7001);
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k) - 0.5F;
  auto results = evaluator.Evaluate({MakeGraph("Neg", 13, {Floats({3, 7001}, values)}), 1 << 20});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_EQ(device.builds, 1);
  EXPECT_EQ((*results)[0].extents(), (tensor::Extents{3, 7001}));
  for (size_t k = 0; k < values.size(); ++k) {
    ASSERT_EQ((*results)[0].values<float>()[k], -values[k]) << k;
  }

  // Small constants of which something large is made.
  const int64_t extents[] = {150, 150};
  const Tensor shape = Tensor::FromValues<int64_t>(ElementType::kInt64, {2}, extents);
  results = evaluator.Evaluate({MakeGraph("Expand", 13, {Floats({1, 1}, {2}), shape}), 1 << 20});
  ASSERT_TRUE(results.ok()) << results.status().Text();
  EXPECT_EQ(device.builds, 2);
  EXPECT_EQ((*results)[0].values<float>()[22499], 2);
}

}  // namespace
}  // namespace onnxifi::plugin
