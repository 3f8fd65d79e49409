// SPDX-License-Identifier: Apache-2.0
//
// Graphs on several devices: what the auto device makes of models that no device runs alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::partitioned {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(PlannedGraph, RunsOnDevicesThatEachClaimAPart) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Sqrt"]})");
  const Library library = sandbox.Open();
  Session session(library, kChain);
  EXPECT_TRUE(session.device.CheckCompatibility(session.model).ok());
  const auto explanation = session.device.Explain(session.model);
  ASSERT_TRUE(explanation.ok());
  ASSERT_EQ(explanation->nodes.size(), 5U);
  for (const auto& node : explanation->nodes) EXPECT_EQ(node.status, ONNXIFI_STATUS_SUCCESS);
  session.Input("x", {2, 3}, {1, -2, 3, -4, 5, -6});
  session.Output("y", {2, 3});
  ASSERT_TRUE(session.Run());
  EXPECT_THAT(session.Of("y"), ElementsAre(2, 4, 6, 8, 10, 12));
  // Again, with other values in the same memory.
  session.data[0]->at(4) = -50;
  ASSERT_TRUE(session.graph->RunAndWait());
  EXPECT_THAT(session.Of("y"), ElementsAre(2, 4, 6, 8, 100, 12));
}

TEST(PlannedGraph, TakesAnyNumberForASymbol) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Sqrt"]})");
  const Library library = sandbox.Open();
  for (const uint64_t rows : {1, 4, 0}) {
    Session session(library, kChain);
    session.Input("x", {rows, 3}, std::vector<float>(rows * 3, -2));
    session.Output("y", {rows, 3});
    ASSERT_TRUE(session.Run());
    EXPECT_THAT(session.Of("y"), testing::Each(4));
    Tensor output = session.outputs[0];
    output.shape = {rows, 4};
    const Outcome refused = session.graph->SetIO(session.inputs, {&output, 1});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().status, ONNXIFI_STATUS_MISMATCHING_SHAPE);
  }
}

TEST(PlannedGraph, RefusesWhatNobodyRunsWithTheReasonsOfAll) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg"]})");
  const Library library = sandbox.Open();
  const Device device = *library.FindDevice("auto");
  const Outcome claim = device.CheckCompatibility(ParseModel(kChain));
  // Nobody reads what Sqrt makes, and yet the model says that it is computed.
  ASSERT_TRUE(claim.ok()) << claim.error().Text();
  const auto model = ParseModel(R"(
    graph (float[2] x) => (float[2] y) { a = Abs(x)  b = Exp(a)  y = Neg(b) })");
  const Outcome refused = device.CheckCompatibility(model);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_THAT(refused.error().Text(),
              AllOf(HasSubstr("Nor do several together: No device runs node 1 (Exp)."),
                    HasSubstr("abs:0 and neg:0, node 1 (Exp): Operator 'Exp' is not among")));
  const Backend backend = *device.InitBackend();
  const auto graph = backend.InitGraph(model);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_EQ(graph.error().Text(), refused.error().Text());
}

TEST(PlannedGraph, GivesToOthersWhatADeviceRefusesAfterAll) {
  PlannedSandbox sandbox;
  sandbox.AddMock("a_liar", R"({"refused": ["Sub"], "lies": ["Neg"]})")
      .AddMock("honest", R"({"operators": ["Neg", "Sub"]})");
  const Library library = sandbox.Open();
  Session session(library, kChain);
  session.Input("x", {1, 3}, {1, -2, 3});
  session.Output("y", {1, 3});
  ASSERT_TRUE(session.Run());
  EXPECT_THAT(session.Of("y"), ElementsAre(2, 4, 6));
}

TEST(PlannedGraph, SaysWhyWhenOnlyLiarsAreLeft) {
  PlannedSandbox sandbox;
  sandbox.AddMock("liar", R"({"refused": ["Abs"], "lies": ["Neg"]})")
      .AddMock("other", R"({"operators": ["Abs"]})");
  const Library library = sandbox.Open();
  const Device device = *library.FindDevice("auto");
  const Backend backend = *device.InitBackend();
  const auto graph = backend.InitGraph(
      ParseModel("graph (float[2] x) => (float[2] y) { a = Abs(x)  y = Neg(a) }"));
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_THAT(graph.error().Text(), HasSubstr("claimed, but cannot be compiled"));
}

TEST(PlannedGraph, EndsARunWithTheErrorOfAnIsland) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Sqrt"], "fails_at_run": 2})");
  const Library library = sandbox.Open();
  Session session(library, kChain);
  session.Input("x", {1, 3}, {1, -2, 3});
  session.Output("y", {1, 3});
  ASSERT_TRUE(session.Run());
  const auto [status, message] = RunAndExplain(session);
  EXPECT_EQ(status, ONNXIFI_STATUS_INTERNAL_ERROR);
  EXPECT_THAT(message, AllOf(HasSubstr("Run 2 of the mock device fails"),
                             HasSubstr("on device 'neg:0' (node 1, Neg)")));
}

TEST(PlannedGraph, ReadsInputsBeforeAnIslandWritesOverThem) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg"]})");
  const Library library = sandbox.Open();
  Session session(library, R"(
    graph (float[3] x, float[3] y) => (float[3] u, float[3] v) { u = Neg(x)  v = Sub(y, u) })");
  session.Input("x", {3}, {1, 2, 3});
  session.Input("y", {3}, {10, 20, 30});
  session.Output("u", {3});
  session.Output("v", {3});
  // Each has the memory of the other one's input.
  session.outputs[0].data = session.inputs[1].data;
  session.outputs[1].data = session.inputs[0].data;
  ASSERT_TRUE(session.Run());
  EXPECT_THAT(session.Of("y"), ElementsAre(-1, -2, -3));
  EXPECT_THAT(session.Of("x"), ElementsAre(11, 22, 33));
  ASSERT_TRUE(session.graph->RunAndWait());
  EXPECT_THAT(session.Of("y"), ElementsAre(-11, -22, -33));
  EXPECT_THAT(session.Of("x"), ElementsAre(10, 20, 30));
}

TEST(PlannedGraph, RunsIndependentIslandsAtTheSameTime) {
  PlannedSandbox sandbox;
  // Neither goes on before the other has begun.
  const std::string meeting =
      R"("gate_opens_at": 2, "gate": ")" + (sandbox.folder() / "gate").string() + "\"}";
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Add"]})")
      .AddMock("neg", R"({"operators": ["Neg"], )" + meeting)
      .AddMock("ceil", R"({"operators": ["Ceil"], )" + meeting);
  const Library library = sandbox.Open();
  Session session(library, R"(
    graph (float[2] x) => (float[2] y) {
      a = Abs(x)  b = Neg(x)  c = Ceil(x)  d = Add(b, c)  y = Add(d, a)
    })");
  session.Input("x", {2}, {1.5, -2.5});
  session.Output("y", {2});
  const Outcome outcome = session.Run();
  ASSERT_TRUE(outcome.ok()) << outcome.error().Text();
  EXPECT_THAT(session.Of("y"), ElementsAre(2, 3));
}

TEST(PlannedGraph, CarriesValuesWhoseShapeOnlyDataTell) {
  PlannedSandbox sandbox;
  sandbox.AddMock("find", R"({"operators": ["NonZero", "Cast"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Abs"]})");
  const Library library = sandbox.Open();
  Session session(library, R"(
    graph (float[6] x) => (float[1, M] y) {
      a = Abs(x)
      i = NonZero(a)
      f = Cast<to = 1>(i)
      n = Neg(f)
      y = Abs(n)
    })");
  session.Input("x", {6}, {0, -1, 0, 2, 3, 0});
  session.Output("y", {1, 6});
  ASSERT_TRUE(session.Bind());
  const auto run = [&] {
    const auto input = session.backend.NewEvent();
    auto output = session.graph->Run(*input);
    EXPECT_TRUE(input->Signal());
    const Outcome outcome = output->Wait();
    EXPECT_TRUE(outcome.ok()) << outcome.error().Text();
    return output->OutputShapes();
  };
  auto shapes = run();
  ASSERT_TRUE(shapes.ok());
  EXPECT_THAT((*shapes)[0].extents, ElementsAre(1, 3));
  EXPECT_THAT(std::vector<float>(session.Of("y").begin(), session.Of("y").begin() + 3),
              ElementsAre(1, 3, 4));
  *session.data[0] = {5, 0, 0, 0, 0, 6};
  shapes = run();
  EXPECT_THAT((*shapes)[0].extents, ElementsAre(1, 2));
  EXPECT_THAT(std::vector<float>(session.Of("y").begin(), session.Of("y").begin() + 2),
              ElementsAre(0, 5));
}

TEST(PlannedGraph, GivesSubgraphsWhatTheyCapture) {
  PlannedSandbox sandbox;
  sandbox.AddMock("branch", R"({"operators": ["If", "Greater", "Squeeze"]})")
      .AddMock("abs", R"({"operators": ["Abs", "Neg"]})");
  const Library library = sandbox.Open();
  Session session(library, R"(
    graph (float[2] x, float[1] k) => (float[2] y, float[2] z) <float[2] w = {10, 20}> {
      t = Abs(x)
      u = Neg(t)
      zero = Constant<value = float {0}>()
      row = Greater(k, zero)
      c = Squeeze(row)
      z = If (c) <
        then_branch = then_graph () => (float[2] a) { a = Add(t, w) },
        else_branch = else_graph () => (float[2] b) { b = Add(u, w) }
      >
      y = Neg(z)
    })");
  session.Input("x", {2}, {1, -2});
  session.Input("k", {1}, {3});
  session.Output("y", {2});
  session.Output("z", {2});
  ASSERT_TRUE(session.Run());
  EXPECT_THAT(session.Of("z"), ElementsAre(11, 22));
  EXPECT_THAT(session.Of("y"), ElementsAre(-11, -22));
  *session.data[1] = {-3};
  ASSERT_TRUE(session.graph->RunAndWait());
  EXPECT_THAT(session.Of("z"), ElementsAre(9, 18));
}

TEST(PlannedGraph, TakesPartOfAPlainPlugin) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("plain", R"({"operators": ["Neg", "Sqrt"]})", ONNXIFI_TEST_PLAIN_MOCK);
  const Library library = sandbox.Open();
  Session session(library, R"(
    graph (float[2] x) => (float[2] y) { a = Abs(x)  b = Neg(a)  y = Sub(a, b) })");
  session.Input("x", {2}, {1, -2});
  session.Output("y", {2});
  ASSERT_TRUE(session.Run());
  EXPECT_THAT(session.Of("y"), ElementsAre(2, 4));
  const auto counters = session.graph->Counters();
  ASSERT_TRUE(counters.ok());
  EXPECT_EQ(counters->runs, 1U);
  EXPECT_EQ(counters->copies, ~uint64_t{0});
}

TEST(PlannedGraph, WaitsForItsInputsAndKeepsTheOrderOfRuns) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Sqrt"], "step_ms": {"Neg": 20}})");
  const Library library = sandbox.Open();
  Session session(library, kChain);
  session.Input("x", {1, 3}, {0, 0, 0});
  session.Output("y", {1, 3});
  ASSERT_TRUE(session.Bind());
  const auto first_input = session.backend.NewEvent();
  const auto second_input = session.backend.NewEvent();
  const auto first = session.graph->Run(*first_input);
  const auto second = session.graph->Run(*second_input);
  ASSERT_TRUE(second_input->Signal());
  EXPECT_FALSE(*first->IsSignalled());
  EXPECT_FALSE(*second->IsSignalled());
  *session.data[0] = {1, -2, 3};
  ASSERT_TRUE(first_input->Signal());
  ASSERT_TRUE(second->Wait());
  EXPECT_TRUE(*first->IsSignalled());
  EXPECT_THAT(session.Of("y"), ElementsAre(2, 4, 6));
  // A run may wait for an earlier one; an event that is released unsignalled fails it.
  const auto third = session.graph->Run(*second);
  ASSERT_TRUE(third.ok());
  EXPECT_TRUE(third->Wait());
  auto never = session.backend.NewEvent();
  const auto fourth = session.graph->Run(*never);
  { const Event released = *std::move(never); }
  EXPECT_FALSE(fourth->Wait().ok());
}

// The chain with a device for each of its nodes; "" for none.
std::vector<std::byte> NameDevices(const std::vector<std::string>& keys) {
  const std::vector<std::byte> chain = ParseModel(kChain);
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromArray(chain.data(), static_cast<int>(chain.size())));
  for (size_t node = 0; node < keys.size(); ++node) {
    if (keys[node].empty()) continue;
    auto& entry =
        *model.mutable_graph()->mutable_node(static_cast<int>(node))->add_metadata_props();
    entry.set_key("onnxifi.device");
    entry.set_value(keys[node]);
  }
  const std::string text = model.SerializeAsString();
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

TEST(PlannedGraph, RunsNodesWhereTheModelPlacesThem) {
  PlannedSandbox sandbox;
  sandbox.AddMock("a", "{}").AddMock("b", "{}");
  const Library library = sandbox.Open();
  const Device device = *library.FindDevice("auto");
  const Backend backend = *device.InitBackend();
  const auto devices_of = [&](const std::vector<std::string>& keys) {
    const std::vector<std::byte> model = NameDevices(keys);
    EXPECT_TRUE(device.CheckCompatibility(model).ok());
    const auto explanation = device.Explain(model);
    EXPECT_EQ(explanation->nodes.size(), 5U);
    const auto graph = backend.InitGraph(model);
    EXPECT_TRUE(graph.ok()) << graph.error().Text();
    std::vector<float> source = {1, -2, 3};
    std::vector<float> target(3);
    const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, source.data()};
    const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, target.data()};
    EXPECT_TRUE(graph->SetIO({&x, 1}, {&y, 1}));
    EXPECT_TRUE(graph->RunAndWait());
    EXPECT_THAT(target, ElementsAre(2, 4, 6));
    std::string found;
    const auto plan = graph->Plan();
    for (const PlanIsland& island : plan->islands) {
      found += (found.empty() ? "" : " ") + island.device_key + ":";
      for (const uint32_t node : island.nodes) found += std::to_string(node);
    }
    return found;
  };
  EXPECT_EQ(devices_of({}), "a:0:");
  EXPECT_EQ(devices_of({"b:0"}), "b:0:0 a:0:134");
  EXPECT_EQ(devices_of({"a:0", "b:0", "", "a:0", "b:0"}), "a:0:03 b:0:14");
}

TEST(PlannedGraph, RefusesAPlaceThatThereIsNotOrThatRefuses) {
  PlannedSandbox sandbox;
  sandbox.AddMock("a", "{}").AddMock("b", R"({"refused": ["Neg"]})");
  const Library library = sandbox.Open();
  const Device device = *library.FindDevice("auto");
  const Outcome nowhere = device.CheckCompatibility(NameDevices({"c:0"}));
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_THAT(nowhere.error().Text(),
              AllOf(HasSubstr("No device runs node 0 (Abs)."),
                    HasSubstr("a:0 and b:0, node 0 (Abs): The model places the node on device "
                              "'c:0'.")));
  const std::vector<std::byte> refused = NameDevices({"", "b:0"});
  const auto explanation = device.Explain(refused);
  ASSERT_TRUE(explanation.ok());
  const Backend backend = *device.InitBackend();
  const auto graph = backend.InitGraph(refused);
  ASSERT_FALSE(graph.ok());
  EXPECT_THAT(graph.error().Text(),
              AllOf(HasSubstr("a:0, node 1 (Neg): The model places the node on device 'b:0'."),
                    HasSubstr("b:0, node 1 (Neg): Operator 'Neg' is not among")));
}

TEST(PlannedGraph, TellsWhatItsIslandsDid) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Sqrt"]})");
  const Library library = sandbox.Open();
  const auto model = ParseModel(kChain);
  const Device device = *library.FindDevice("auto");
  const Backend backend = *device.InitBackend();
  GraphOptions options;
  options.profile = true;
  const auto graph = backend.InitGraph(model, options);
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  std::vector<float> source = {1, -2, 3};
  std::vector<float> target(3);
  const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, source.data()};
  const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, target.data()};
  ASSERT_TRUE(graph->SetIO({&x, 1}, {&y, 1}));
  ASSERT_FALSE(graph->Profile().ok());
  ASSERT_TRUE(graph->RunAndWait());
  ASSERT_TRUE(graph->RunAndWait());
  const auto counters = graph->Counters();
  ASSERT_TRUE(counters.ok());
  EXPECT_EQ(counters->runs, 2U);
  EXPECT_EQ(counters->lowerings, 3U);
  EXPECT_EQ(counters->copies, 0U);
  const auto steps = graph->Profile();
  ASSERT_TRUE(steps.ok()) << steps.error().Text();
  std::vector<int64_t> nodes;
  for (const StepRecord& step : *steps) nodes.push_back(step.node_index);
  EXPECT_THAT(nodes, testing::Contains(1));
  EXPECT_THAT(nodes, testing::Contains(4));
  EXPECT_TRUE(graph->LoadProfile().ok());
  const auto plan = graph->Plan();
  ASSERT_TRUE(plan.ok()) << plan.error().Text();
  ASSERT_EQ(plan->islands.size(), 3U);
  EXPECT_EQ(plan->islands[0].device_key, "abs:0");
  EXPECT_THAT(plan->islands[0].nodes, ElementsAre(0, 3));
  EXPECT_EQ(plan->islands[1].device_key, "neg:0");
  EXPECT_THAT(plan->islands[1].after, ElementsAre(0));
  EXPECT_THAT(plan->islands[2].after, ElementsAre(0, 1));
  EXPECT_GT(plan->islands[2].measured_start_ns, plan->islands[1].measured_start_ns);
  EXPECT_GT(plan->islands[2].measured_duration_ns, 0U);
  std::vector<std::string> cuts;
  for (const PlanCut& cut : plan->cuts) {
    cuts.push_back(cut.value_name + ":" + std::to_string(cut.from_island) + ">" +
                   std::to_string(cut.to_island));
  }
  EXPECT_THAT(cuts, testing::UnorderedElementsAre("x:-1>0", "a:0>1", "d:0>2", "b:1>2", "y:2>-1"));
  const auto shapes = graph->InferOutputShapes({&x, 1});
  ASSERT_TRUE(shapes.ok());
  EXPECT_THAT((*shapes)[0].extents, ElementsAre(1, 3));
}

}  // namespace
}  // namespace onnxifi::partitioned
