// SPDX-License-Identifier: Apache-2.0
//
// Graphs over several devices of which one vanishes, contradicts itself, has too little memory,
// fails or is slow.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/mock/testing/shared_number.h"
#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::partitioned {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The device of each island, in order.
std::string DevicesOf(const Session& session) {
  const auto plan = session.graph->Plan();
  EXPECT_TRUE(plan.ok());
  std::string keys;
  for (const PlanIsland& island : plan->islands)
    keys += (keys.empty() ? "" : " ") + island.device_key;
  return keys;
}

TEST(FailingDevice, LeavesAGraphThatItHasWholeToOthersWhereThatIsWanted) {
  for (const bool fallback : {false, true}) {
    PlannedSandbox sandbox;
    sandbox.AddMock("brief", R"({"vanishes_at_run": 2})").AddMock("other", "{}");
    const Library library = sandbox.Open();
    const Device device = *library.FindDevice("auto");
    const Backend backend = *device.InitBackend();
    GraphOptions options;
    options.fallback = fallback;
    const auto graph = backend.InitGraph(ParseModel(kChain), options);
    ASSERT_TRUE(graph.ok()) << graph.error().Text();
    std::vector<float> source = {1, -2, 3};
    std::vector<float> target(3);
    const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, source.data()};
    const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, target.data()};
    ASSERT_TRUE(graph->SetIO({&x, 1}, {&y, 1}));
    ASSERT_TRUE(graph->RunAndWait());
    EXPECT_EQ(graph->Plan()->islands.at(0).device_key, "brief:0");
    for (int run = 0; run < 2; ++run) {
      target.assign(3, 0);
      EXPECT_EQ(graph->RunAndWait().ok(), fallback);
      if (!fallback) continue;
      EXPECT_THAT(target, ElementsAre(2, 4, 6));
      EXPECT_EQ(graph->Plan()->islands.at(0).device_key, "other:0");
    }
  }
}

TEST(FailingDevice, HasTheGraphAloneWhereOthersDoNotTakeAllOfIt) {
  PlannedSandbox sandbox;
  sandbox.AddMock("brief", R"({"vanishes_at_run": 2})")
      .AddMock("some", R"({"operators": ["Abs"]})");
  const Library library = sandbox.Open();
  const Device device = *library.FindDevice("auto");
  const Backend backend = *device.InitBackend();
  GraphOptions options;
  options.fallback = true;
  const auto graph = backend.InitGraph(ParseModel(kChain), options);
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  // As it was given, not as an island.
  EXPECT_TRUE(graph->Plan()->islands.at(0).nodes.empty());
  std::vector<float> source = {1, -2, 3};
  std::vector<float> target(3);
  const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, source.data()};
  const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, target.data()};
  ASSERT_TRUE(graph->SetIO({&x, 1}, {&y, 1}));
  ASSERT_TRUE(graph->RunAndWait());
  EXPECT_THAT(target, ElementsAre(2, 4, 6));
  EXPECT_FALSE(graph->RunAndWait());
}

TEST(FailingDevice, IsReplacedWhenItVanishesInARun) {
  PlannedSandbox sandbox;
  // Two runs of the graph are four of this one: nothing that was made is made again.
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"], "fails_at_run": 7})")
      .AddMock("neg", R"({"operators": ["Neg", "Sqrt"], "vanishes_at_run": 2})")
      .AddMock("spare", R"({"operators": ["Neg", "Sqrt"]})");
  const Library library = sandbox.Open();
  Session session(library, kChain);
  session.Input("x", {2, 3}, {1, -2, 3, -4, 5, -6});
  session.Output("y", {2, 3});
  const auto other = session.backend.InitGraph(session.model);
  ASSERT_TRUE(session.Bind());
  EXPECT_EQ(RunAndExplain(session).second, "");
  EXPECT_THAT(session.Of("y"), ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_EQ(DevicesOf(session), "abs:0 neg:0 abs:0");
  for (int run = 0; run < 2; ++run) {
    session.data[0]->at(0) = static_cast<float>(7 + run);
    EXPECT_EQ(RunAndExplain(session).second, "");
    EXPECT_EQ(session.Of("y")[0], static_cast<float>(14 + 2 * run));
    EXPECT_EQ(session.Of("y")[5], 12);
    EXPECT_EQ(DevicesOf(session), "abs:0 spare:0 abs:0");
  }
  // Nor does another binding ask it again.
  session.data[0]->at(1) = 100;
  ASSERT_TRUE(session.Bind());
  // Nor is it needed by a graph that finds out only when it is asked for shapes.
  for (const Graph* graph : {static_cast<const Graph*>(&*session.graph), &*other}) {
    const auto shapes = graph->InferOutputShapes(session.inputs);
    ASSERT_TRUE(shapes.ok()) << shapes.error().Text();
    EXPECT_THAT((*shapes)[0].extents, ElementsAre(2, 3));
    EXPECT_EQ(graph->Plan()->islands[1].device_key, "spare:0");
  }
  const auto counters = session.graph->Counters();
  ASSERT_TRUE(counters.ok());
  EXPECT_EQ(counters->runs, 3U);
  EXPECT_EQ(counters->copies, 0U);
}

TEST(FailingDevice, IsReplacedBySeveralWhereNoneTakesAll) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Ceil", "Floor"], "vanishes_at_run": 1})")
      .AddMock("other", R"({"operators": ["Ceil"]})")
      .AddMock("spare", R"({"operators": ["Neg", "Floor"]})");
  const Library library = sandbox.Open();
  Session session(library, R"(
    graph (float[N] x) => (float[N] y, float[N] z) <float[1] w = {10}> {
      a = Abs(x)
      b = Neg(a)
      c = Ceil(b)
      z = Floor(c)
      y = Abs(z)
    })");
  session.Input("x", {2}, {1.5, -2.5});
  session.Output("y", {2});
  session.Output("z", {2});
  ASSERT_TRUE(session.Bind());
  EXPECT_EQ(DevicesOf(session), "abs:0 neg:0 abs:0");
  for (int run = 0; run < 3; ++run) {
    session.data[0]->at(1) = 2.5F + static_cast<float>(run);
    EXPECT_EQ(RunAndExplain(session).second, "");
    EXPECT_THAT(session.Of("z"), ElementsAre(-1, -2 - run));
    EXPECT_THAT(session.Of("y"), ElementsAre(1, 2 + run));
  }
}

TEST(FailingDevice, IsReplacedOnce) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Sqrt"], "vanishes_at_run": 1})")
      .AddMock("spare", R"({"operators": ["Neg", "Sqrt"], "vanishes_at_run": 2})")
      .AddMock("third", R"({"operators": ["Neg", "Sqrt"]})");
  const Library library = sandbox.Open();
  Session session(library, kChain);
  session.Input("x", {1, 3}, {1, -2, 3});
  session.Output("y", {1, 3});
  ASSERT_TRUE(session.Bind());
  EXPECT_EQ(RunAndExplain(session).second, "");
  EXPECT_THAT(session.Of("y"), ElementsAre(2, 4, 6));
  for (int run = 0; run < 2; ++run) {
    const auto [status, sentence] = RunAndExplain(session);
    EXPECT_EQ(status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
    EXPECT_THAT(sentence, AllOf(HasSubstr("The mock device has vanished."),
                                HasSubstr("on device 'spare:0' (node 0, Neg)"),
                                HasSubstr("on device 'neg:0' (node 1, Neg)")));
  }
}

TEST(FailingDevice, EndsRunsWhereNobodyTakesItsNodes) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Sqrt"], "vanishes_at_run": 1})");
  const Library library = sandbox.Open();
  Session session(library, kChain);
  session.Input("x", {1, 3}, {1, -2, 3});
  session.Output("y", {1, 3});
  ASSERT_TRUE(session.Bind());
  for (int run = 0; run < 2; ++run) {
    const auto [status, sentence] = RunAndExplain(session);
    EXPECT_EQ(status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
    EXPECT_THAT(sentence, AllOf(HasSubstr("The mock device has vanished."),
                                HasSubstr("no other device takes these nodes"),
                                HasSubstr("on device 'neg:0'")));
  }
  const Outcome bound = session.Bind();
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
}

// What a device says of its outputs, before and after a run, that is not so.
class Misstating : public testing::TestWithParam<const char*> {};

TEST_P(Misstating, IsReplaced) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", std::string(R"({"operators": ["Neg", "Sqrt"], "misstates": [")") +
                          GetParam() + R"("]})")
      .AddMock("spare", R"({"operators": ["Neg", "Sqrt"]})");
  const Library library = sandbox.Open();
  // Extents as numbers: those of which only a symbol tells are not known to be others.
  Session session(library, R"(
    graph (float[2, 3] x) => (float[2, 3] y) { a = Abs(x)  b = Neg(a)  y = Sub(a, b) })");
  session.Input("x", {2, 3}, {1, -2, 3, -4, 5, -6});
  session.Output("y", {2, 3});
  ASSERT_TRUE(session.Bind());
  EXPECT_EQ(RunAndExplain(session).second, "");
  EXPECT_EQ(DevicesOf(session), "abs:0 spare:0 abs:0");
  EXPECT_THAT(session.Of("y"), ElementsAre(2, 4, 6, 8, 10, 12));
}

INSTANTIATE_TEST_SUITE_P(FailingDevice, Misstating,
                         testing::Values("shapes", "types", "run shapes", "run types"));

class MisstatingOfLateShapes : public testing::TestWithParam<const char*> {};

TEST_P(MisstatingOfLateShapes, IsReplaced) {
  PlannedSandbox sandbox;
  sandbox
      .AddMock("find", std::string(R"({"operators": ["NonZero", "Cast"], "misstates": [")") +
                           GetParam() + R"("]})")
      .AddMock("neg", R"({"operators": ["Neg", "Abs"]})")
      .AddMock("spare", R"({"operators": ["NonZero", "Cast"]})");
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
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(RunAndExplain(session).second, "");
    EXPECT_EQ(DevicesOf(session), "neg:0 spare:0 neg:0");
    EXPECT_THAT(std::vector<float>(session.Of("y").begin(), session.Of("y").begin() + 3),
                ElementsAre(1, 3, 4));
  }
}

INSTANTIATE_TEST_SUITE_P(FailingDevice, MisstatingOfLateShapes,
                         testing::Values("shapes", "types", "run shapes", "run types", "kept"));

TEST(FailingDevice, IsAskedAgainWhenLessMemoryIsNeeded) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs"]})")
      .AddMock("little", R"({"operators": ["MatMul"], "memory_bytes": 1024})")
      .AddMock("spare", R"({"operators": ["MatMul"]})");
  const Library library = sandbox.Open();
  const std::string model = R"(
    graph (float[N, 4] x) => (float[N, 4] y)
      <float[4, 4] w = {0, 1, 0, 0,  0, 0, 1, 0,  0, 0, 0, 1,  1, 0, 0, 0}> {
      a = Abs(x)
      t = MatMul(a, w)
      u = MatMul(t, w)
      y = Abs(u)
    })";
  Session few(library, model);
  few.Input("x", {2, 4}, {1, -2, 3, -4, 5, -6, 7, -8});
  few.Output("y", {2, 4});
  ASSERT_TRUE(few.Bind());
  EXPECT_EQ(RunAndExplain(few).second, "");
  EXPECT_EQ(DevicesOf(few), "abs:0 little:0 abs:0");
  EXPECT_THAT(few.Of("y"), ElementsAre(3, 4, 1, 2, 7, 8, 5, 6));
  // The same graph with more rows than the device has memory for, and again with few.
  std::vector<float> many(256 * 4, -1);
  std::vector<float> result(256 * 4, -99);
  const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {256, 4}, many.data()};
  const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {256, 4}, result.data()};
  const Outcome bound = few.graph->SetIO({&x, 1}, {&y, 1});
  ASSERT_TRUE(bound.ok()) << bound.error().Text();
  EXPECT_EQ(RunAndExplain(few).second, "");
  EXPECT_EQ(DevicesOf(few), "abs:0 spare:0 abs:0");
  EXPECT_THAT(result, testing::Each(1));
  ASSERT_TRUE(few.Bind());
  few.data[0]->at(0) = 9;
  EXPECT_EQ(RunAndExplain(few).second, "");
  EXPECT_EQ(DevicesOf(few), "abs:0 little:0 abs:0");
  EXPECT_EQ(few.Of("y")[2], 9);
}

// A device that claims all of a graph and has memory for a part of it, where no other has it whole.
TEST(FullDevice, HasThePartThatItHasMemoryFor) {
  PlannedSandbox sandbox;
  sandbox.AddMock("full", R"({"memory_bytes": 32})")
      .AddMock("matrices", R"({"operators": ["MatMul"]})");
  const Library library = sandbox.Open();
  Session session(library, R"(
    graph (float[N, 3] x) => (float[N, 3] y) <float[3, 3] w = {0, 1, 0,  0, 0, 1,  1, 0, 0}> {
      a = Abs(x)
      b = MatMul(a, w)
      y = Neg(b)
    })");
  session.Input("x", {1, 3}, {1, -2, 3});
  session.Output("y", {1, 3});
  ASSERT_TRUE(session.Bind());
  EXPECT_EQ(RunAndExplain(session).second, "");
  EXPECT_EQ(DevicesOf(session), "full:0 matrices:0 full:0");
  EXPECT_THAT(session.Of("y"), ElementsAre(-3, -1, -2));
}

TEST(FailingDevice, IsOfNoMatterToGraphsOnOthers) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Sqrt"], "fails_at_run": 2})")
      .AddMock("round", R"({"operators": ["Ceil"]})");
  const Library library = sandbox.Open();
  Session failing(library, kChain);
  failing.Input("x", {1, 3}, {1, -2, 3});
  failing.Output("y", {1, 3});
  ASSERT_TRUE(failing.Bind());
  EXPECT_EQ(RunAndExplain(failing).second, "");
  // In the same backend.
  const auto other = failing.backend.InitGraph(ParseModel(R"(
    graph (float[3] x) => (float[3] y) { a = Abs(x)  b = Ceil(a)  y = Sub(b, a) })"));
  ASSERT_TRUE(other.ok()) << other.error().Text();
  std::vector<float> source = {0.5, -1.25, 2};
  std::vector<float> target(3);
  const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {3}, source.data()};
  const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {3}, target.data()};
  ASSERT_TRUE(other->SetIO({&x, 1}, {&y, 1}));
  for (int run = 0; run < 3; ++run) {
    const auto [status, sentence] = RunAndExplain(failing);
    EXPECT_EQ(status, ONNXIFI_STATUS_INTERNAL_ERROR);
    EXPECT_THAT(sentence, AllOf(HasSubstr("of the mock device fails"), Not(HasSubstr("takes"))));
    target.assign(3, -99);
    EXPECT_TRUE(other->RunAndWait());
    EXPECT_THAT(target, ElementsAre(0.5, 0.75, 0));
  }
}

TEST(SlowDevice, HoldsUpNoGraphOnOthers) {
  PlannedSandbox sandbox;
  const auto gate = *mock::SharedNumber::Open(sandbox.folder() / "gate");
  constexpr int64_t kNotByThemselves = 1000;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Sqrt"], "gate_opens_at": )" +
                          std::to_string(kNotByThemselves) + R"(, "gate": ")" +
                          (sandbox.folder() / "gate").string() + "\"}")
      .AddMock("round", R"({"operators": ["Ceil"]})");
  const Library library = sandbox.Open();
  Session slow(library, kChain);
  // More runs on the slow device than there are devices, each of a graph of its own.
  constexpr int kSlowGraphs = 4;
  std::vector<std::unique_ptr<Graph>> graphs;
  std::vector<std::vector<float>> data(2 * kSlowGraphs, std::vector<float>(3, 1));
  std::vector<Event> ends;
  const auto input = slow.backend.NewEvent();
  ASSERT_TRUE(input->Signal());
  for (int k = 0; k < kSlowGraphs; ++k) {
    auto graph = slow.backend.InitGraph(slow.model);
    ASSERT_TRUE(graph.ok());
    graphs.push_back(std::make_unique<Graph>(*std::move(graph)));
    const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, data[2 * k].data()};
    const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {1, 3}, data[2 * k + 1].data()};
    ASSERT_TRUE(graphs.back()->SetIO({&x, 1}, {&y, 1}));
    auto end = graphs.back()->Run(*input);
    ASSERT_TRUE(end.ok());
    ends.push_back(*std::move(end));
  }
  const auto other = slow.backend.InitGraph(ParseModel(R"(
    graph (float[3] x) => (float[3] y) { a = Abs(x)  b = Ceil(a)  y = Sub(b, a) })"));
  ASSERT_TRUE(other.ok()) << other.error().Text();
  std::vector<float> source = {0.5, -1.25, 2};
  std::vector<float> target(3);
  const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {3}, source.data()};
  const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {3}, target.data()};
  ASSERT_TRUE(other->SetIO({&x, 1}, {&y, 1}));
  ASSERT_TRUE(other->RunAndWait());
  EXPECT_THAT(target, ElementsAre(0.5, 0.75, 0));
  for (const Event& end : ends) EXPECT_FALSE(*end.IsSignalled());
  gate->Add(kNotByThemselves);
  for (const Event& end : ends) EXPECT_TRUE(end.Wait());
}

}  // namespace
}  // namespace onnxifi::partitioned
