// SPDX-License-Identifier: Apache-2.0
//
// The whole way from a graph to results, on the reference: symbolic extents, extents that only data
// tell, control flow, and the work that must not be done twice. Expected values are computed by
// hand.

#include "backends/core/plugin/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "backends/core/execution/executor.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/graph/testing/graph_builder.h"
#include "backends/core/plan/plan.h"
#include "backends/core/reference/device.h"

namespace onnxifi::plugin {
namespace {

using base::Code;
using graph::Graph;
using graph::ValueId;
using graph::ValueIds;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;

graph::Type TensorType(ElementType element, const std::vector<std::string>& extents) {
  graph::Type type;
  type.kind = graph::Type::Kind::kTensor;
  type.element = element;
  type.extents.emplace();
  for (const std::string& extent : extents) {
    bool is_number = !extent.empty() && std::isdigit(static_cast<unsigned char>(extent[0]));
    type.extents->push_back(is_number ? graph::Extent{std::stoll(extent), ""}
                                      : graph::Extent{-1, extent});
  }
  return type;
}

// Inputs with extents as a model has them, and constants.
class Builder : public graph::testing::GraphBuilder {
 public:
  ValueId Input(const std::string& name, ElementType type,
                const std::vector<std::string>& extents) {
    return AddInput(name, TensorType(type, extents));
  }
  ValueId Constant(const std::vector<int64_t>& values, bool is_scalar = false) {
    Extents extents;
    if (!is_scalar) extents.push_back(static_cast<int64_t>(values.size()));
    return AddConstant(Tensor::FromValues<int64_t>(ElementType::kInt64, extents, values));
  }
  ValueId Floats(const std::vector<float>& values, const Extents& extents) {
    return AddConstant(Tensor::FromValues<float>(ElementType::kFloat32, extents, values));
  }
};

// A compiled graph on the reference.
class Compiled {
 public:
  explicit Compiled(Graph graph) {
    base::Status verdict = CheckSupport(graph, device);
    EXPECT_TRUE(verdict.ok()) << verdict.Text();
    auto compiled = Compile(std::move(graph), device, base::Log(), times);
    if (!compiled.ok()) {
      ADD_FAILURE() << compiled.status().Text();
      return;
    }
    program = *std::move(compiled);
    auto created = plan::Plan::Create(*program, device, counters);
    if (!created.ok()) {
      ADD_FAILURE() << created.status().Text();
      return;
    }
    plan = *std::move(created);
    executor = std::make_unique<execution::Executor>(*plan);
  }

  base::Result<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs,
                                        execution::RunProfile* profile = nullptr) {
    execution::TensorOutputs places(*program);
    ONNXIFI_RETURN_IF_ERROR(executor->Run(execution::AsInputs(inputs), places, profile));
    return std::move(places.tensors);
  }

  reference::Device device;
  LoadTimes times;
  plan::Counters counters;
  std::unique_ptr<program::Program> program;
  std::unique_ptr<plan::Plan> plan;
  std::unique_ptr<execution::Executor> executor;
};

Tensor Floats(const Extents& extents, const std::vector<float>& values) {
  return Tensor::FromValues<float>(ElementType::kFloat32, extents, values);
}
Tensor Integers(const Extents& extents, const std::vector<int64_t>& values) {
  return Tensor::FromValues<int64_t>(ElementType::kInt64, extents, values);
}
Tensor Bool(bool value) {
  uint8_t byte = value ? 1 : 0;
  return Tensor::FromValues<uint8_t>(ElementType::kBool, {}, {&byte, 1});
}
std::vector<float> Values(const Tensor& tensor) {
  std::span<const float> values = tensor.values<float>();
  return {values.begin(), values.end()};
}

Graph RandomGraph(bool is_seeded) {
  Builder builder;
  std::map<std::string, graph::Attribute, std::less<>> attributes = {
      {"shape", std::vector<int64_t>{1000}}};
  if (is_seeded) attributes["seed"] = 3.f;
  return builder.Take({builder.AddNode("RandomNormal", 22, {}, std::move(attributes))});
}

double Correlation(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0, squares_a = 0, squares_b = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    sum += double{a[k]} * b[k];
    squares_a += double{a[k]} * a[k];
    squares_b += double{b[k]} * b[k];
  }
  return sum / std::sqrt(squares_a * squares_b);
}

TEST(Pipeline, EveryRunDrawsOtherNumbers) {
  Compiled seeded(RandomGraph(/*is_seeded=*/true));
  const auto first = seeded.Run({}), second = seeded.Run({}), third = seeded.Run({});
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  // Of a thousand independent pairs, five standard errors.
  EXPECT_LT(std::abs(Correlation(Values((*first)[0]), Values((*second)[0]))), 0.16);
  EXPECT_LT(std::abs(Correlation(Values((*second)[0]), Values((*third)[0]))), 0.16);

  Compiled again(RandomGraph(/*is_seeded=*/true));
  EXPECT_EQ(Values((*again.Run({}))[0]), Values((*first)[0])) << "the seed decides the sequence";
  EXPECT_EQ(Values((*again.Run({}))[0]), Values((*second)[0]));

  Compiled one(RandomGraph(/*is_seeded=*/false)), other(RandomGraph(/*is_seeded=*/false));
  EXPECT_NE(Values((*one.Run({}))[0]), Values((*other.Run({}))[0])) << "nothing decides";
}

TEST(Pipeline, EveryIterationDrawsOtherNumbers) {
  Builder body;
  body.AddInput("iteration", TensorType(ElementType::kInt64, {}));
  const ValueId condition = body.AddInput("condition", TensorType(ElementType::kBool, {}));
  const ValueId drawn =
      body.AddNode("RandomUniform", 22, {}, {{"shape", std::vector<int64_t>{100}}, {"seed", 1.f}});
  const auto loop_body = std::make_shared<const Graph>(body.Take({condition, drawn}));
  Builder builder;
  const ValueId trips = builder.Constant({5}, /*is_scalar=*/true);
  Compiled compiled(
      builder.Take({builder.AddNode("Loop", 21, {trips, graph::kNoValue}, {{"body", loop_body}})}));
  const auto outputs = compiled.Run({});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  const std::vector<float> values = Values((*outputs)[0]);
  ASSERT_EQ(values.size(), 500u);
  for (size_t one = 0; one < 5; ++one) {
    for (size_t other = 0; other < one; ++other) {
      EXPECT_FALSE(std::equal(values.begin() + 100 * one, values.begin() + 100 * (one + 1),
                              values.begin() + 100 * other))
          << one << ", " << other;
    }
  }
}

TEST(Pipeline, BindsOneProgramToManyExtents) {
  Builder builder;
  ValueId x = builder.Input("x", ElementType::kFloat32, {"N", "2"});
  // Reshape(x, [Shape(x)[0] * 2]) + 1, as exporters write it.
  ValueId shape = builder.AddNode("Shape", 21, {x});
  ValueId rows = builder.AddNode("Gather", 13, {shape, builder.Constant({0})});
  ValueId count = builder.AddNode("Mul", 14, {rows, builder.Constant({2})});
  ValueId flat = builder.AddNode("Reshape", 21, {x, count});
  ValueId y = builder.AddNode("Add", 14, {flat, builder.Floats({1}, {})});
  Compiled compiled(builder.Take({y}));
  EXPECT_EQ(compiled.plan->segments().size(), 1u) << "no number has to be read at run time";
  EXPECT_EQ(compiled.program->steps.size(), 1u) << "the shape computation is gone";
  for (int64_t n : {3, 0, 1, 3}) {
    std::vector<float> values(static_cast<size_t>(2 * n));
    std::vector<float> expected;
    for (size_t k = 0; k < values.size(); ++k) {
      values[k] = static_cast<float>(k) - 2;
      expected.push_back(values[k] + 1);
    }
    auto outputs = compiled.Run({Floats({n, 2}, values)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
    EXPECT_EQ((*outputs)[0].extents(), Extents{2 * n});
    EXPECT_EQ(Values((*outputs)[0]), expected);
  }
  EXPECT_EQ(compiled.counters.bindings, 3u);
}

TEST(Pipeline, ProfilesEveryStepAndWhatEndsASegment) {
  Builder builder;
  ValueId x = builder.Input("x", ElementType::kFloat32, {"2", "3"});
  ValueId shape = builder.Input("shape", ElementType::kInt64, {"2"});
  ValueId doubled = builder.AddNode("Mul", 14, {x, builder.Floats({2}, {})});
  ValueId y = builder.AddNode("Reshape", 21, {doubled, shape});
  Compiled compiled(builder.Take({builder.AddNode("Neg", 13, {y})}));
  ASSERT_EQ(compiled.plan->segments().size(), 2u);
  execution::RunProfile profile;
  auto outputs =
      compiled.Run({Floats({2, 3}, {1, 2, 3, 4, 5, 6}), Integers({2}, {3, 2})}, &profile);
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  // Every step of the program, the one that reads the shape included, in order and one at a time.
  ASSERT_EQ(profile.steps.size(), compiled.program->steps.size());
  ASSERT_EQ(profile.bindings.size(), 2u);
  int64_t end_ns = 0;
  for (size_t k = 0; k < profile.steps.size(); ++k) {
    const execution::RunProfile::Step& timed = profile.steps[k];
    EXPECT_EQ(timed.step, static_cast<int>(k));
    const plan::Segment& segment = compiled.plan->segments()[timed.segment];
    EXPECT_GE(timed.step, segment.first_step);
    EXPECT_LE(timed.step, segment.end_step);
    EXPECT_GE(timed.start_ns, end_ns);
    EXPECT_GE(timed.duration_ns, 0);
    end_ns = timed.start_ns + timed.duration_ns;
  }
}

TEST(Pipeline, ReadsAShapeThatOnlyDataTell) {
  Builder builder;
  ValueId x = builder.Input("x", ElementType::kFloat32, {"2", "3"});
  ValueId shape = builder.Input("shape", ElementType::kInt64, {"2"});
  ValueId doubled = builder.AddNode("Mul", 14, {x, builder.Floats({2}, {})});
  ValueId y = builder.AddNode("Reshape", 21, {doubled, shape});
  ValueId z = builder.AddNode("Neg", 13, {y});
  Compiled compiled(builder.Take({z}));
  Tensor input = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  auto outputs = compiled.Run({input, Integers({2}, {3, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_EQ((*outputs)[0].extents(), (Extents{3, 2}));
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{-2, -4, -6, -8, -10, -12}));
  outputs = compiled.Run({input, Integers({2}, {1, -1})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_EQ((*outputs)[0].extents(), (Extents{1, 6}));
  outputs = compiled.Run({input, Integers({2}, {4, 2})});
  ASSERT_FALSE(outputs.ok()) << "8 elements are not 6";
  EXPECT_EQ(outputs.status().code(), Code::kMismatchingShape) << outputs.status().Text();
}

// How many tokens the cache has, an input tells; the output has the extents of the queries.
TEST(Pipeline, KnowsExtentsOfAttentionBeforeItRuns) {
  Builder builder;
  const std::vector<std::string> past = {"batch", "2", "past", "16"};
  const ValueIds inputs = {
      builder.Input("query", ElementType::kFloat32, {"batch", "length", "64"}),
      builder.Input("key", ElementType::kFloat32, {"batch", "length", "32"}),
      builder.Input("value", ElementType::kFloat32, {"batch", "length", "32"}),
      builder.Input("past_key", ElementType::kFloat32, past),
      builder.Input("past_value", ElementType::kFloat32, past),
      builder.Input("ends", ElementType::kInt32, {"batch"}),
      builder.Input("total", ElementType::kInt32, {"1"}),
  };
  const ValueId y = builder.AddNode("GroupQueryAttention", 1, inputs,
                                    {{"num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}});
  Graph graph = builder.Take({y});
  graph.nodes.front().domain = "com.microsoft";
  const Compiled compiled(std::move(graph));
  ASSERT_NE(compiled.program, nullptr);
  EXPECT_EQ(compiled.program->outputs[0].shape, compiled.program->inputs[0].shape);
}

TEST(Pipeline, ChecksBroadcastingThatOnlyBindingDecides) {
  Builder builder;
  ValueId a = builder.Input("a", ElementType::kFloat32, {"N"});
  ValueId b = builder.Input("b", ElementType::kFloat32, {"M"});
  Compiled compiled(builder.Take({builder.AddNode("Add", 14, {a, b})}));
  auto outputs = compiled.Run({Floats({3}, {1, 2, 3}), Floats({1}, {10})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{11, 12, 13}));
  outputs = compiled.Run({Floats({1}, {10}), Floats({2}, {1, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{11, 12}));
  outputs = compiled.Run({Floats({3}, {1, 2, 3}), Floats({2}, {1, 2})});
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.status().code(), Code::kMismatchingShape);
  EXPECT_NE(outputs.status().Text().find("N = 3"), std::string::npos) << outputs.status().Text();
}

TEST(Pipeline, RunsTheChosenBranchOnCapturedValues) {
  Builder builder;
  ValueId x = builder.Input("x", ElementType::kFloat32, {"N"});
  ValueId condition = builder.Input("condition", ElementType::kBool, {});
  ValueId doubled = builder.AddNode("Mul", 14, {x, builder.Floats({2}, {})});
  auto branch = [doubled](const std::string& op_type) {
    Builder body;
    ValueId captured = body.AddCapture("doubled", doubled);
    return std::make_shared<const Graph>(body.Take({body.AddNode(op_type, 13, {captured})}));
  };
  auto y = builder.AddNodeOfMany("If", 21, {condition}, 1,
                                 {{"then_branch", branch("Neg")}, {"else_branch", branch("Abs")}});
  Compiled compiled(builder.Take({builder.AddNode("Exp", 13, y), y[0]}));
  for (bool chosen : {true, false}) {
    auto outputs = compiled.Run({Floats({2}, {-1, 3}), Bool(chosen)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
    EXPECT_EQ(Values((*outputs)[1]),
              chosen ? (std::vector<float>{2, -6}) : (std::vector<float>{2, 6}));
    EXPECT_FLOAT_EQ(Values((*outputs)[0])[0], std::exp(2.0F));
  }
}

TEST(Pipeline, LoopsOverAValueThatGrowsAndStacksSlices) {
  Builder builder;
  ValueId trips = builder.Input("trips", ElementType::kInt64, {});
  ValueId seed = builder.Input("seed", ElementType::kFloat32, {"N"});
  ValueId step = builder.Floats({5}, {1});
  Builder body;
  body.Input("iteration", ElementType::kInt64, {});
  ValueId keep = body.Input("keep", ElementType::kBool, {});
  ValueId grown = body.Input("grown", ElementType::kFloat32, {"K"});
  ValueId captured = body.AddCapture("step", step);
  ValueId longer = body.AddNode("Concat", 13, {grown, captured}, {{"axis", int64_t{0}}});
  ValueId total = body.AddNode("ReduceSum", 13, {longer}, {{"keepdims", int64_t{0}}});
  ValueId same = body.AddNode("Identity", 21, {keep});
  auto graph = std::make_shared<const Graph>(body.Take({same, longer, total}));
  auto outputs_of =
      builder.AddNodeOfMany("Loop", 21, {trips, graph::kNoValue, seed}, 2, {{"body", graph}});
  Compiled compiled(builder.Take({outputs_of[0], outputs_of[1]}));
  auto outputs = compiled.Run({Integers({}, {3}), Floats({2}, {1, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{1, 2, 5, 5, 5}));
  EXPECT_EQ(Values((*outputs)[1]), (std::vector<float>{8, 13, 18}));
  outputs = compiled.Run({Integers({}, {0}), Floats({2}, {1, 2})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ((*outputs)[1].extents(), Extents{0});
}

TEST(Pipeline, ScansBackwardsAlongAnyAxis) {
  Builder builder;
  ValueId sum = builder.Input("sum", ElementType::kFloat32, {"2"});
  ValueId x = builder.Input("x", ElementType::kFloat32, {"2", "T"});
  Builder body;
  ValueId so_far = body.Input("so_far", ElementType::kFloat32, {"2"});
  ValueId column = body.Input("column", ElementType::kFloat32, {"2"});
  ValueId next = body.AddNode("Add", 14, {so_far, column});
  ValueId shown = body.AddNode("Identity", 21, {next});
  auto graph = std::make_shared<const Graph>(body.Take({next, shown}));
  auto results = builder.AddNodeOfMany("Scan", 21, {sum, x}, 2,
                                       {{"body", graph},
                                        {"num_scan_inputs", int64_t{1}},
                                        {"scan_input_axes", std::vector<int64_t>{1}},
                                        {"scan_input_directions", std::vector<int64_t>{1}},
                                        {"scan_output_axes", std::vector<int64_t>{-1}}});
  Compiled compiled(builder.Take({results[0], results[1]}));
  auto outputs = compiled.Run({Floats({2}, {0, 100}), Floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{6, 115}));
  EXPECT_EQ((*outputs)[1].extents(), (Extents{2, 3}));
  EXPECT_EQ(Values((*outputs)[1]), (std::vector<float>{3, 5, 6, 106, 111, 115}));
}

TEST(Pipeline, FusesAChainOfMapsIntoOneStep) {
  Builder builder;
  ValueId x = builder.Input("x", ElementType::kFloat32, {"3", "4"});
  ValueId y = builder.AddNode("Transpose", 21, {x}, {{"perm", std::vector<int64_t>{1, 0}}});
  ValueId z = builder.AddNode("Relu", 14,
                              {builder.AddNode("Sub", 14, {y, builder.Floats({1, 2, 3}, {3})})});
  Compiled compiled(builder.Take({builder.AddNode("Mul", 14, {z, z})}));
  EXPECT_EQ(compiled.program->steps.size(), 1u) << ToString(*compiled.program);
  std::vector<float> values;
  for (int k = 0; k < 12; ++k) values.push_back(static_cast<float>(k) / 2);
  auto outputs = compiled.Run({Floats({3, 4}, values)});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t column = 0; column < 3; ++column) {
      float base = std::max(
          0.0F, values[static_cast<size_t>(column * 4 + row)] - static_cast<float>(column + 1));
      EXPECT_EQ(Values((*outputs)[0])[static_cast<size_t>(row * 3 + column)], base * base);
    }
  }
}

// A convolution along the first of two axes, and a Relu that has the axes of the model. Sums of
// three neighbours: of 1, 2, 3 and -20, with zeros around.
TEST(Pipeline, RunsAlongTheAxisThatSaysSomething) {
  Builder builder;
  const ValueId x = builder.Input("x", ElementType::kFloat32, {"1", "1", "4", "1"});
  const ValueId sums = builder.AddNode("Conv", 22, {x, builder.Floats({1, 1, 1}, {1, 1, 3, 1})},
                                       {{"pads", std::vector<int64_t>{1, 0, 1, 0}}});
  Compiled compiled(builder.Take({builder.AddNode("Relu", 14, {sums})}));
  ASSERT_NE(compiled.program, nullptr);
  ASSERT_EQ(compiled.program->steps.size(), 1U) << program::ToString(*compiled.program);
  EXPECT_EQ(compiled.program->steps[0].domain, (program::Shape{1, 1, 1, 4}));
  const auto out = compiled.Run({Floats({1, 1, 4, 1}, {1, 2, 3, -20})});
  ASSERT_TRUE(out.ok()) << out.status().Text();
  EXPECT_EQ((*out)[0].extents(), (Extents{1, 1, 4, 1}));
  EXPECT_EQ(Values((*out)[0]), (std::vector<float>{3, 6, 0, 0}));
}

TEST(Pipeline, FoldsAScaleThatStandsBehindUnsqueeze) {
  Builder builder;
  ValueId x = builder.Input("x", ElementType::kFloat32, {"1", "1", "3"});
  ValueId conv = builder.AddNode("Conv", 11, {x, builder.Floats({1, 2}, {2, 1, 1})});
  ValueId scale =
      builder.AddNode("Unsqueeze", 13, {builder.Floats({3, 5}, {2}), builder.Constant({1})});
  ValueId shift =
      builder.AddNode("Unsqueeze", 13, {builder.Floats({-1, 4}, {2}), builder.Constant({1})});
  ValueId y = builder.AddNode("Add", 14, {builder.AddNode("Mul", 14, {conv, scale}), shift});
  Compiled compiled(builder.Take({y}));
  ASSERT_EQ(compiled.program->steps.size(), 1u) << ToString(*compiled.program);
  // The weights took the scale, so that only adding the bias is left.
  EXPECT_EQ(ToString(*compiled.program).find("= mul("), std::string::npos)
      << ToString(*compiled.program);
  auto outputs = compiled.Run({Floats({1, 1, 3}, {1, 2, 3})});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  EXPECT_EQ(Values((*outputs)[0]), (std::vector<float>{2, 5, 8, 14, 24, 34}));
}

TEST(Pipeline, NamesTheNodeItRefuses) {
  Builder builder;
  ValueId x = builder.Input("x", ElementType::kFloat32, {"3"});
  ValueId y = builder.AddNode("Relu", 14, {x});
  Graph graph = builder.Take({builder.AddNode("NoSuchOperator", 1, {y})});
  reference::Device device;
  base::Status verdict = CheckSupport(graph, device);
  EXPECT_EQ(verdict.code(), Code::kUnsupportedOperator);
  EXPECT_NE(verdict.Text().find("NoSuchOperator"), std::string::npos) << verdict.Text();
  std::vector<base::Status> verdicts = CheckSupportOfNodes(graph, device).nodes;
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_TRUE(verdicts[0].ok());
  EXPECT_FALSE(verdicts[1].ok());
}

TEST(Pipeline, TellsWhichNodesTheReferenceComputes) {
  Builder builder;
  ValueId x = builder.Input("x", ElementType::kFloat32, {"2", "3"});
  ValueId shape = builder.Constant({3, 2});
  ValueId viewed = builder.AddNode("Reshape", 14, {x, shape});
  ValueId made = builder.AddNode("Relu", 14, {viewed});
  Graph graph = builder.Take({made});
  reference::Device device;
  const ops::SupportAnswer answer = CheckSupportOfNodes(graph, device);
  ASSERT_EQ(answer.nodes.size(), 2u);
  EXPECT_TRUE(answer.nodes[0].ok() && answer.nodes[1].ok());
  // A view is nothing to compute.
  EXPECT_EQ(answer.is_emulated, (std::vector<bool>{false, true}));
  bool is_emulated = false;
  EXPECT_TRUE(CheckSupport(graph, device, ops::Carrier::kDescriptors, &is_emulated).ok());
  EXPECT_TRUE(is_emulated);
}

TEST(Pipeline, RefusesASequenceThatLeavesTheGraph) {
  Builder builder;
  ValueId x = builder.Input("x", ElementType::kFloat32, {"3"});
  ValueId sequence = builder.AddNode("SequenceConstruct", 11, {x, x});
  ValueId last = builder.AddNode("SequenceAt", 11, {sequence, builder.Constant({1}, true)});
  Graph inside = builder.Take({last});
  Graph outside = inside;
  outside.outputs = {sequence};
  reference::Device device;
  EXPECT_TRUE(CheckSupport(inside, device).ok()) << CheckSupport(inside, device).Text();
  base::Status verdict = CheckSupport(outside, device);
  EXPECT_EQ(verdict.code(), Code::kUnsupportedDatatype) << verdict.Text();
}

}  // namespace
}  // namespace onnxifi::plugin
