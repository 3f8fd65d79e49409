// SPDX-License-Identifier: Apache-2.0
//
// Plugins of plain ONNXIFI 1.0 behind libonnxifi: callers ask for the shapes of outputs as of any
// other device, and get what the model says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <string>
#include <vector>

#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::plugins {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What onnxifi_run does with a model of one input and one output: asks for the output's shape,
// binds that many elements and runs.
std::vector<float> RunUnbound(const Library& library, const std::string& key,
                              const std::string& text, std::vector<float> x) {
  const Device device = *library.FindDevice(key);
  const Backend backend = *device.InitBackend();
  const auto graph = backend.InitGraph(ParseModel(text));
  EXPECT_TRUE(graph.ok()) << graph.error().Text();
  const Tensor input{"x", ONNXIFI_DATATYPE_FLOAT32, {x.size()}, x.data()};
  const auto shapes = graph->InferOutputShapes({&input, 1});
  EXPECT_TRUE(shapes.ok()) << shapes.error().Text();
  if (!shapes.ok() || shapes->size() != 1 || shapes->front().extents.size() != 1) return {};
  const OutputShape& shape = shapes->front();
  EXPECT_EQ(shape.name, "y");
  EXPECT_EQ(shape.data_type, static_cast<onnxEnum>(ONNXIFI_DATATYPE_FLOAT32));
  const auto count = static_cast<uint64_t>(shape.extents[0]);
  std::vector<float> y(count, -99);
  const Tensor output{"y", ONNXIFI_DATATYPE_FLOAT32, {count}, y.data()};
  EXPECT_TRUE(graph->SetIO({&input, 1}, {&output, 1}));
  EXPECT_TRUE(graph->RunAndWait());
  return y;
}

TEST(PlainDevice, TellsTheShapesThatTheModelDeclares) {
  PlannedSandbox sandbox;
  sandbox.Add("plain.so", "libonnxifi-plain.so");
  EXPECT_THAT(RunUnbound(sandbox.Open(), "plain:0",
                         "graph (float[3] x) => (float[3] y) { y = Add(x, x) }", {1, 2, 3}),
              ElementsAre(2, 4, 6));
}

TEST(PlainDevice, TellsTheShapesThatFollowFromTheInputs) {
  PlannedSandbox sandbox;
  sandbox.Add("plain.so", "libonnxifi-plain.so");
  const Library library = sandbox.Open();
  constexpr const char* kModel = "graph (float[N] x) => (float[M] y) { y = Add(x, x) }";
  EXPECT_THAT(RunUnbound(library, "plain:0", kModel, {1, 2}), ElementsAre(2, 4));
  EXPECT_THAT(RunUnbound(library, "plain:0", kModel, {1, 2, 3, 4}), ElementsAre(2, 4, 6, 8));
}

TEST(PlainDevice, LeavesOpenWhatOnlyARunTells) {
  PlannedSandbox sandbox;
  sandbox.Add("plain.so", "libonnxifi-plain.so");
  const Library library = sandbox.Open();
  const Backend backend = *library.FindDevice("plain:0")->InitBackend();
  const auto graph =
      backend.InitGraph(ParseModel("graph (float[2] x) => (int64[1, K] y) { y = NonZero(x) }"));
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  float x[2] = {};
  const Tensor input{"x", ONNXIFI_DATATYPE_FLOAT32, {2}, x};
  const auto shapes = graph->InferOutputShapes({&input, 1});
  ASSERT_TRUE(shapes.ok()) << shapes.error().Text();
  EXPECT_THAT(shapes->at(0).extents, ElementsAre(1, ONNXIFI_SDK_UNKNOWN));
}

TEST(PlainDevice, SaysWhyTheShapesOfSomethingElseThanAModelAreUnknown) {
  PlannedSandbox sandbox;
  sandbox.Add("plain.so", "libonnxifi-plain.so");
  const Library library = sandbox.Open();
  const Backend backend = *library.FindDevice("plain:0")->InitBackend();
  const std::vector<std::byte> no_model(4, std::byte{0xFF});
  const auto graph = backend.InitGraph(no_model);
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  const auto shapes = graph->InferOutputShapes({});
  ASSERT_FALSE(shapes.ok());
  EXPECT_THAT(shapes.error().Text(),
              HasSubstr("plugin 'plain' does not offer onnxInferOutputShapes"));
}

// Exp is the mock's, all else the plain plugin's.
TEST(PlainDevice, TakesNodesOfUnknownExtentsAsOneAmongSeveral) {
  PlannedSandbox sandbox;
  sandbox.AddMock("exp", R"({"operators": ["Exp"]})").Add("plain.so", "libonnxifi-plain.so");
  const Library library = sandbox.Open();
  constexpr const char* kModel =
      "graph (float[N] x) => (float[M] y) { a = Add(x, x)  b = Exp(a)  y = Add(b, b) }";
  EXPECT_THAT(RunUnbound(library, "auto", kModel, {0, 1}),
              testing::Pointwise(testing::FloatNear(1e-5F), {2.0F, 14.778112F}));
  EXPECT_THAT(RunUnbound(library, "auto", kModel, {0, 0, 1}),
              testing::Pointwise(testing::FloatNear(1e-5F), {2.0F, 2.0F, 14.778112F}));
}

}  // namespace
}  // namespace onnxifi::plugins
