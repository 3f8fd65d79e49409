// SPDX-License-Identifier: Apache-2.0
//
// The graph rewrites: what each takes out, what it leaves, and that results stay the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>

#include "backends/core/graph/graph_builder.h"
#include "backends/core/ops/rewrite/batch_normalization_folding.h"
#include "backends/core/ops/rewrite/bias_folding.h"
#include "backends/core/ops/rewrite/no_op_elimination.h"
#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::GraphBuilder;
using tensor::ElementType;
using tensor::Tensor;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using Ints = std::vector<int64_t>;

graph::Type FloatType(std::vector<int64_t> extents) {
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = ElementType::kFloat32;
  type.extents.emplace();
  for (int64_t extent : extents) type.extents->push_back({extent, ""});
  return type;
}

std::vector<double> Count(int64_t count, double start, double step) {
  std::vector<double> values;
  for (int64_t k = 0; k < count; ++k) values.push_back(start + step * static_cast<double>(k));
  return values;
}

std::vector<std::string> Operators(const Graph& graph) {
  std::vector<std::string> names;
  for (const graph::Node& node : graph.nodes) names.push_back(node.op_type);
  return names;
}

ValueId AddTensor(Graph& graph, const std::string& name, tensor::Extents extents,
                  const std::vector<double>& values) {
  graph::Value value;
  value.name = name;
  value.constant = MakeTensor(ElementType::kFloat32, std::move(extents), values);
  return graph.AddValue(std::move(value));
}

// Adds a node of one output to a graph; the output.
ValueId AddNode(Graph& graph, const std::string& op_type, int version,
                std::vector<ValueId> inputs) {
  graph::Node node;
  node.name = op_type;
  node.op_type = op_type;
  node.since_version = version;
  node.inputs = std::move(inputs);
  graph::Value value;
  value.name = op_type + std::to_string(graph.values.size());
  node.outputs = {graph.AddValue(std::move(value))};
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().outputs[0];
}

std::vector<double> RunOnce(const Graph& graph, const Tensor& input) {
  auto out = RunGraph(graph, {input});
  EXPECT_TRUE(out.ok()) << out.status().Text();
  return out.ok() ? Numbers((*out)[0]) : std::vector<double>();
}

// x -> first -> Relu, with `first` possibly doing nothing.
struct NoOpCase {
  std::string name;
  std::string op_type;
  int version;
  std::map<std::string, graph::Attribute, std::less<>> attributes;
  bool is_removed;
};

class NoOpTest : public ::testing::TestWithParam<NoOpCase> {};

TEST_P(NoOpTest, GoesOnlyWhereItDoesNothing) {
  GraphBuilder builder("g");
  const ValueId x = builder.AddInput("x", FloatType({2, 3}));
  const ValueId first = builder.AddNode(GetParam().op_type, {x});
  builder.LastNode().since_version = GetParam().version;
  builder.LastNode().attributes = GetParam().attributes;
  builder.SetOutputs({builder.AddNode("Relu", {first})});
  Graph graph = builder.Take();
  auto changed = NoOpElimination().Run(graph);
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(*changed, GetParam().is_removed);
  if (GetParam().is_removed) {
    EXPECT_THAT(Operators(graph), ElementsAre("Relu"));
    EXPECT_THAT(graph.nodes[0].inputs, ElementsAre(x));
  } else {
    EXPECT_THAT(Operators(graph), ElementsAre(GetParam().op_type, "Relu"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operators, NoOpTest,
    ::testing::Values(
        NoOpCase{"Identity", "Identity", 13, {}, true},
        NoOpCase{"CastToSame", "Cast", 13, {{"to", int64_t{1}}}, true},
        NoOpCase{"CastToOther", "Cast", 13, {{"to", int64_t{10}}}, false},
        NoOpCase{"TransposeInOrder", "Transpose", 13, {{"perm", Ints{0, 1}}}, true},
        NoOpCase{"TransposeSwaps", "Transpose", 13, {{"perm", Ints{1, 0}}}, false},
        NoOpCase{"TransposeByDefault", "Transpose", 13, {}, false},
        NoOpCase{"DropoutOld", "Dropout", 6, {{"is_test", int64_t{1}}}, true},
        NoOpCase{"DropoutTrains", "Dropout", 6, {}, false},
        NoOpCase{"DropoutNew", "Dropout", 13, {}, true},
        NoOpCase{"PadNothing", "Pad", 2, {{"pads", Ints{0, 0, 0, 0}}}, true},
        NoOpCase{"PadOne", "Pad", 2, {{"pads", Ints{0, 0, 0, 1}}}, false},
        NoOpCase{"SliceAll", "Slice", 1, {{"starts", Ints{0}}, {"ends", Ints{INT64_MAX}}}, true},
        NoOpCase{"SliceSome", "Slice", 1, {{"starts", Ints{0}}, {"ends", Ints{1}}}, false},
        NoOpCase{"ConcatOne", "Concat", 13, {{"axis", int64_t{0}}}, true},
        NoOpCase{"FlattenUndeclared", "Flatten", 13, {}, false},
        NoOpCase{"Relu", "Relu", 14, {}, false}),
    [](const auto& info) { return info.param.name; });

TEST(NoOpTest, AGraphOutputIsMadeByTheProducerInstead) {
  GraphBuilder builder("g");
  const ValueId x = builder.AddInput("x", FloatType({2}));
  const ValueId relu = builder.AddNode("Relu", {x});
  const ValueId out = builder.AddNode("Identity", {relu});
  const ValueId other = builder.AddNode("Neg", {relu});
  builder.SetOutputs({out, other});
  Graph graph = builder.Take();
  ASSERT_TRUE(NoOpElimination().Run(graph).ok());
  EXPECT_THAT(Operators(graph), ElementsAre("Relu", "Neg"));
  EXPECT_THAT(graph.nodes[0].outputs, ElementsAre(out));
  EXPECT_THAT(graph.nodes[1].inputs, ElementsAre(out));
  EXPECT_THAT(graph.outputs, ElementsAre(out, other));
}

TEST(NoOpTest, AnInputThatIsAnOutputKeepsItsNode) {
  GraphBuilder builder("g");
  const ValueId x = builder.AddInput("x", FloatType({2}));
  builder.SetOutputs({builder.AddNode("Identity", {x})});
  Graph graph = builder.Take();
  ASSERT_TRUE(NoOpElimination().Run(graph).ok());
  EXPECT_THAT(Operators(graph), ElementsAre("Identity"));
}

// x[1, 2, 4] -> Conv (3 outputs, kernel 2) -> what `finish` adds.
Graph ConvGraph(bool has_bias, const std::function<ValueId(Graph&, ValueId)>& finish) {
  Graph graph;
  graph.values.push_back({.name = "x", .type = FloatType({1, 2, 4})});
  graph.inputs = {0};
  std::vector<ValueId> inputs = {0, AddTensor(graph, "w", {3, 2, 2}, Count(12, -0.5, 0.25))};
  if (has_bias) inputs.push_back(AddTensor(graph, "b", {3}, {1, -2, 3}));
  const ValueId conv = AddNode(graph, "Conv", 11, inputs);
  graph.outputs = {finish(graph, conv)};
  return graph;
}

Tensor Input() { return MakeTensor(ElementType::kFloat32, {1, 2, 4}, Count(8, -3, 0.75)); }

ValueId AddNormalization(Graph& graph, ValueId x, int channels) {
  std::vector<ValueId> inputs = {x};
  const struct {
    const char* name;
    double start, step;
  } statistics[] = {{"scale", 0.5, 0.75}, {"B", -1, 0.5}, {"mean", 2, -1.5}, {"var", 0.1, 2}};
  for (const auto& statistic : statistics) {
    inputs.push_back(AddTensor(graph, statistic.name, {channels},
                               Count(channels, statistic.start, statistic.step)));
  }
  return AddNode(graph, "BatchNormalization", 15, inputs);
}

TEST(BatchNormalizationFoldingTest, LeavesTheResultOfAConvolution) {
  for (bool has_bias : {false, true}) {
    Graph graph =
        ConvGraph(has_bias, [](Graph& g, ValueId conv) { return AddNormalization(g, conv, 3); });
    const std::vector<double> expected = RunOnce(graph, Input());
    auto changed = BatchNormalizationFolding().Run(graph);
    ASSERT_TRUE(changed.ok());
    EXPECT_TRUE(*changed);
    // The convolution comes last, behind the nodes that compute its weights from constants.
    EXPECT_EQ(graph.nodes.back().op_type, "Conv");
    EXPECT_THAT(Operators(graph), ::testing::Not(::testing::Contains("BatchNormalization")));
    EXPECT_THAT(RunOnce(graph, Input()), Pointwise(DoubleNear(1e-5), expected));
  }
}

TEST(BatchNormalizationFoldingTest, LeavesTheResultOfAGemm) {
  for (int64_t is_transposed : {0, 1}) {
    Graph graph;
    graph.values.push_back({.name = "x", .type = FloatType({2, 4})});
    graph.inputs = {0};
    const ValueId w =
        AddTensor(graph, "w", is_transposed ? tensor::Extents{3, 4} : tensor::Extents{4, 3},
                  Count(12, -0.5, 0.25));
    const ValueId gemm = AddNode(graph, "Gemm", 13, {0, w});
    graph.nodes.back().attributes["transB"] = is_transposed;
    graph.nodes.back().attributes["alpha"] = 2.0f;
    graph.outputs = {AddNormalization(graph, gemm, 3)};
    const Tensor x = Input().Reshaped({2, 4});
    const std::vector<double> expected = RunOnce(graph, x);
    auto changed = BatchNormalizationFolding().Run(graph);
    ASSERT_TRUE(changed.ok());
    EXPECT_TRUE(*changed);
    EXPECT_EQ(graph.nodes.back().op_type, "Gemm");
    EXPECT_THAT(RunOnce(graph, x), Pointwise(DoubleNear(1e-5), expected));
  }
}

TEST(BatchNormalizationFoldingTest, StaysWhereTheConvolutionIsReadTwice) {
  Graph graph = ConvGraph(false, [](Graph& g, ValueId conv) {
    return AddNode(g, "Add", 14, {AddNormalization(g, conv, 3), conv});
  });
  auto changed = BatchNormalizationFolding().Run(graph);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
}

TEST(BatchNormalizationFoldingTest, StaysInTraining) {
  Graph graph =
      ConvGraph(false, [](Graph& g, ValueId conv) { return AddNormalization(g, conv, 3); });
  graph.nodes.back().attributes["training_mode"] = int64_t{1};
  auto changed = BatchNormalizationFolding().Run(graph);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
}

TEST(BiasFoldingTest, LeavesTheResultOfAConvolution) {
  Graph graph = ConvGraph(false, [](Graph& g, ValueId conv) {
    return AddNode(g, "Add", 14, {AddTensor(g, "addend", {3, 1}, {5, 6, 7}), conv});
  });
  const std::vector<double> expected = RunOnce(graph, Input());
  auto changed = BiasFolding().Run(graph);
  ASSERT_TRUE(changed.ok());
  EXPECT_TRUE(*changed);
  EXPECT_THAT(Operators(graph), ElementsAre("Conv"));
  EXPECT_THAT(RunOnce(graph, Input()), Pointwise(DoubleNear(1e-6), expected));
}

TEST(BiasFoldingTest, StaysWhereTheAddendVariesOverSpace) {
  Graph graph = ConvGraph(false, [](Graph& g, ValueId conv) {
    return AddNode(g, "Add", 14, {conv, AddTensor(g, "addend", {3}, {5, 6, 7})});
  });
  auto changed = BiasFolding().Run(graph);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
}

TEST(BiasFoldingTest, MakesAGemmOfAMatMulOfMatrices) {
  for (bool is_matrix : {true, false}) {
    Graph graph;
    graph.values.push_back(
        {.name = "x", .type = is_matrix ? FloatType({2, 4}) : FloatType({1, 2, 4})});
    graph.inputs = {0};
    const ValueId product =
        AddNode(graph, "MatMul", 13, {0, AddTensor(graph, "w", {4, 3}, Count(12, -0.5, 0.25))});
    graph.outputs = {
        AddNode(graph, "Add", 14, {product, AddTensor(graph, "addend", {3}, {1, 2, 3})})};
    const Tensor x = is_matrix ? Input().Reshaped({2, 4}) : Input().Reshaped({1, 2, 4});
    const std::vector<double> expected = RunOnce(graph, x);
    ASSERT_TRUE(BiasFolding().Run(graph).ok());
    EXPECT_EQ(graph.nodes.size(), is_matrix ? 1u : 2u);
    EXPECT_THAT(RunOnce(graph, x), Pointwise(DoubleNear(1e-6), expected));
  }
}

}  // namespace
}  // namespace onnxifi::ops
