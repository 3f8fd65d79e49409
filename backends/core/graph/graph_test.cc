// SPDX-License-Identifier: Apache-2.0
//
// Graph: look-ups and edits, with captures of subgraphs among the readers.

#include "backends/core/graph/graph.h"

#include <gtest/gtest.h>

#include "backends/core/graph/dump.h"
#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/graph/verify.h"

namespace onnxifi::graph {
namespace {

using testing::GraphBuilder;

TEST(GraphTest, DescribesNodesByIndexNameAndOperator) {
  Node node{.name = "conv1", .op_type = "Conv", .index = 3};
  EXPECT_EQ(Describe(node), "node 3 'conv1' (Conv)");
  node.name.clear();
  node.domain = "ai.onnx.ml";
  EXPECT_EQ(Describe(node), "node 3 (ai.onnx.ml.Conv)");
}

TEST(GraphTest, CountsReadersOfEveryKind) {
  GraphBuilder inner("body");
  const ValueId captured = inner.AddCapture("x", /*outer=*/0);
  inner.SetOutputs({inner.AddNode("Relu", {captured})});
  GraphBuilder builder("main");
  const ValueId x = builder.AddInput("x");
  const ValueId y = builder.AddNode("Add", {x, x});
  const ValueId z = builder.AddNode("If", {y}, inner.Share());
  builder.SetOutputs({z, x});
  const Graph graph = builder.Take();
  EXPECT_EQ(graph.UseCount(x), 4);  // twice by Add, by the body, as an output
  EXPECT_EQ(graph.UseCounts(), (std::vector<int>{4, 1, 1}));
  EXPECT_EQ(graph.Producer(z), 1);
  EXPECT_FALSE(graph.Producer(x));
  EXPECT_EQ(graph.Producers(), (std::vector<NodeId>{kNoNode, 0, 1}));
  EXPECT_TRUE(graph.IsOutput(x));
  EXPECT_FALSE(graph.IsOutput(y));
}

TEST(GraphTest, ReplaceUsesReachesOutputsAndCaptures) {
  GraphBuilder inner("body");
  inner.SetOutputs({inner.AddNode("Relu", {inner.AddCapture("y", /*outer=*/1)})});
  const std::shared_ptr<const Graph> body = inner.Share();
  GraphBuilder builder("main");
  const ValueId x = builder.AddInput("x");
  const ValueId y = builder.AddNode("Identity", {x});
  const ValueId z = builder.AddNode("If", {y}, body);
  builder.SetOutputs({z, y});
  Graph graph = builder.Take();
  graph.ReplaceUses(y, x);
  EXPECT_EQ(graph.UseCount(y), 0);
  EXPECT_EQ(graph.outputs, (ValueIds{z, x}));
  EXPECT_EQ(graph.UseCount(x), 4);  // Identity, If, its body, the output
  EXPECT_EQ(body->values[0].outer, 1) << "a shared subgraph must not change under its other owners";
  EXPECT_TRUE(Verify(graph).ok());
}

TEST(VerifyTest, FindsEachBrokenInvariant) {
  const auto make = [] {
    GraphBuilder builder("main");
    const ValueId x = builder.AddInput("x");
    const ValueId y = builder.AddNode("Relu", {x});
    builder.SetOutputs({builder.AddNode("Relu", {y})});
    return builder.Take();
  };
  EXPECT_TRUE(Verify(make()).ok());
  const auto expect_broken = [](const Graph& graph, std::string_view what) {
    const base::Status status = Verify(graph);
    EXPECT_EQ(status.code(), base::Code::kInternalError);
    EXPECT_NE(status.Text().find(what), std::string::npos) << status.Text();
  };
  Graph graph = make();
  std::swap(graph.nodes[0], graph.nodes[1]);
  expect_broken(graph, "read before it is defined");
  graph = make();
  graph.nodes[1].outputs[0] = graph.nodes[0].outputs[0];
  expect_broken(graph, "defined twice");
  graph = make();
  graph.nodes[1].inputs[0] = 99;
  expect_broken(graph, "outside the graph's 3 values");
  graph = make();
  graph.outputs[0] = -7;
  expect_broken(graph, "outside");
  graph = make();
  graph.values[0].constant = tensor::Tensor::FromBytes(tensor::ElementType::kFloat32, {0}, {});
  expect_broken(graph, "defined twice");
  graph = make();
  GraphBuilder inner("body");
  inner.SetOutputs({inner.AddCapture("later", /*outer=*/2)});
  graph.nodes[0].attributes["then_branch"] = inner.Share();
  expect_broken(graph, "captured as 'later'");
}

TEST(DumpTest, ShowsTypesNodesConstantsAndSubgraphs) {
  GraphBuilder inner("body");
  inner.SetOutputs({inner.AddNode("Relu", {inner.AddCapture("x", /*outer=*/0)})});
  GraphBuilder builder("main");
  const ValueId x = builder.AddInput("x");
  const ValueId c = builder.AddConstant("c", {1.5f, -2.f});
  builder.SetOutputs({builder.AddNode("If", {builder.AddNode("Add", {x, c})}, inner.Share())});
  Graph graph = builder.Take();
  graph.values[0].type = Type{.kind = Type::Kind::kTensor,
                              .element = tensor::ElementType::kFloat32,
                              .extents = {{{.number = 2}, {.symbol = "N"}, {}}}};
  const std::string text = DumpText(graph);
  EXPECT_NE(text.find("input %0:x float[2, N, ?]"), std::string::npos) << text;
  EXPECT_NE(text.find("constant %1:c float[2] = {1.5, -2}"), std::string::npos) << text;
  EXPECT_NE(text.find("capture %0:x of %0"), std::string::npos) << text;
  EXPECT_NE(text.find("graph 'body'"), std::string::npos) << text;
  const std::string dot = DumpDot(graph);
  EXPECT_TRUE(dot.starts_with("digraph \"main\" {\n")) << dot;
  EXPECT_NE(dot.find("\"v0\" -> \"n0\" [label=\"x float[2, N, ?]\"]"), std::string::npos) << dot;
}

}  // namespace
}  // namespace onnxifi::graph
