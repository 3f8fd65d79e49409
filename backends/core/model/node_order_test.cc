// SPDX-License-Identifier: Apache-2.0
//
// OrderNodes: sorted nodes stay, others move no further than they must, and a cycle is named.

#include "backends/core/model/node_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

namespace onnxifi::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

onnx::GraphProto Parse(const std::string& nodes) {
  onnx::GraphProto graph;
  const std::string text = "g (bool c, float[2] x) => (float[2] y) {" + nodes + "}";
  const auto status = onnx::OnnxParser::Parse(graph, text.c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  return graph;
}

std::vector<int> OrderOf(const std::string& nodes) {
  const onnx::GraphProto graph = Parse(nodes);
  const auto order = OrderNodes(graph.node());
  EXPECT_TRUE(order.ok()) << order.status().Text();
  return order.ok() ? *order : std::vector<int>{-1};
}

TEST(OrderNodes, LeavesSortedNodes) {
  EXPECT_THAT(OrderOf("a = Neg(x) b = Abs(x) y = Add(a, b)"), IsEmpty());
  EXPECT_THAT(OrderOf("y = Neg(x)"), IsEmpty());
}

TEST(OrderNodes, PutsAMakerRightBeforeItsFirstReader) {
  EXPECT_THAT(OrderOf("a = Neg(x) y = Add(b, c) d = Abs(x) c = Ceil(b) b = Floor(a)"),
              ElementsAre(0, 4, 3, 1, 2));
}

TEST(OrderNodes, CountsWhatSubgraphsCapture) {
  EXPECT_THAT(OrderOf("y = If(c) <then_branch = t () => (float[2] r) { r = Neg(late) }, "
                      "else_branch = e () => (float[2] s) { s = Abs(x) }> late = Abs(x)"),
              ElementsAre(1, 0));
}

// The inner `a` hides the outer one, also where the subgraph itself is not sorted.
TEST(OrderNodes, CountsNothingThatSubgraphsMakeThemselves) {
  EXPECT_THAT(OrderOf("y = If(c) <then_branch = t () => (float[2] r) { r = Neg(a) a = Neg(x) }, "
                      "else_branch = e () => (float[2] s) { s = Abs(x) }> a = Abs(y)"),
              IsEmpty());
}

TEST(OrderNodes, NamesTheNodesOfACycle) {
  const onnx::GraphProto graph = Parse("a = Add(x, b) b = Neg(a) y = Abs(a)");
  const auto order = OrderNodes(graph.node());
  ASSERT_FALSE(order.ok());
  EXPECT_EQ(order.status().code(), base::Code::kInvalidModel);
  EXPECT_THAT(order.status().Text(), HasSubstr("a cycle of 2 nodes: 1 (Neg), 0 (Add)"));
  EXPECT_THAT(OrderOf("y = Add(x, y)"), IsEmpty()) << "one node: the import refuses it";
}

// No recursion: 300,000 nodes in reverse order.
TEST(OrderNodes, TakesLongModels) {
  constexpr int kNodes = 300'000;
  onnx::GraphProto graph;
  for (int k = 0; k < kNodes; ++k) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Neg");
    node.add_input("v" + std::to_string(kNodes - k - 1));
    node.add_output("v" + std::to_string(kNodes - k));
  }
  const auto order = OrderNodes(graph.node());
  ASSERT_TRUE(order.ok()) << order.status().Text();
  ASSERT_EQ(order->size(), size_t{kNodes});
  EXPECT_EQ(order->front(), kNodes - 1);
  EXPECT_EQ(order->back(), 0);
}

}  // namespace
}  // namespace onnxifi::model
