// SPDX-License-Identifier: Apache-2.0
//
// If whose branches give different ranks: right for who broadcasts the result to as many axes, a
// sentence for everyone else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/ops/lower_graph.h"
#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using graph::ValueId;
using graph::testing::GraphBuilder;
using tensor::ElementType;
using tensor::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

graph::Type TypeOf(ElementType element, const tensor::Extents& extents) {
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = element;
  type.extents.emplace();
  for (int64_t extent : extents) type.extents->push_back({extent, ""});
  return type;
}

// A branch that gives numbers of its own.
std::shared_ptr<const graph::Graph> Gives(const tensor::Extents& extents,
                                          const std::vector<double>& numbers) {
  GraphBuilder branch("branch");
  const ValueId constant = branch.AddConstant(MakeTensor(ElementType::kFloat32, extents, numbers));
  branch.SetOutputs({branch.AddNode("Identity", 16, {constant})});
  return std::make_shared<graph::Graph>(branch.Take());
}

// Of a condition, and a matrix [2, 3] that `use` combines with what the branches give.
graph::Graph Chosen(
    std::shared_ptr<const graph::Graph> then_branch,
    std::shared_ptr<const graph::Graph> else_branch,
    const std::function<ValueId(GraphBuilder&, ValueId matrix, ValueId chosen)>& use) {
  GraphBuilder builder("chosen");
  const ValueId condition = builder.AddInput("condition", TypeOf(ElementType::kBool, {}));
  const ValueId matrix = builder.AddInput("matrix", TypeOf(ElementType::kFloat32, {2, -1}));
  const ValueId chosen = builder.AddNode(
      "If", 16, {condition},
      {{"then_branch", std::move(then_branch)}, {"else_branch", std::move(else_branch)}});
  builder.SetOutputs({use(builder, matrix, chosen)});
  return builder.Take();
}

base::Result<std::vector<Tensor>> RunChosen(const graph::Graph& graph, bool condition) {
  return RunGraph(graph, {MakeTensor(ElementType::kBool, {}, {double(condition)}),
                          MakeTensor(ElementType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6})});
}

TEST(IfTest, ResultsOfDifferentRanksAreBroadcast) {
  const graph::Graph graph = Chosen(Gives({}, {10}), Gives({2, 1}, {10, -1}),
                                    [](GraphBuilder& builder, ValueId matrix, ValueId chosen) {
                                      return builder.AddNode("Mul", 14, {matrix, chosen});
                                    });
  auto out = RunChosen(graph, true);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), (tensor::Extents{2, 3}));
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(10, 20, 30, 40, 50, 60));
  out = RunChosen(graph, false);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(10, 20, 30, -4, -5, -6));
}

// The vector of the other branch stands along the last axis.
TEST(IfTest, TheFewerAxesAreTheLast) {
  const graph::Graph graph = Chosen(Gives({1, 1}, {5}), Gives({3}, {1, 0, -1}),
                                    [](GraphBuilder& builder, ValueId matrix, ValueId chosen) {
                                      return builder.AddNode("Sub", 14, {chosen, matrix});
                                    });
  auto out = RunChosen(graph, true);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(4, 3, 2, 1, 0, -1));
  out = RunChosen(graph, false);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(0, -2, -4, -3, -5, -7));
}

TEST(IfTest, TheTypeIsKnownWhateverTheRankIs) {
  const graph::Graph graph = Chosen(Gives({}, {1}), Gives({2, 1, 1}, {1, 1}),
                                    [](GraphBuilder& builder, ValueId matrix, ValueId chosen) {
                                      return builder.AddNode("CastLike", 15, {matrix, chosen});
                                    });
  const auto out = RunChosen(graph, true);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(IfTest, RefusesDifferentRanksWhereTheyCount) {
  const auto refuses = [](const graph::Graph& graph) {
    const auto out = RunChosen(graph, true);
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), base::Code::kUnsupportedShape);
    EXPECT_THAT(out.status().Text(), HasSubstr("axes or fewer, by the branch of an If that runs"));
    // A support question answers alike.
    const SupportAnswer answer =
        LowerEachNode(graph, /*functions=*/nullptr, nullptr, Carrier::kDescriptors);
    bool is_refused = !answer.edges.ok();
    for (const base::Status& status : answer.nodes) is_refused = is_refused || !status.ok();
    EXPECT_TRUE(is_refused);
  };
  const auto scalar = Gives({}, {1});
  // As an output; in an operator that looks at axes; broadcast to fewer axes; twice.
  refuses(Chosen(scalar, Gives({1}, {1}),
                 [](GraphBuilder&, ValueId, ValueId chosen) { return chosen; }));
  refuses(Chosen(scalar, Gives({1}, {1}), [](GraphBuilder& builder, ValueId, ValueId chosen) {
    return builder.AddNode("Relu", 14, {chosen});
  }));
  refuses(Chosen(scalar, Gives({1, 1, 1}, {1}),
                 [](GraphBuilder& builder, ValueId matrix, ValueId chosen) {
                   return builder.AddNode("Add", 14, {matrix, chosen});
                 }));
  refuses(Chosen(scalar, Gives({1}, {1}), [](GraphBuilder& builder, ValueId, ValueId chosen) {
    return builder.AddNode("Add", 14, {chosen, chosen});
  }));
}

}  // namespace
}  // namespace onnxifi::ops
