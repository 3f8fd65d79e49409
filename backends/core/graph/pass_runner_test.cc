// SPDX-License-Identifier: Apache-2.0
//
// PassRunner and the passes of this folder: what each leaves behind, with an evaluator that adds in
// plain loops.

#include "backends/core/graph/pass_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "backends/core/graph/constant_captures.h"
#include "backends/core/graph/constant_folding.h"
#include "backends/core/graph/dead_nodes.h"
#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/graph/verify.h"

namespace onnxifi::graph {
namespace {

using testing::GraphBuilder;

// Knows "Add" of equal extents and "Repeat" (one input, `count` copies), and counts its calls.
class AddEvaluator : public Evaluator {
 public:
  Answer Evaluate(const Request& request) override {
    ++calls;
    largest_graph = std::max(largest_graph, request.graph.nodes.size());
    Graph graph = request.graph;
    const auto values = [&](ValueId id) {
      return graph.values[static_cast<size_t>(id)].constant->values<float>();
    };
    for (const Node& node : graph.nodes) {
      std::vector<float> result;
      if (node.op_type == "Add") {
        for (size_t at = 0; at < values(node.inputs[0]).size(); ++at) {
          result.push_back(values(node.inputs[0])[at] + values(node.inputs[1])[at]);
        }
      } else if (node.op_type == "Repeat") {
        for (int64_t copy = 0; copy < *node.FindAttribute<int64_t>("count"); ++copy) {
          const auto once = values(node.inputs[0]);
          result.insert(result.end(), once.begin(), once.end());
        }
      } else {
        return base::Status(base::Code::kUnsupportedOperator, "Only Add and Repeat are known.");
      }
      if (static_cast<int64_t>(result.size() * sizeof(float)) > request.value_limit_bytes) {
        return base::Status(base::Code::kNoSystemMemory, "A value is too large.");
      }
      graph.values[static_cast<size_t>(node.outputs[0])].constant =
          tensor::Tensor::FromValues<float>(tensor::ElementType::kFloat32,
                                            {static_cast<int64_t>(result.size())}, result);
    }
    std::vector<tensor::Tensor> answer;
    for (const ValueId output : graph.outputs) {
      answer.push_back(*graph.values[static_cast<size_t>(output)].constant);
    }
    return answer;
  }

  int calls = 0;
  size_t largest_graph = 0;
};

// More than is computed in groups.
const std::vector<float> kMany(static_cast<size_t>(kMaxGroupedBytes) / sizeof(float) + 1, 1.f);

class BreakingPass : public Pass {
 public:
  std::string_view name() const override { return "breaking"; }
  base::Result<bool> Run(Graph& graph) override {
    std::ranges::reverse(graph.nodes);
    return true;
  }
};

base::Status RunPass(Pass& pass, Graph& graph) {
  return PassRunner({.verify = true}).Run(pass, graph);
}

TEST(PassRunnerTest, RecordsDumpsAndSkipsDisabledPasses) {
  GraphBuilder builder("main");
  const ValueId x = builder.AddInput("x");
  const ValueId y = builder.AddNode("Relu", {x});
  builder.AddNode("Neg", {y});
  builder.SetOutputs({y});
  Graph graph = builder.Take();

  std::vector<std::string> dumps;
  PassOptions options{.disabled = {"breaking"}, .verify = true};
  options.dump = [&](std::string_view pass, const Graph&) { dumps.emplace_back(pass); };
  PassRunner runner(options);
  DeadNodes dead_nodes;
  BreakingPass breaking;
  ASSERT_TRUE(runner.Run(dead_nodes, graph).ok());
  ASSERT_TRUE(runner.Run(breaking, graph).ok());
  ASSERT_TRUE(runner.Run(dead_nodes, graph).ok());
  ASSERT_EQ(runner.records().size(), 3u);
  EXPECT_EQ(runner.records()[0].nodes_before, 2);
  EXPECT_EQ(runner.records()[0].nodes_after, 1);
  EXPECT_TRUE(runner.records()[0].is_changed);
  EXPECT_GT(runner.records()[0].duration.count(), 0);
  EXPECT_TRUE(runner.records()[1].is_disabled);
  EXPECT_FALSE(runner.records()[2].is_changed);
  EXPECT_EQ(dumps, std::vector<std::string>{"dead_nodes"});
}

TEST(PassRunnerTest, NamesThePassThatBreaksTheGraph) {
  GraphBuilder builder("main");
  const ValueId y = builder.AddNode("Relu", {builder.AddInput("x")});
  builder.SetOutputs({builder.AddNode("Relu", {y})});
  Graph graph = builder.Take();
  BreakingPass breaking;
  const base::Status status = RunPass(breaking, graph);
  EXPECT_EQ(status.code(), base::Code::kInternalError);
  EXPECT_NE(status.Text().find("while running graph pass 'breaking'"), std::string::npos)
      << status.Text();
}

TEST(DeadNodesTest, RemovesChainsAndKeepsWhatSubgraphsCapture) {
  GraphBuilder inner("body");
  inner.AddNode("Neg", {inner.AddConstant("unread", {1})});
  inner.SetOutputs({inner.AddNode("Relu", {inner.AddCapture("kept", /*outer=*/1)})});
  GraphBuilder builder("main");
  const ValueId x = builder.AddInput("x");
  builder.AddNode("Abs", {x});  // value 1, read by the body alone
  builder.AddNode("Exp", {builder.AddNode("Log", {x})});
  builder.AddConstant("unread", {1, 2});
  builder.SetOutputs({builder.AddNode("If", {x}, inner.Share())});
  Graph graph = builder.Take();
  DeadNodes pass;
  ASSERT_TRUE(RunPass(pass, graph).ok());
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[0].op_type, "Abs");
  EXPECT_EQ(graph.nodes[1].op_type, "If");
  EXPECT_TRUE(std::ranges::none_of(graph.values, [](const Value& v) { return !!v.constant; }));
  const auto& body = *graph.nodes[1].FindAttribute<std::shared_ptr<const Graph>>("body");
  ASSERT_EQ(body->nodes.size(), 1u);
  EXPECT_EQ(body->nodes[0].op_type, "Relu");
}

TEST(DeadNodesTest, KeepsTheNumberOfOutputs) {
  GraphBuilder builder("main");
  const ValueId first = builder.AddNode("Split", {builder.AddInput("x")});
  Graph graph = builder.Take();
  graph.nodes[0].outputs.push_back(graph.AddValue({.name = "second"}));
  graph.outputs = {first};
  DeadNodes pass;
  ASSERT_TRUE(RunPass(pass, graph).ok());
  EXPECT_EQ(graph.nodes[0].outputs, (ValueIds{first, kNoValue}));
}

TEST(ConstantFoldingTest, FoldsChainsInOneRun) {
  GraphBuilder builder("main");
  const ValueId a = builder.AddConstant("a", {1, 2});
  const ValueId b = builder.AddConstant("b", {10, 20});
  const ValueId sum = builder.AddNode("Add", {a, b});
  const ValueId twice = builder.AddNode("Add", {sum, sum});
  const ValueId out = builder.AddNode("Add", {builder.AddInput("x"), twice});
  builder.SetOutputs({out});
  Graph graph = builder.Take();
  AddEvaluator evaluator;
  ConstantFolding pass(evaluator);
  ASSERT_TRUE(RunPass(pass, graph).ok());
  ASSERT_EQ(graph.nodes.size(), 1u);
  const Value& folded = graph.values[static_cast<size_t>(twice)];
  ASSERT_TRUE(folded.constant);
  EXPECT_EQ(folded.constant->values<float>()[0], 22);
  EXPECT_EQ(folded.constant->values<float>()[1], 44);
  EXPECT_FALSE(folded.is_weight);
  EXPECT_EQ((*folded.type.extents)[0].number, 2);
  EXPECT_EQ(evaluator.calls, 1);
}

TEST(ConstantFoldingTest, KeepsWhatGradientDifferentiates) {
  GraphBuilder builder("main");
  const ValueId a = builder.AddConstant("a", {1, 2});
  const ValueId sum = builder.AddNode("Add", {a, a});
  const ValueId gradient = builder.AddNode("Gradient", {a});
  builder.LastNode().domain = "ai.onnx.preview.training";
  builder.SetOutputs({sum, gradient});
  Graph graph = builder.Take();
  AddEvaluator evaluator;
  ConstantFolding pass(evaluator);
  ASSERT_TRUE(RunPass(pass, graph).ok());
  EXPECT_EQ(graph.nodes.size(), 2u);
  EXPECT_FALSE(graph.values[static_cast<size_t>(sum)].constant);
}

TEST(ConstantFoldingTest, KeepsDequantizedMatricesOfEveryDomain) {
  for (const char* domain : {"", "com.microsoft"}) {
    GraphBuilder builder("main");
    const ValueId numbers = builder.AddConstant(tensor::Tensor::FromValues<int8_t>(
        tensor::ElementType::kInt8, {2, 2}, std::vector<int8_t>{1, -2, 3, -4}));
    const ValueId scale = builder.AddConstant("scale", {0.5F});
    const ValueId weights = builder.AddNode("DequantizeLinear", {numbers, scale});
    builder.LastNode().domain = domain;
    builder.SetOutputs({weights});
    Graph graph = builder.Take();
    AddEvaluator evaluator;
    ConstantFolding pass(evaluator);
    ASSERT_TRUE(RunPass(pass, graph).ok());
    EXPECT_EQ(evaluator.calls, 0) << "domain '" << domain << "'";
    EXPECT_EQ(graph.nodes.size(), 1u);
  }
}

TEST(ConstantFoldingTest, ComputesWithFewNumbersAtOnceAndWithManyAlone) {
  GraphBuilder builder("main");
  const ValueId a = builder.AddConstant("a", {1});
  const ValueId b = builder.AddConstant("b", {10});
  const ValueId c = builder.AddConstant("c", {100});
  const ValueId first = builder.AddNode("Add", {a, b});
  const ValueId second = builder.AddNode("Add", {b, c});
  const ValueId sum = builder.AddNode("Add", {first, second});
  const ValueId large = builder.AddNode("Add", {sum, builder.AddConstant("many", kMany)});
  const ValueId last = builder.AddNode("Add", {large, sum});
  const ValueId stays = builder.AddNode("Add", {builder.AddInput("x"), second});
  builder.SetOutputs({last, stays});
  Graph graph = builder.Take();
  AddEvaluator evaluator;
  ConstantFolding pass(evaluator);
  ASSERT_TRUE(RunPass(pass, graph).ok());
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(evaluator.calls, 3);
  EXPECT_EQ(evaluator.largest_graph, 3u);
  EXPECT_EQ(graph.values[static_cast<size_t>(last)].constant->values<float>()[0], 122 + 121);
  EXPECT_EQ(graph.values[static_cast<size_t>(second)].constant->values<float>()[0], 110);
  int held = 0;
  for (const Value& value : graph.values) held += value.constant.has_value() ? 1 : 0;
  EXPECT_EQ(held, 2);
}

TEST(ConstantFoldingTest, TriesEachNodeOfARefusedGroupAlone) {
  GraphBuilder builder("main");
  const ValueId a = builder.AddConstant("a", {1});
  const ValueId sum = builder.AddNode("Add", {a, a});
  const ValueId unknown = builder.AddNode("Mystery", {sum});
  const ValueId behind = builder.AddNode("Add", {unknown, sum});
  const ValueId many = builder.AddNode("Repeat", {sum});
  builder.LastNode().attributes["count"] = static_cast<int64_t>(kMany.size());
  const ValueId twice = builder.AddNode("Add", {sum, many});
  builder.SetOutputs({behind, many, twice});
  Graph graph = builder.Take();
  AddEvaluator evaluator;
  ConstantFolding pass(evaluator);
  ASSERT_TRUE(RunPass(pass, graph).ok());
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[0].op_type, "Mystery");
  EXPECT_EQ(graph.values[static_cast<size_t>(many)].constant->values<float>().back(), 2);
  EXPECT_EQ(graph.values[static_cast<size_t>(twice)].constant->values<float>()[0], 4);
  EXPECT_EQ(evaluator.calls, 5);  // all five together, and all but what reads Mystery's result
}

// Answers up to three requests at a time, the last first.
class BatchEvaluator final : public AddEvaluator {
 public:
  size_t at_once() const override { return 3; }
  std::vector<Answer> EvaluateAll(std::span<const Request> requests) override {
    batches.push_back(requests.size());
    std::vector<Answer> answers;
    for (size_t k = requests.size(); k-- > 0;) answers.push_back(Evaluate(requests[k]));
    return {std::make_move_iterator(answers.rbegin()), std::make_move_iterator(answers.rend())};
  }

  std::vector<size_t> batches;
};

TEST(ConstantFoldingTest, FoldsNodesTogetherThatDoNotNeedEachOther) {
  GraphBuilder builder("main");
  // Five sums of constants, sums of neighbours of these, and of these, down to one.
  const auto many = [&](float number) {
    return builder.AddConstant("many", std::vector<float>(kMany.size(), number));
  };
  ValueIds sums;
  for (float number = 1; number <= 5; ++number) {
    sums.push_back(builder.AddNode("Add", {many(number), many(10 * number)}));
  }
  const ValueId stays = builder.AddNode("Mystery", {sums[1]});
  while (sums.size() > 1) {
    for (size_t k = 0; k + 1 < sums.size(); ++k) {
      sums[k] = builder.AddNode("Add", {sums[k], sums[k + 1]});
    }
    sums.pop_back();
  }
  builder.SetOutputs({stays, sums[0]});
  Graph graph = builder.Take();
  BatchEvaluator evaluator;
  ConstantFolding pass(evaluator);
  ASSERT_TRUE(RunPass(pass, graph).ok());
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].op_type, "Mystery");
  // Binomial: 11 * (1 * 1 + 4 * 2 + 6 * 3 + 4 * 4 + 1 * 5)
  EXPECT_EQ(graph.values[static_cast<size_t>(sums[0])].constant->values<float>()[0], 528);
  EXPECT_EQ(evaluator.calls, 16);
  EXPECT_LE(evaluator.batches.size(), 9u);
  EXPECT_EQ(*std::ranges::max_element(evaluator.batches), 3u);
  // What nothing reads any more is dropped; what the node that stays reads is not.
  int held = 0;
  for (const Value& value : graph.values) held += value.constant.has_value() ? 1 : 0;
  EXPECT_EQ(held, 2);
}

TEST(ConstantFoldingTest, WhatComesFromAWeightIsAWeight) {
  GraphBuilder builder("main");
  const ValueId a = builder.AddConstant("a", {1});
  const ValueId b = builder.AddConstant("b", {2});
  const ValueId sum = builder.AddNode("Add", {a, b});
  builder.SetOutputs({builder.AddNode("Add", {b, sum}), builder.AddNode("Add", {b, b})});
  Graph graph = builder.Take();
  graph.values[static_cast<size_t>(a)].is_weight = true;
  AddEvaluator evaluator;
  ConstantFolding pass(evaluator);
  ASSERT_TRUE(RunPass(pass, graph).ok());
  EXPECT_TRUE(graph.values[static_cast<size_t>(graph.outputs[0])].is_weight);
  EXPECT_FALSE(graph.values[static_cast<size_t>(graph.outputs[1])].is_weight);
}

TEST(ConstantFoldingTest, LeavesWhatItMayNotOrCannotFold) {
  GraphBuilder builder("main");
  const ValueId a = builder.AddConstant("a", {1});
  const ValueId unknown = builder.AddNode("Mystery", {a});
  GraphBuilder inner("body");
  inner.SetOutputs({inner.AddConstant("c", {1})});
  const ValueId branch = builder.AddNode("If", {a}, inner.Share());
  builder.SetOutputs({unknown, branch});
  Graph graph = builder.Take();
  graph.AddValue({.name = "valueless", .is_weight = true});
  Node valueless{.op_type = "Add", .inputs = {a, static_cast<ValueId>(graph.values.size() - 1)}};
  valueless.outputs.push_back(graph.AddValue({.name = "out"}));
  graph.outputs.push_back(valueless.outputs[0]);
  graph.nodes.push_back(valueless);
  AddEvaluator evaluator;
  ConstantFolding pass(evaluator);
  ASSERT_TRUE(RunPass(pass, graph).ok());
  EXPECT_EQ(graph.nodes.size(), 3u);
  EXPECT_EQ(evaluator.calls, 1);  // for Mystery alone
}

TEST(ConstantFoldingTest, RefusesResultsLargerThanTheLimitAndThanWhatTheyReplace) {
  const auto fold = [](size_t elements, int64_t copies, bool is_read_elsewhere) {
    GraphBuilder builder("main");
    const ValueId a = builder.AddConstant("a", std::vector<float>(elements, 1.f));
    ValueIds outputs = {builder.AddNode("Repeat", {a})};
    builder.LastNode().attributes["count"] = copies;
    if (is_read_elsewhere) outputs.push_back(a);
    builder.SetOutputs(outputs);
    Graph graph = builder.Take();
    AddEvaluator evaluator;
    ConstantFolding pass(evaluator);
    EXPECT_TRUE(RunPass(pass, graph).ok());
    return graph.nodes.empty();
  };
  const auto limit_elements = static_cast<size_t>(kMaxFoldedBytes) / sizeof(float);
  EXPECT_TRUE(fold(limit_elements / 4, 4, /*is_read_elsewhere=*/true));
  EXPECT_FALSE(fold(limit_elements / 4 + 1, 4, /*is_read_elsewhere=*/true));
  EXPECT_TRUE(fold(limit_elements + 1, 1, /*is_read_elsewhere=*/false));
  EXPECT_FALSE(fold(limit_elements + 1, 1, /*is_read_elsewhere=*/true));
}

TEST(ConstantCapturesTest, ReachesTheInnermostSubgraph) {
  GraphBuilder innermost("innermost");
  const ValueId deep = innermost.AddCapture("c", /*outer=*/0);
  innermost.SetOutputs({innermost.AddNode("Add", {deep, deep})});
  GraphBuilder inner("inner");
  const ValueId captured = inner.AddCapture("c", /*outer=*/0);
  inner.SetOutputs({inner.AddNode("If", {captured}, innermost.Share())});
  GraphBuilder builder("main");
  const ValueId c = builder.AddConstant("c", {3});
  builder.SetOutputs({builder.AddNode("If", {c}, inner.Share())});
  Graph graph = builder.Take();

  PassRunner runner({.verify = true});
  ConstantCaptures captures;
  AddEvaluator evaluator;
  ConstantFolding folding(evaluator);
  ASSERT_TRUE(runner.Run(captures, graph).ok());
  const auto bottom = [&graph]() -> const Graph& {
    const auto& body = *graph.nodes[0].FindAttribute<std::shared_ptr<const Graph>>("body");
    return **body->nodes[0].FindAttribute<std::shared_ptr<const Graph>>("body");
  };
  const Value& shared = bottom().values[static_cast<size_t>(deep)];
  ASSERT_TRUE(shared.constant.has_value());
  EXPECT_EQ(shared.constant->data(), graph.values[static_cast<size_t>(c)].constant->data())
      << "the tensor must be shared, not copied";
  ASSERT_TRUE(runner.Run(folding, graph).ok());
  EXPECT_TRUE(bottom().nodes.empty());
  const Value& sum = bottom().values[static_cast<size_t>(bottom().outputs[0])];
  ASSERT_TRUE(sum.constant.has_value());
  EXPECT_EQ(sum.constant->values<float>()[0], 6);
}

}  // namespace
}  // namespace onnxifi::graph
