// SPDX-License-Identifier: Apache-2.0
//
// If whose branches give different ranks: right for who broadcasts the result to as many axes, and
// for others of one branch where extents tell the condition; a sentence for everyone else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
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

// Each symbol has a number for each segment of a run: thousands of nodes would have millions.
TEST(IfTest, ExtentsThatBothBranchesKnowAreNoSymbols) {
  const auto count_symbols = [](const tensor::Extents& then_extents,
                                const tensor::Extents& else_extents) {
    const std::vector<double> then_numbers(static_cast<size_t>(then_extents[0]), 1);
    const std::vector<double> else_numbers(static_cast<size_t>(else_extents[0]), 1);
    const graph::Graph graph =
        Chosen(Gives(then_extents, then_numbers), Gives(else_extents, else_numbers),
               [](GraphBuilder& builder, ValueId, ValueId chosen) {
                 return builder.AddNode("Relu", 14, {chosen});
               });
    const auto program = LowerGraph(graph, /*functions=*/nullptr);
    EXPECT_TRUE(program.ok()) << program.status().Text();
    return program.ok() ? (*program)->dims->symbol_count() : -1;
  };
  const int given = count_symbols({3}, {3});
  EXPECT_EQ(count_symbols({3}, {2}), given + 1);
  EXPECT_EQ(given, 1);  // of `matrix`
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

void ExpectClaim(const graph::Graph& graph, bool is_claimed);

// Data choose: each branch has the readers.
TEST(IfTest, ReadersAreLoweredForEachBranch) {
  const auto expect = [](const graph::Graph& graph, bool condition, const tensor::Extents& extents,
                         const std::vector<double>& numbers) {
    ExpectClaim(graph, true);
    const auto out = RunChosen(graph, condition);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_EQ((*out)[0].extents(), extents);
    EXPECT_EQ(Numbers((*out)[0]), numbers);
  };
  const auto scalar = Gives({}, {7});
  // Results of one rank behind operators that look at axes.
  const graph::Graph summed = Chosen(
      scalar, Gives({2, 2}, {1, 2, 3, 4}), [](GraphBuilder& builder, ValueId, ValueId chosen) {
        return builder.AddNode("ReduceSum", 13, {builder.AddNode("Relu", 14, {chosen})},
                               {{"keepdims", int64_t{0}}});
      });
  expect(summed, true, {}, {7});
  expect(summed, false, {}, {10});
  // Broadcast to fewer axes, read twice, beside what does not depend on it.
  const graph::Graph gathered = Chosen(
      Gives({2, 3}, {1, 0, 0, 0, 1, 0}), Gives({1, 1, 3}, {0, 0, 1}),
      [](GraphBuilder& builder, ValueId matrix, ValueId chosen) {
        const ValueId negative = builder.AddNode("Neg", 13, {matrix});
        const ValueId product = builder.AddNode("Mul", 14, {negative, chosen});
        const ValueId both = builder.AddNode("Add", 14, {product, chosen});
        const ValueId minus_one = builder.AddConstant(MakeTensor(ElementType::kInt64, {1}, {-1}));
        return builder.AddNode("Reshape", 13, {both, minus_one});
      });
  expect(gathered, true, {6}, {0, 0, 0, 0, -4, 0});
  expect(gathered, false, {6}, {0, 0, -2, 0, 0, -5});
}

// The number of numbers in a list is another in each branch.
TEST(IfTest, ReadersOfListsAreLoweredForEachBranch) {
  const auto list = [](const std::vector<double>& numbers) {
    GraphBuilder branch("branch");
    const ValueId constant = branch.AddConstant(
        MakeTensor(ElementType::kInt64, {static_cast<int64_t>(numbers.size())}, numbers));
    branch.SetOutputs({branch.AddNode("Identity", 16, {constant})});
    return std::make_shared<graph::Graph>(branch.Take());
  };
  const graph::Graph graph = Chosen(
      list({3, 2}), list({1, 2, 3}), [](GraphBuilder& builder, ValueId matrix, ValueId list) {
        const ValueId shaped = builder.AddNode("Reshape", 13, {matrix, list});
        const ValueId last =
            builder.AddNode("ReduceMax", 13, {shaped}, {{"axes", std::vector<int64_t>{-1}}});
        return builder.AddNode("Flatten", 13, {last}, {{"axis", int64_t{0}}});
      });
  ExpectClaim(graph, true);
  auto out = RunChosen(graph, true);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(2, 4, 6));
  out = RunChosen(graph, false);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(3, 6));
}

// The list is captured by a body, not read by a node.
TEST(IfTest, BodiesThatReadListsAreLoweredForEachBranch) {
  const auto list = [](const std::vector<double>& numbers) {
    GraphBuilder branch("branch");
    branch.SetOutputs({branch.AddConstant(
        MakeTensor(ElementType::kInt64, {static_cast<int64_t>(numbers.size())}, numbers))});
    return std::make_shared<graph::Graph>(branch.Take());
  };
  const graph::Graph graph = Chosen(
      list({3, 2}), list({1, 2, 3}), [](GraphBuilder& builder, ValueId matrix, ValueId list) {
        GraphBuilder body("body");
        body.AddInput("iteration", TypeOf(ElementType::kInt64, {}));
        const ValueId goes_on = body.AddInput("goes_on", TypeOf(ElementType::kBool, {}));
        const ValueId total = body.AddInput("total", TypeOf(ElementType::kFloat32, {}));
        const ValueId shaped = body.AddNode(
            "Reshape", 13, {body.AddCapture("matrix", matrix), body.AddCapture("list", list)});
        const ValueId last =
            body.AddNode("ReduceMax", 13, {shaped}, {{"axes", std::vector<int64_t>{-1}}});
        const ValueId sum = body.AddNode("ReduceSum", 13, {last}, {{"keepdims", int64_t{0}}});
        body.SetOutputs(
            {body.AddNode("Identity", 16, {goes_on}), body.AddNode("Add", 14, {total, sum})});
        const ValueId trips = builder.AddConstant(MakeTensor(ElementType::kInt64, {}, {2}));
        const ValueId zero = builder.AddConstant(MakeTensor(ElementType::kFloat32, {}, {0}));
        return builder.AddNode("Loop", 16, {trips, graph::kNoValue, zero},
                               {{"body", body.Share()}});
      });
  ExpectClaim(graph, true);
  auto out = RunChosen(graph, true);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(24));
  out = RunChosen(graph, false);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(18));
}

// Each branch of the second holds for the rank that the same branch of the first gives.
TEST(IfTest, AnotherIfOfTheConditionTakesTheSameBranch) {
  const auto flatten = [](ValueId condition, ValueId x, GraphBuilder& builder, int64_t last_axis) {
    GraphBuilder summed("summed");
    summed.SetOutputs(
        {summed.AddNode("ReduceMax", 13, {summed.AddCapture("x", x)},
                        {{"axes", std::vector<int64_t>{last_axis}}, {"keepdims", int64_t{0}}})});
    GraphBuilder whole("whole");
    whole.SetOutputs({whole.AddNode("Neg", 13, {whole.AddCapture("x", x)})});
    return builder.AddNode("If", 16, {condition},
                           {{"then_branch", summed.Share()}, {"else_branch", whole.Share()}});
  };
  GraphBuilder builder("two");
  const ValueId condition = builder.AddInput("condition", TypeOf(ElementType::kBool, {}));
  const ValueId matrix = builder.AddInput("matrix", TypeOf(ElementType::kFloat32, {2, -1}));
  GraphBuilder cube("cube");
  const ValueId shape = cube.AddConstant(MakeTensor(ElementType::kInt64, {3}, {3, 1, 2}));
  cube.SetOutputs({cube.AddNode("Reshape", 13, {cube.AddCapture("matrix", matrix), shape})});
  GraphBuilder same("same");
  same.SetOutputs({same.AddNode("Abs", 13, {same.AddCapture("matrix", matrix)})});
  const ValueId chosen = builder.AddNode(
      "If", 16, {condition}, {{"then_branch", cube.Share()}, {"else_branch", same.Share()}});
  // There is no axis 2 without the first branch.
  const ValueId second = flatten(condition, chosen, builder, 2);
  const graph::Graph graph = builder.Take({builder.AddNode("Relu", 14, {second})});
  ExpectClaim(graph, true);
  auto out = RunChosen(graph, true);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), (tensor::Extents{3, 1}));
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(2, 4, 6));
  out = RunChosen(graph, false);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), (tensor::Extents{2, 3}));
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(0, 0, 0, 0, 0, 0));
}

// One behind another, and inside of a loop's body.
TEST(IfTest, ReadersOfSeveralAreLoweredForEachBranch) {
  const auto choose = [](GraphBuilder& builder, ValueId condition, ValueId x) {
    GraphBuilder flat("flat");
    const ValueId minus_one = flat.AddConstant(MakeTensor(ElementType::kInt64, {1}, {-1}));
    flat.SetOutputs({flat.AddNode("Reshape", 13, {flat.AddCapture("x", x), minus_one})});
    GraphBuilder doubled("doubled");
    const ValueId captured = doubled.AddCapture("x", x);
    doubled.SetOutputs({doubled.AddNode("Add", 14, {captured, captured})});
    return builder.AddNode("If", 16, {condition},
                           {{"then_branch", flat.Share()}, {"else_branch", doubled.Share()}});
  };
  const auto sum = [](GraphBuilder& builder, ValueId x) {
    return builder.AddNode("ReduceSum", 13, {x}, {{"keepdims", int64_t{0}}});
  };
  GraphBuilder builder("two");
  const ValueId condition = builder.AddInput("condition", TypeOf(ElementType::kBool, {}));
  const ValueId matrix = builder.AddInput("matrix", TypeOf(ElementType::kFloat32, {2, -1}));
  const ValueId first = builder.AddNode("Relu", 14, {choose(builder, condition, matrix)});
  const ValueId opposite = builder.AddNode("Not", 1, {condition});
  const ValueId second = choose(builder, opposite, first);
  const ValueId third = choose(builder, condition, builder.AddNode("Neg", 13, {second}));
  const graph::Graph chain = builder.Take({sum(builder, builder.AddNode("Relu", 14, {third}))});
  GraphBuilder body("body");
  body.AddInput("iteration", TypeOf(ElementType::kInt64, {}));
  const ValueId goes_on = body.AddInput("goes_on", TypeOf(ElementType::kBool, {}));
  const ValueId total = body.AddInput("total", TypeOf(ElementType::kFloat32, {}));
  const ValueId chosen =
      choose(body, body.AddCapture("condition", 0), body.AddCapture("matrix", 1));
  const ValueId more = sum(body, body.AddNode("Relu", 14, {chosen}));
  body.SetOutputs(
      {body.AddNode("Identity", 16, {goes_on}), body.AddNode("Add", 14, {total, more})});
  GraphBuilder looped("looped");
  ASSERT_EQ(looped.AddInput("condition", TypeOf(ElementType::kBool, {})), 0);
  ASSERT_EQ(looped.AddInput("matrix", TypeOf(ElementType::kFloat32, {2, -1})), 1);
  const ValueId trips = looped.AddConstant(MakeTensor(ElementType::kInt64, {}, {3}));
  const ValueId zero = looped.AddConstant(MakeTensor(ElementType::kFloat32, {}, {0}));
  const graph::Graph loop = looped.Take(
      {looped.AddNode("Loop", 16, {trips, graph::kNoValue, zero}, {{"body", body.Share()}})});
  for (const bool given : {true, false}) {
    ExpectClaim(chain, true);
    auto out = RunChosen(chain, given);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(0));
    ExpectClaim(loop, true);
    out = RunChosen(loop, given);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(given ? 63 : 126));
  }
}

// What the inner one gives is a result of the outer one's branch.
TEST(IfTest, ReadersOfNestedOnesAreLoweredForEachBranch) {
  GraphBuilder same("same");
  same.SetOutputs({same.AddNode("Neg", 13, {same.AddCapture("x", 1)})});
  GraphBuilder inner("inner");
  const ValueId opposite = inner.AddNode("Not", 1, {inner.AddCapture("condition", 0)});
  ASSERT_EQ(inner.AddCapture("x", 1), 2);
  GraphBuilder given("given");
  given.SetOutputs({given.AddNode("Identity", 16, {given.AddCapture("x", 2)})});
  GraphBuilder row("row");
  const ValueId minus_one = row.AddConstant(MakeTensor(ElementType::kInt64, {1}, {-1}));
  row.SetOutputs({row.AddNode("Reshape", 13, {row.AddCapture("x", 2), minus_one})});
  inner.SetOutputs({inner.AddNode("If", 16, {opposite},
                                  {{"then_branch", row.Share()}, {"else_branch", given.Share()}})});
  GraphBuilder builder("nested");
  const ValueId condition = builder.AddInput("condition", TypeOf(ElementType::kBool, {}));
  ASSERT_EQ(builder.AddInput("x", TypeOf(ElementType::kFloat32, {2, -1})), 1);
  const ValueId chosen = builder.AddNode(
      "If", 16, {condition}, {{"then_branch", inner.Share()}, {"else_branch", same.Share()}});
  const ValueId last =
      builder.AddNode("ReduceMax", 13, {chosen}, {{"axes", std::vector<int64_t>{-1}}});
  const graph::Graph graph =
      builder.Take({builder.AddNode("ReduceSum", 13, {last}, {{"keepdims", int64_t{0}}})});
  ExpectClaim(graph, true);
  for (const bool is_first : {true, false}) {
    const auto out = RunChosen(graph, is_first);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(is_first ? 9 : -5));
  }
}

// Each of the three gives another rank behind each branch of those before it: seven in all.
TEST(IfTest, ReadersOfAChainAreLoweredForEachCombination) {
  GraphBuilder builder("chain");
  std::vector<ValueId> conditions;
  for (const char* name : {"first", "second", "third"}) {
    conditions.push_back(builder.AddInput(name, TypeOf(ElementType::kBool, {})));
  }
  ValueId last = builder.AddInput("matrix", TypeOf(ElementType::kFloat32, {2, -1}));
  for (const ValueId condition : conditions) {
    GraphBuilder more("more"), least("least");
    const ValueId zero = more.AddConstant(MakeTensor(ElementType::kInt64, {1}, {0}));
    more.SetOutputs({more.AddNode("Unsqueeze", 13, {more.AddCapture("x", last), zero})});
    const ValueId captured = least.AddCapture("x", last);
    least.SetOutputs({least.AddNode("Add", 14, {captured, captured})});
    last = builder.AddNode("If", 16, {condition},
                           {{"then_branch", more.Share()}, {"else_branch", least.Share()}});
    last = builder.AddNode("Neg", 13, {last});
  }
  const ValueId rank = builder.AddNode("Size", 13, {builder.AddNode("Shape", 15, {last})});
  const ValueId sum = builder.AddNode("ReduceSum", 13, {last}, {{"keepdims", int64_t{0}}});
  const graph::Graph graph = builder.Take({rank, sum});
  ExpectClaim(graph, true);
  for (int bits = 0; bits < 8; ++bits) {
    std::vector<Tensor> inputs;
    double factor = -1;
    for (int k = 0; k < 3; ++k) {
      inputs.push_back(MakeTensor(ElementType::kBool, {}, {double(bits >> k & 1)}));
      factor *= (bits >> k & 1) != 0 ? 1 : 2;
    }
    inputs.push_back(MakeTensor(ElementType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6}));
    const auto out = RunGraph(graph, inputs);
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(2 + (bits & 1) + (bits >> 1 & 1) + (bits >> 2)));
    EXPECT_THAT(Numbers((*out)[1]), ElementsAre(21 * factor));
  }
}

// The results of an If are those of the If in whose branch it is.
TEST(IfTest, ReadersOfAnIfInABranchAreLoweredForEachBranch) {
  const auto reshape = [](GraphBuilder& branch, ValueId x, const std::vector<double>& extents) {
    const ValueId shape = branch.AddConstant(
        MakeTensor(ElementType::kInt64, {static_cast<int64_t>(extents.size())}, extents));
    branch.SetOutputs({branch.AddNode("Reshape", 13, {branch.AddCapture("x", x), shape})});
    return branch.Share();
  };
  GraphBuilder builder("nested");
  const ValueId condition = builder.AddInput("condition", TypeOf(ElementType::kBool, {}));
  const ValueId other = builder.AddInput("other", TypeOf(ElementType::kBool, {}));
  const ValueId matrix = builder.AddInput("matrix", TypeOf(ElementType::kFloat32, {2, -1}));
  GraphBuilder outer("outer"), flat("flat"), cube("cube"), whole("whole");
  const ValueId inner = outer.AddCapture("matrix", matrix);
  outer.SetOutputs({outer.AddNode("If", 16, {outer.AddCapture("other", other)},
                                  {{"then_branch", reshape(flat, inner, {-1})},
                                   {"else_branch", reshape(cube, inner, {3, 1, 2})}})});
  const ValueId chosen = builder.AddNode(
      "If", 16, {condition},
      {{"then_branch", outer.Share()}, {"else_branch", reshape(whole, matrix, {2, 3})}});
  const ValueId last =
      builder.AddNode("ReduceMax", 13, {chosen}, {{"axes", std::vector<int64_t>{-1}}});
  const graph::Graph graph = builder.Take({builder.AddNode(
      "ReduceSum", 13, {builder.AddNode("Relu", 14, {last})}, {{"keepdims", int64_t{0}}})});
  ExpectClaim(graph, true);
  for (const auto& [given, second, sum] :
       {std::tuple(true, true, 6), {true, false, 12}, {false, true, 9}, {false, false, 9}}) {
    const auto out =
        RunGraph(graph, {MakeTensor(ElementType::kBool, {}, {double(given)}),
                         MakeTensor(ElementType::kBool, {}, {double(second)}),
                         MakeTensor(ElementType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6})});
    ASSERT_TRUE(out.ok()) << out.status().Text();
    EXPECT_THAT(Numbers((*out)[0]), ElementsAre(sum));
  }
}

TEST(IfTest, RefusesDifferentRanksOfOutputs) {
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
  refuses(Chosen(scalar, Gives({1}, {1}),
                 [](GraphBuilder&, ValueId, ValueId chosen) { return chosen; }));
  refuses(Chosen(scalar, Gives({1}, {1}), [](GraphBuilder& builder, ValueId, ValueId chosen) {
    return builder.AddNode("Relu", 14, {chosen});
  }));
  refuses(Chosen(scalar, Gives({1, 1, 1}, {1}),
                 [](GraphBuilder& builder, ValueId matrix, ValueId chosen) {
                   return builder.AddNode("Add", 14, {matrix, chosen});
                 }));
}

// What torch.onnx.export writes for x.squeeze(1) where the axis is a symbol.
ValueId SqueezeIfOne(GraphBuilder& builder, ValueId x) {
  const auto integers = [](GraphBuilder& graph, double number) {
    return graph.AddConstant(MakeTensor(ElementType::kInt64, {1}, {number}));
  };
  GraphBuilder squeeze("squeeze");
  squeeze.SetOutputs(
      {squeeze.AddNode("Squeeze", 13, {squeeze.AddCapture("x", x), integers(squeeze, 1)})});
  GraphBuilder identity("identity");
  identity.SetOutputs({identity.AddNode("Identity", 16, {identity.AddCapture("x", x)})});
  const ValueId shape = builder.AddNode("Shape", 15, {x});
  const ValueId extent =
      builder.AddNode("Gather", 13, {shape, integers(builder, 1)}, {{"axis", int64_t{0}}});
  const ValueId is_one = builder.AddNode("Equal", 13, {extent, integers(builder, 1)});
  return builder.AddNode("If", 16, {is_one},
                         {{"then_branch", squeeze.Share()}, {"else_branch", identity.Share()}});
}

using Use = std::function<ValueId(GraphBuilder&, ValueId squeezed)>;

// Of x [2, extent, 3]; -1: a symbol.
graph::Graph Squeezed(int64_t extent, const Use& use, std::optional<int> declared_rank = {}) {
  GraphBuilder builder("squeezed");
  const ValueId x = builder.AddInput("x", TypeOf(ElementType::kFloat32, {2, extent, 3}));
  const ValueId out = use(builder, SqueezeIfOne(builder, x));
  graph::Graph graph = builder.Take({out});
  if (declared_rank) {
    graph.values[out].type =
        TypeOf(ElementType::kFloat32, tensor::Extents(size_t(*declared_rank), -1));
  }
  return graph;
}

Tensor Counting(const tensor::Extents& extents) {
  std::vector<double> numbers;
  for (int64_t k = 0; k < tensor::ElementCount(extents); ++k) numbers.push_back(double(k));
  return MakeTensor(ElementType::kFloat32, extents, numbers);
}

Use Transposing(const std::vector<int64_t>& perm) {
  return [perm](GraphBuilder& builder, ValueId squeezed) {
    return builder.AddNode("Transpose", 13, {squeezed}, {{"perm", perm}});
  };
}

// A support question answers as the lowering does.
void ExpectClaim(const graph::Graph& graph, bool is_claimed) {
  const SupportAnswer answer =
      LowerEachNode(graph, /*functions=*/nullptr, nullptr, Carrier::kDescriptors);
  bool is_refused = !answer.edges.ok();
  for (const base::Status& status : answer.nodes) is_refused = is_refused || !status.ok();
  EXPECT_EQ(!is_refused, is_claimed);
}

void ExpectRun(const graph::Graph& graph, int64_t extent, const tensor::Extents& extents,
               const std::vector<double>& numbers) {
  ExpectClaim(graph, true);
  const auto out = RunGraph(graph, {Counting({2, extent, 3})});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), extents);
  EXPECT_EQ(Numbers((*out)[0]), numbers);
}

void ExpectRefusedRun(const graph::Graph& graph, int64_t extent, const char* taken,
                      const char* lowered) {
  const auto out = RunGraph(graph, {Counting({2, extent, 3})});
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), base::Code::kUnsupportedShape);
  EXPECT_THAT(out.status().Text(),
              HasSubstr(std::string("extents of the run take its ") + taken +
                        ", and the graph is lowered for the rank that its " + lowered));
  EXPECT_THAT(out.status().Text(), HasSubstr("found x.1 = " + std::to_string(extent)));
}

TEST(IfTest, WhatReadsItChoosesTheBranch) {
  const std::vector<double> turned = {0, 3, 1, 4, 2, 5};
  // Axes [2, 3] turned; axes [2, 2, 3] with the last one first.
  const std::vector<double> last_first = {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11};
  for (const int64_t declared : {-1, 1}) {
    ExpectRun(Squeezed(declared, Transposing({1, 0})), 1, {3, 2}, turned);
  }
  for (const int64_t declared : {-1, 2}) {
    ExpectRun(Squeezed(declared, Transposing({2, 0, 1})), 2, {3, 2, 2}, last_first);
  }
  ExpectRefusedRun(Squeezed(-1, Transposing({1, 0})), 2, "else_branch", "then_branch");
  ExpectRefusedRun(Squeezed(-1, Transposing({2, 0, 1})), 1, "then_branch", "else_branch");
}

const Use kNothing = [](GraphBuilder&, ValueId squeezed) { return squeezed; };
const Use kRelu = [](GraphBuilder& builder, ValueId squeezed) {
  return builder.AddNode("Relu", 14, {squeezed});
};

// What is declared of the If itself. Behind it exporters declare the rank of either branch.
TEST(IfTest, WhatIsDeclaredChoosesTheBranch) {
  ExpectRun(Squeezed(-1, kNothing, /*declared_rank=*/2), 1, {2, 3}, {0, 1, 2, 3, 4, 5});
  ExpectRefusedRun(Squeezed(-1, kNothing, /*declared_rank=*/2), 3, "else_branch", "then_branch");
  const std::vector<double> twelve = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  // Without a declaration what holds for most extents.
  for (const std::optional<int> declared : {std::optional(3), std::optional<int>()}) {
    ExpectRun(Squeezed(-1, kNothing, declared), 2, {2, 2, 3}, twelve);
    ExpectRefusedRun(Squeezed(-1, kNothing, declared), 1, "then_branch", "else_branch");
  }
  for (const int declared : {2, 3}) {
    ExpectRun(Squeezed(-1, kRelu, declared), 2, {2, 2, 3}, twelve);
  }
}

TEST(IfTest, ARunIsLoweredForItsOwnBranch) {
  for (const Use& use : {kNothing, kRelu}) {
    for (const std::optional<int> declared : {std::optional<int>(), std::optional(2)}) {
      for (const int64_t known : {int64_t{-1}, int64_t{1}, int64_t{2}}) {
        for (const int64_t extent : {1, 2}) {
          if (known > 0 && known != extent) continue;
          const graph::Graph graph = Squeezed(known, use, declared);
          const Tensor x = Counting({2, extent, 3});
          const auto out = RunGraphForBranches(graph, {x});
          ASSERT_TRUE(out.ok()) << out.status().Text();
          EXPECT_EQ((*out)[0].extents(),
                    extent == 1 ? (tensor::Extents{2, 3}) : (tensor::Extents{2, 2, 3}));
          EXPECT_EQ(Numbers((*out)[0]), Numbers(x));
        }
      }
    }
  }
  // What reads it may not fit the branch.
  const graph::Graph graph = Squeezed(-1, Transposing({1, 0}));
  EXPECT_TRUE(RunGraphForBranches(graph, {Counting({2, 1, 3})}).ok());
  const auto out = RunGraphForBranches(graph, {Counting({2, 2, 3})});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.status().Text(), HasSubstr("perm"));
}

TEST(IfTest, EachHasABranchOfItsOwn) {
  GraphBuilder builder("two");
  const ValueId x = builder.AddInput("x", TypeOf(ElementType::kFloat32, {2, -1, 3}));
  const ValueId y = builder.AddInput("y", TypeOf(ElementType::kFloat32, {2, -1, 3}));
  const ValueId first = builder.AddNode("Relu", 14, {SqueezeIfOne(builder, x)});
  const ValueId second = builder.AddNode("Relu", 14, {SqueezeIfOne(builder, y)});
  const ValueId turned = Transposing({1, 0})(builder, first);
  const ValueId product = builder.AddNode("MatMul", 13, {second, turned});
  const ValueId flipped = Transposing({0, 2, 1})(builder, product);
  const graph::Graph graph = builder.Take({flipped});
  ExpectClaim(graph, true);
  const auto out = RunGraph(graph, {Counting({2, 1, 3}), Counting({2, 2, 3})});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), (tensor::Extents{2, 2, 2}));
  EXPECT_THAT(Numbers((*out)[0]), ElementsAre(5, 14, 14, 50, 23, 32, 86, 122));
}

// In a loop, of which an iteration reads what the loop does not change.
TEST(IfTest, ABodyChoosesToo) {
  GraphBuilder body("body");
  body.AddInput("iteration", TypeOf(ElementType::kInt64, {}));
  const ValueId condition = body.AddInput("condition", TypeOf(ElementType::kBool, {}));
  const ValueId sum = body.AddInput("sum", TypeOf(ElementType::kFloat32, {3, 2}));
  const ValueId squeezed = SqueezeIfOne(body, body.AddCapture("x", 0));
  const ValueId more = body.AddNode("Add", 14, {sum, Transposing({1, 0})(body, squeezed)});
  body.SetOutputs({body.AddNode("Identity", 16, {condition}), more});
  GraphBuilder builder("loop");
  ASSERT_EQ(builder.AddInput("x", TypeOf(ElementType::kFloat32, {2, -1, 3})), 0);
  const ValueId trips = builder.AddConstant(MakeTensor(ElementType::kInt64, {}, {3}));
  const ValueId zeros =
      builder.AddConstant(MakeTensor(ElementType::kFloat32, {3, 2}, {0, 0, 0, 0, 0, 0}));
  const ValueId result =
      builder.AddNode("Loop", 16, {trips, graph::kNoValue, zeros}, {{"body", body.Share()}});
  const graph::Graph graph = builder.Take({result});
  ExpectRun(graph, 1, {3, 2}, {0, 9, 3, 12, 6, 15});
  ExpectClaim(graph, true);
  const auto out = RunGraph(graph, {Counting({2, 2, 3})});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.status().Text(), HasSubstr("extents of the run take its else_branch"));
}

// A body is lowered for all runs: a Squeeze without axes removes what is 1 in each of them.
TEST(IfTest, ABodySqueezesNoOneOfARun) {
  GraphBuilder body("body");
  body.AddInput("iteration", TypeOf(ElementType::kInt64, {}));
  const ValueId condition = body.AddInput("condition", TypeOf(ElementType::kBool, {}));
  const ValueId sum = body.AddInput("sum", TypeOf(ElementType::kFloat32, {}));
  const ValueId squeezed = body.AddNode("Squeeze", 13, {body.AddCapture("x", 0)});
  const ValueId all = body.AddNode("ReduceSum", 13, {squeezed}, {{"keepdims", int64_t{0}}});
  body.SetOutputs({body.AddNode("Identity", 16, {condition}), body.AddNode("Add", 14, {sum, all})});
  GraphBuilder builder("loop");
  ASSERT_EQ(builder.AddInput("x", TypeOf(ElementType::kFloat32, {2, -1, 3})), 0);
  const ValueId trips = builder.AddConstant(MakeTensor(ElementType::kInt64, {}, {3}));
  const ValueId zero = builder.AddConstant(MakeTensor(ElementType::kFloat32, {}, {0}));
  const graph::Graph graph = builder.Take(
      {builder.AddNode("Loop", 16, {trips, graph::kNoValue, zero}, {{"body", body.Share()}})});
  ExpectRun(graph, 2, {}, {198});
  const auto out = RunGraph(graph, {Counting({2, 1, 3})});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.status().Text(), HasSubstr("no rank of the output is declared"));
}

TEST(IfTest, RefusesWhatNoBranchFits) {
  graph::Graph graph = Squeezed(-1, Transposing({0, 1, 2, 3}));
  ExpectClaim(graph, false);
  auto out = RunGraph(graph, {Counting({2, 1, 3})});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.status().Text(), HasSubstr("axes or fewer, by the branch of an If that runs"));
  // What is wrong behind the reader is told, not the rank that was chosen for it.
  graph = Squeezed(-1, [](GraphBuilder& builder, ValueId squeezed) {
    return builder.AddNode("Unheard", 1, {Transposing({1, 0})(builder, squeezed)});
  });
  ExpectClaim(graph, false);
  out = RunGraph(graph, {Counting({2, 1, 3})});
  ASSERT_FALSE(out.ok());
  EXPECT_THAT(out.status().Text(), HasSubstr("Unheard"));
}

// The model may declare the rank of the branch that is not taken, or of none.
TEST(IfTest, ADeclaredRankDoesNotBindAKnownBranch) {
  for (const bool takes_then : {false, true}) {
    for (const int declared_rank : {0, 1, 3}) {
      graph::Graph graph = Chosen(Gives({}, {10}), Gives({2, 1}, {10, -1}),
                                  [](GraphBuilder& builder, ValueId matrix, ValueId chosen) {
                                    return builder.AddNode("Mul", 14, {matrix, chosen});
                                  });
      graph.values[graph.nodes[0].outputs[0]].type =
          TypeOf(ElementType::kFloat32, tensor::Extents(size_t(declared_rank), -1));
      // As the caller's weight, which a support question does not look at.
      graph::Value& condition = graph.values[graph.inputs[0]];
      condition.constant = MakeTensor(ElementType::kBool, {}, {double(takes_then)});
      graph.inputs = {graph.inputs[1]};
      ExpectClaim(graph, true);
      const auto out =
          RunGraph(graph, {MakeTensor(ElementType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6})});
      ASSERT_TRUE(out.ok()) << out.status().Text();
      const double last = takes_then ? 60 : -6;
      EXPECT_EQ(Numbers((*out)[0]).back(), last);
      condition.constant.reset();
      condition.is_weight = true;
      ExpectClaim(graph, true);
    }
  }
}

}  // namespace
}  // namespace onnxifi::ops
