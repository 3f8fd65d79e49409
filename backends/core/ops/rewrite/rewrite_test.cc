// SPDX-License-Identifier: Apache-2.0
//
// The graph rewrites: what each takes out, what it leaves, and that results stay the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>

#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/ops/rewrite/affine_folding.h"
#include "backends/core/ops/rewrite/no_op_elimination.h"
#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::ValueIds;
using graph::testing::GraphBuilder;
using tensor::ElementType;
using tensor::Tensor;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using Ints = std::vector<int64_t>;

graph::Type TypeOf(ElementType element, const tensor::Extents& extents) {
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = element;
  type.extents.emplace();
  for (int64_t extent : extents) type.extents->push_back({extent, ""});
  return type;
}

graph::Type FloatType(const tensor::Extents& extents) {
  return TypeOf(ElementType::kFloat32, extents);
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
                  const std::vector<double>& values, ElementType type = ElementType::kFloat32) {
  graph::Value value;
  value.name = name;
  value.constant = MakeTensor(type, std::move(extents), values);
  return graph.AddValue(std::move(value));
}

// Adds a node of one output to a graph; the output.
ValueId AddNode(Graph& graph, const std::string& op_type, int version, ValueIds inputs) {
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

// As where somebody has made the batch of the inputs a symbol and left what is declared inside.
TEST(NoOpTest, WhatIsDeclaredOfValuesInsideProvesNothing) {
  const auto expect = [](const std::string& op_type, const tensor::Extents& declared,
                         const std::optional<std::vector<double>>& list,
                         const tensor::Extents& extents) {
    GraphBuilder builder("g");
    const ValueId x = builder.AddInput("x", FloatType({-1, 3}));
    const ValueId inside = builder.AddNode("Relu", 14, {x});
    ValueIds inputs = {inside};
    if (list) {
      inputs.push_back(builder.AddConstant(
          MakeTensor(ElementType::kInt64, {static_cast<int64_t>(list->size())}, *list)));
    }
    const ValueId result = builder.AddNode(op_type, 13, inputs);
    Graph graph = builder.Take({builder.AddNode("Neg", 13, {result})});
    graph.values[inside].type = graph.values[result].type = FloatType(declared);
    ASSERT_TRUE(NoOpElimination().Run(graph).ok());
    const auto out = RunGraph(graph, {MakeTensor(ElementType::kFloat32, {4, 3}, Count(12, 0, 1))});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_EQ((*out)[0].extents(), extents) << op_type;
  };
  expect("Reshape", {1, 6}, {{-1, 6}}, {2, 6});
  expect("Expand", {1, 3}, {{2, 4, 3}}, {2, 4, 3});
  expect("Unsqueeze", {1, 3}, {{0}}, {1, 4, 3});
  expect("Transpose", {3}, std::nullopt, {3, 4});
  expect("Flatten", {12}, std::nullopt, {4, 3});
}

// The rank of what GatherND gives is declared of its own value alone, and tells the length of the
// tuples.
TEST(NoOpTest, AGraphOutputTakesOverWhatIsDeclared) {
  for (const bool has_own : {false, true}) {
    GraphBuilder builder("g");
    const ValueId x = builder.AddInput("x", FloatType({2, 3}));
    const ValueId indices = builder.AddInput("indices", TypeOf(ElementType::kInt64, {-1, -1}));
    const ValueId taken = builder.AddNode("GatherND", 13, {x, indices});
    const ValueId out = builder.AddNode("Identity", 16, {taken});
    Graph graph = builder.Take({out});
    graph.values[taken].type = FloatType({-1});
    if (has_own) graph.values[out].type = FloatType({4});
    ASSERT_TRUE(NoOpElimination().Run(graph).ok());
    EXPECT_THAT(Operators(graph), ElementsAre("GatherND"));
    const graph::Type& type = graph.values[out].type;
    ASSERT_TRUE(type.extents.has_value());
    ASSERT_EQ(type.extents->size(), 1U);
    // What is declared of the output itself stays.
    EXPECT_EQ((*type.extents)[0].number, has_own ? 4 : -1);
    const auto gathered =
        RunGraph(graph, {MakeTensor(ElementType::kFloat32, {2, 3}, Count(6, 0, 1)),
                         MakeTensor(ElementType::kInt64, {4, 2}, {0, 1, 1, 2, 0, 0, 1, 0})});
    ASSERT_TRUE(gathered.ok()) << gathered.status().Text();
    EXPECT_THAT(Numbers((*gathered)[0]), ElementsAre(1, 5, 0, 3));
  }
}

TEST(NoOpTest, AnInputThatIsAnOutputKeepsItsNode) {
  GraphBuilder builder("g");
  const ValueId x = builder.AddInput("x", FloatType({2}));
  builder.SetOutputs({builder.AddNode("Identity", {x})});
  Graph graph = builder.Take();
  ASSERT_TRUE(NoOpElimination().Run(graph).ok());
  EXPECT_THAT(Operators(graph), ElementsAre("Identity"));
}

// A node with weights, whose channels are axis 1 of its result.
struct Producer {
  std::string name;
  std::string op_type;
  int version;
  tensor::Extents x, weight;
  int64_t channels;
  std::map<std::string, graph::Attribute, std::less<>> attributes;
};

const Producer kConv = {"Conv", "Conv", 11, {2, 2, 5}, {3, 2, 2}, 3, {}};
const Producer kGemm = {"Gemm", "Gemm", 13, {2, 5}, {5, 3}, 3, {{"alpha", 2.0f}}};

const Producer kProducers[] = {
    kConv,
    {"ConvOfGroups", "Conv", 11, {1, 4, 5, 3}, {6, 2, 3, 2}, 6, {{"group", int64_t{2}}}},
    {"ConvDepthwise", "Conv", 1, {1, 3, 5, 4}, {3, 1, 2, 3}, 3, {{"group", int64_t{3}}}},
    {"ConvOfOneChannel", "Conv", 11, {2, 2, 5}, {1, 2, 3}, 1, {}},
    {"ConvTranspose", "ConvTranspose", 11, {2, 3, 3, 5}, {3, 5, 2, 1}, 5, {}},
    {"ConvTransposeOfGroups",
     "ConvTranspose",
     11,
     {1, 6, 3, 5},
     {6, 3, 2, 3},
     6,
     {{"group", int64_t{2}}}},
    kGemm,
    {"GemmTransposed", "Gemm", 9, {3, 4}, {5, 4}, 5, {{"transB", int64_t{1}}}},
    {"MatMul", "MatMul", 13, {3, 5}, {5, 7}, 7, {}},
};

// x -> producer; what it makes. It reads a bias of the given extents, if any.
ValueId AddProducer(Graph& graph, const Producer& producer,
                    const std::optional<tensor::Extents>& bias,
                    ElementType type = ElementType::kFloat32) {
  graph.values.push_back({.name = "x", .type = TypeOf(type, producer.x)});
  graph.inputs = {0};
  const auto numbers = [](const tensor::Extents& extents, double start, double step) {
    return Count(tensor::ElementCount(extents), start, step);
  };
  ValueIds inputs = {
      0, AddTensor(graph, "w", producer.weight, numbers(producer.weight, -1, 0.0625), type)};
  if (bias) inputs.push_back(AddTensor(graph, "b", *bias, numbers(*bias, -2, 1.25), type));
  const ValueId made = AddNode(graph, producer.op_type, producer.version, std::move(inputs));
  graph.nodes.back().attributes = producer.attributes;
  return made;
}

Tensor Input(const Producer& producer, ElementType type = ElementType::kFloat32) {
  return MakeTensor(type, producer.x, Count(tensor::ElementCount(producer.x), -1.5, 0.0625));
}

// One link of a chain behind a producer.
struct Link {
  enum class Operand : uint8_t { kVector, kFull, kScalar, kOne };
  std::string op_type;
  Operand operand = Operand::kVector;
  bool is_constant_first = false;
};
using Operand = Link::Operand;

ValueId AddNormalization(Graph& graph, ValueId x, int64_t channels,
                         ElementType type = ElementType::kFloat32) {
  ValueIds inputs = {x};
  const struct {
    const char* name;
    double start, step;
  } statistics[] = {{"scale", 0.5, 0.75}, {"B", -1, 0.5}, {"mean", 2, -1.5}, {"var", 0.1, 2}};
  for (const auto& statistic : statistics) {
    inputs.push_back(AddTensor(graph, statistic.name, {channels},
                               Count(channels, statistic.start, statistic.step), type));
  }
  return AddNode(graph, "BatchNormalization", 15, inputs);
}

ValueId AddLink(Graph& graph, const Link& link, ValueId x, int rank, int64_t channels,
                ElementType type) {
  if (link.op_type == "BatchNormalization") return AddNormalization(graph, x, channels, type);
  tensor::Extents extents;
  if (link.operand == Operand::kVector) extents.assign(static_cast<size_t>(rank - 1), 1);
  if (link.operand == Operand::kFull) extents.assign(static_cast<size_t>(rank), 1);
  if (link.operand == Operand::kOne) extents = {1};
  if (link.operand == Operand::kVector) extents[0] = channels;
  if (link.operand == Operand::kFull) extents[1] = channels;
  const ValueId constant =
      AddTensor(graph, "c", extents, Count(tensor::ElementCount(extents), 0.75, -0.5), type);
  return AddNode(graph, link.op_type, 14,
                 link.is_constant_first ? ValueIds{constant, x} : ValueIds{x, constant});
}

struct Chain {
  std::string name;
  std::vector<Link> links;
};

class AffineChainTest : public ::testing::TestWithParam<Chain> {};

TEST_P(AffineChainTest, GoesIntoWeightsAndBias) {
  for (const Producer& producer : kProducers) {
    for (const bool has_bias : {false, true}) {
      for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64}) {
        if (has_bias && producer.op_type == "MatMul") continue;
        SCOPED_TRACE(producer.name + (has_bias ? " with bias" : ""));
        Graph graph;
        std::optional<tensor::Extents> bias;
        if (has_bias) bias = tensor::Extents{producer.channels};
        ValueId last = AddProducer(graph, producer, bias, type);
        const int rank = static_cast<int>(producer.x.size());
        for (const Link& link : GetParam().links) {
          last = AddLink(graph, link, last, rank, producer.channels, type);
        }
        graph.outputs = {last};
        const std::vector<double> expected = RunOnce(graph, Input(producer, type));
        auto changed = AffineFolding().Run(graph);
        ASSERT_TRUE(changed.ok());
        EXPECT_TRUE(*changed);
        // The producer comes last, behind the nodes that compute its weights from constants.
        EXPECT_EQ(graph.nodes.back().outputs[0], last);
        EXPECT_THAT(graph.nodes.back().op_type,
                    ::testing::AnyOf(producer.op_type, std::string("Gemm")));
        EXPECT_EQ(graph.nodes.back().inputs[0], 0);
        EXPECT_THAT(RunOnce(graph, Input(producer, type)),
                    Pointwise(DoubleNear(type == ElementType::kFloat64 ? 1e-9 : 1e-3), expected));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Chains, AffineChainTest,
    ::testing::Values(Chain{"Add", {{"Add"}}}, Chain{"AddOfScalar", {{"Add", Operand::kScalar}}},
                      Chain{"AddFirst", {{"Add", Operand::kFull, true}}}, Chain{"Sub", {{"Sub"}}},
                      Chain{"SubOfOne", {{"Sub", Operand::kOne}}},
                      Chain{"SubFrom", {{"Sub", Operand::kFull, true}}},
                      Chain{"SubFromScalar", {{"Sub", Operand::kScalar, true}}},
                      Chain{"Mul", {{"Mul"}}}, Chain{"MulFirst", {{"Mul", Operand::kVector, true}}},
                      Chain{"MulByScalar", {{"Mul", Operand::kScalar}}}, Chain{"Div", {{"Div"}}},
                      Chain{"DivByOne", {{"Div", Operand::kOne, false}}},
                      Chain{"Normalization", {{"BatchNormalization"}}},
                      Chain{"NormalizationMulAdd", {{"BatchNormalization"}, {"Mul"}, {"Add"}}},
                      Chain{"MulNormalization", {{"Mul"}, {"BatchNormalization"}}},
                      Chain{"AddMul", {{"Add"}, {"Mul", Operand::kFull}}},
                      Chain{"AddNormalizationTwice",
                            {{"Add"}, {"BatchNormalization"}, {"Sub"}, {"BatchNormalization"}}},
                      Chain{"AllThere",
                            {{"Div", Operand::kScalar},
                             {"Sub", Operand::kVector, true},
                             {"Mul", Operand::kFull, true},
                             {"Sub", Operand::kOne},
                             {"Div"},
                             {"Sub", Operand::kScalar, true},
                             {"Add"}}}),
    [](const auto& info) { return info.param.name; });

TEST(AffineFoldingTest, AConstantAloneIsTheBias) {
  Graph graph;
  const ValueId conv = AddProducer(graph, kConv, std::nullopt);
  graph.outputs = {
      AddNode(graph, "Add", 14, {AddTensor(graph, "addend", {3, 1}, {5, 6, 7}), conv})};
  ASSERT_TRUE(AffineFolding().Run(graph).ok());
  EXPECT_THAT(Operators(graph), ElementsAre("Conv"));
}

TEST(AffineFoldingTest, OnlyABiasMakesAGemmOfAMatMul) {
  for (const std::string op_type : {"Mul", "Add"}) {
    Graph graph;
    const ValueId product = AddProducer(graph, {"", "MatMul", 13, {2, 4}, {4, 3}, 3, {}}, {});
    graph.outputs = {AddNode(graph, op_type, 14, {product, AddTensor(graph, "c", {3}, {1, 2, 3})})};
    ASSERT_TRUE(AffineFolding().Run(graph).ok());
    EXPECT_EQ(graph.nodes.back().op_type, op_type == "Mul" ? "MatMul" : "Gemm");
  }
}

TEST(AffineFoldingTest, TakesTheBiasOfAGemmThatStretches) {
  for (const tensor::Extents& bias : {tensor::Extents{}, {1}, {1, 1}, {1, 3}}) {
    Graph graph;
    const ValueId gemm = AddProducer(graph, kGemm, bias);
    graph.outputs = {AddLink(graph, {"Mul"}, gemm, 2, 3, ElementType::kFloat32)};
    const std::vector<double> expected = RunOnce(graph, Input(kGemm));
    ASSERT_TRUE(AffineFolding().Run(graph).ok());
    EXPECT_EQ(graph.nodes.back().op_type, "Gemm");
    EXPECT_THAT(RunOnce(graph, Input(kGemm)), Pointwise(DoubleNear(1e-4), expected));
  }
}

// What is nearly such a chain. Each adds nodes behind the producer, and its outputs.
struct NearMiss {
  std::string name;
  Producer producer;
  std::function<void(Graph&, ValueId made)> finish;
};

// made op c, the graph's output.
std::function<void(Graph&, ValueId)> By(const std::string& op_type, int version,
                                        const tensor::Extents& extents,
                                        ElementType type = ElementType::kFloat32) {
  return [=](Graph& graph, ValueId made) {
    const ValueId c =
        AddTensor(graph, "c", extents, Count(tensor::ElementCount(extents), 1, 1), type);
    graph.outputs = {AddNode(graph, op_type, version, {made, c})};
  };
}

class NearMissTest : public ::testing::TestWithParam<NearMiss> {};

TEST_P(NearMissTest, Stays) {
  Graph graph;
  GetParam().finish(graph, AddProducer(graph, GetParam().producer, std::nullopt));
  const std::vector<std::string> before = Operators(graph);
  auto changed = AffineFolding().Run(graph);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
  EXPECT_EQ(Operators(graph), before);
}

INSTANTIATE_TEST_SUITE_P(All, NearMissTest,
                         ::testing::Values(NearMiss{"MulAlongSpace", kConv, By("Mul", 14, {4})},
                                           NearMiss{"AddAlongSpace", kConv,
                                                    By("Add", 14, {1, 3, 4})},
                                           NearMiss{"MulAlongBatch", kConv,
                                                    By("Mul", 14, {2, 3, 1})},
                                           NearMiss{"MulAlongSpaceAsLongAsChannels",
                                                    {"", "Conv", 11, {1, 2, 4}, {3, 2, 2}, 3, {}},
                                                    By("Mul", 14, {3})},
                                           NearMiss{"MulWidensOneChannel",
                                                    {"", "Conv", 11, {1, 2, 4}, {1, 2, 2}, 1, {}},
                                                    By("Mul", 14, {5, 1})},
                                           NearMiss{"MulRaisesTheRank", kConv,
                                                    By("Mul", 14, {1, 1, 3, 1})},
                                           NearMiss{"ScalarRaisesTheRank", kConv,
                                                    By("Mul", 14, {1, 1, 1, 1})},
                                           NearMiss{"MulOfRows", kGemm, By("Mul", 14, {2, 1})},
                                           NearMiss{"OldMulNamesItsAxis", kConv, By("Mul", 6, {3})},
                                           NearMiss{"Pow", kConv, By("Pow", 15, {3, 1})},
                                           NearMiss{"OtherType", kConv,
                                                    By("Mul", 14, {3, 1}, ElementType::kFloat64)},
                                           NearMiss{"BetaIsNotOne",
                                                    {"",
                                                     "Gemm",
                                                     13,
                                                     {2, 5},
                                                     {5, 3},
                                                     3,
                                                     {{"beta", 0.5f}}},
                                                    By("Mul", 14, {3})},
                                           NearMiss{"GroupsDoNotDivide",
                                                    {"",
                                                     "ConvTranspose",
                                                     11,
                                                     {1, 3, 4},
                                                     {3, 2, 2},
                                                     4,
                                                     {{"group", int64_t{2}}}},
                                                    By("Mul", 14, {1})},
                                           NearMiss{
                                               "NoGroups",
                                               {"",
                                                "ConvTranspose",
                                                11,
                                                {1, 3, 4},
                                                {3, 2, 2},
                                                4,
                                                {{"group", int64_t{0}}}},
                                               By("Mul", 14, {1})},
                                           NearMiss{"MatMulOfMore",
                                                    {"", "MatMul", 13, {1, 2, 4}, {4, 3}, 3, {}},
                                                    By("Add", 14, {3})},
                                           NearMiss{"Divisor", kConv,
                                                    [](Graph& graph, ValueId made) {
                                                      const ValueId c =
                                                          AddTensor(graph, "c", {3, 1}, {1, 2, 3});
                                                      graph.outputs = {
                                                          AddNode(graph, "Div", 14, {c, made})};
                                                    }},
                                           NearMiss{"NotConstant", kConv,
                                                    [](Graph& graph, ValueId made) {
                                                      graph.inputs.push_back(graph.AddValue(
                                                          {.name = "c",
                                                           .type = FloatType({3, 1})}));
                                                      graph.outputs = {
                                                          AddNode(graph, "Mul", 14,
                                                                  {made, graph.inputs.back()})};
                                                    }},
                                           NearMiss{"Squared", kConv,
                                                    [](Graph& graph, ValueId made) {
                                                      graph.outputs = {
                                                          AddNode(graph, "Mul", 14, {made, made})};
                                                    }},
                                           NearMiss{"WeightsAreNotConstant", kConv,
                                                    [](Graph& graph, ValueId made) {
                                                      By("Mul", 14, {3, 1})(graph, made);
                                                      graph.values[1].constant.reset();
                                                      graph.inputs.push_back(1);
                                                    }},
                                           NearMiss{"BiasIsNotConstant", kConv,
                                                    [](Graph& graph, ValueId made) {
                                                      By("Mul", 14, {3, 1})(graph, made);
                                                      graph.inputs.push_back(graph.AddValue(
                                                          {.name = "b", .type = FloatType({3})}));
                                                      graph.nodes[0].inputs.push_back(
                                                          graph.inputs.back());
                                                    }},
                                           NearMiss{"ReadTwice", kConv,
                                                    [](Graph& graph, ValueId made) {
                                                      By("Mul", 14, {3, 1})(graph, made);
                                                      graph.outputs.push_back(
                                                          AddNode(graph, "Relu", 14, {made}));
                                                    }},
                                           NearMiss{"AnOutputItself", kConv,
                                                    [](Graph& graph, ValueId made) {
                                                      By("Mul", 14, {3, 1})(graph, made);
                                                      graph.outputs.push_back(made);
                                                    }},
                                           NearMiss{
                                               "NormalizationInTraining", kConv,
                                               [](Graph& graph, ValueId made) {
                                                 graph.outputs = {AddNormalization(graph, made, 3)};
                                                 graph.nodes.back().attributes["training_mode"] =
                                                     int64_t{1};
                                               }},
                                           NearMiss{"NormalizationOfOther", kConv,
                                                    [](Graph& graph, ValueId made) {
                                                      graph.outputs = {
                                                          AddNormalization(graph, made, 4)};
                                                    }}),
                         [](const auto& info) { return info.param.name; });

TEST(AffineFoldingTest, IntegersStay) {
  const Producer producer = {"", "MatMul", 13, {2, 4}, {4, 3}, 3, {}};
  Graph graph;
  const ValueId made = AddProducer(graph, producer, std::nullopt, ElementType::kInt32);
  By("Mul", 14, {3}, ElementType::kInt32)(graph, made);
  auto changed = AffineFolding().Run(graph);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
}

TEST(AffineFoldingTest, GoesAsFarAsItHasOneReader) {
  Graph graph;
  const ValueId conv = AddProducer(graph, kConv, std::nullopt);
  By("Mul", 14, {3, 1})(graph, conv);
  const ValueId scaled = graph.outputs[0];
  By("Add", 14, {3, 1})(graph, scaled);
  graph.outputs.push_back(scaled);
  ASSERT_TRUE(AffineFolding().Run(graph).ok());
  ASSERT_GE(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes.back().op_type, "Add");
  EXPECT_EQ(graph.nodes[graph.nodes.size() - 2].op_type, "Conv");
  EXPECT_EQ(graph.nodes[graph.nodes.size() - 2].outputs[0], scaled);
}

// Weights that are read elsewhere too stay where they are, so new ones come on top.
TEST(AffineFoldingTest, TwoReadersOfTheSameWeightsGetEachTheirOwn) {
  Graph graph;
  const ValueId first = AddProducer(graph, kConv, std::nullopt);
  const ValueId second = AddNode(graph, "Conv", 11, {0, 1});
  By("Mul", 14, {3, 1})(graph, first);
  const ValueId scaled = graph.outputs[0];
  graph.outputs = {AddNode(graph, "Sub", 14, {scaled, second})};
  const std::vector<double> expected = RunOnce(graph, Input(kConv));
  ASSERT_TRUE(AffineFolding().Run(graph).ok());
  EXPECT_THAT(Operators(graph), ::testing::IsSupersetOf({"Conv", "Conv", "Sub"}));
  EXPECT_THAT(RunOnce(graph, Input(kConv)), Pointwise(DoubleNear(1e-5), expected));
}

}  // namespace
}  // namespace onnxifi::ops
