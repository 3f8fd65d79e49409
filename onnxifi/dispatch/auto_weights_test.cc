// SPDX-License-Identifier: Apache-2.0
//
// Weights that callers give by descriptors, as published clients do: the descriptor counts,
// whatever the model declares, and a weight may be declared nowhere. The auto device takes what a
// single device takes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <cstdint>
#include <string>
#include <vector>

#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::dispatch {
namespace {

using testing::ElementsAre;

// A model as clients write it, from the text of its graph.
std::vector<std::byte> ParseOldModel(const std::string& graph) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(
      model, ("<ir_version: 3, opset_import: [\"\" : 7]>\n" + graph).c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  const std::string text = model.SerializeAsString();
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

// y = Reshape(x, shape) + w.
constexpr const char* kBody = R"( => (float[2, 3] y) { r = Reshape(x, shape)  y = Add(r, w) })";

// y for x = 1 to 6, by the device with this key.
std::vector<float> Compute(const Library& library, const char* device_key,
                           const std::vector<std::byte>& model) {
  const std::vector<int64_t> shape = {2, 3};
  const std::vector<float> w = {10, 20, 30};
  const Tensor weights[] = {
      {"shape", ONNXIFI_DATATYPE_INT64, {2}, const_cast<int64_t*>(shape.data())},
      {"w", ONNXIFI_DATATYPE_FLOAT32, {3}, const_cast<float*>(w.data())}};
  GraphOptions options;
  options.weights = weights;
  const Backend backend = *library.FindDevice(device_key)->InitBackend();
  const auto graph = backend.InitGraph(model, options);
  EXPECT_TRUE(graph.ok()) << device_key << ": " << graph.error().Text();
  if (!graph.ok()) return {};
  std::vector<float> source = {1, 2, 3, 4, 5, 6};
  std::vector<float> target(6, -99);
  const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {6}, source.data()};
  const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {2, 3}, target.data()};
  EXPECT_TRUE(graph->SetIO({&x, 1}, {&y, 1}));
  EXPECT_TRUE(graph->RunAndWait());
  return target;
}

TEST(AutoWeights, HaveTheTypeOfTheirDescriptor) {
  PlannedSandbox sandbox;
  sandbox.AddMock("one", "{}");
  const Library library = sandbox.Open();
  const auto model =
      ParseOldModel(std::string("graph (float[6] x, float[2] shape, float[3] w)") + kBody);
  for (const char* const key : {"one:0", "auto"}) {
    EXPECT_THAT(Compute(library, key, model), ElementsAre(11, 22, 33, 14, 25, 36)) << key;
  }
}

TEST(AutoWeights, HaveTheTypeOfTheirDescriptorWhereTheModelIsCut) {
  PlannedSandbox sandbox;
  sandbox.AddMock("add", R"({"operators": ["Add"]})")
      .AddMock("reshape", R"({"operators": ["Reshape"]})");
  const auto model =
      ParseOldModel(std::string("graph (float[6] x, float[2] shape, float[3] w)") + kBody);
  EXPECT_THAT(Compute(sandbox.Open(), "auto", model), ElementsAre(11, 22, 33, 14, 25, 36));
}

TEST(AutoWeights, NeedNoDeclaration) {
  PlannedSandbox sandbox;
  sandbox.AddMock("one", "{}");
  const Library library = sandbox.Open();
  const auto model = ParseOldModel(std::string("graph (float[6] x)") + kBody);
  for (const char* const key : {"one:0", "auto"}) {
    EXPECT_THAT(Compute(library, key, model), ElementsAre(11, 22, 33, 14, 25, 36)) << key;
  }
}

TEST(AutoWeights, NeedNoDeclarationWhereTheModelIsCut) {
  PlannedSandbox sandbox;
  sandbox.AddMock("add", R"({"operators": ["Add"]})")
      .AddMock("reshape", R"({"operators": ["Reshape"]})");
  const auto model = ParseOldModel(std::string("graph (float[6] x)") + kBody);
  EXPECT_THAT(Compute(sandbox.Open(), "auto", model), ElementsAre(11, 22, 33, 14, 25, 36));
}

// What is wrong with a weight is told as the device tells it.
TEST(AutoWeights, AreRefusedAsOnASingleDevice) {
  PlannedSandbox sandbox;
  sandbox.AddMock("one", "{}");
  const Library library = sandbox.Open();
  const auto model =
      ParseOldModel(std::string("graph (float[6] x, int64[2] shape, float[3] w)") + kBody);
  const std::vector<float> w = {10, 20, 30};
  const Tensor weights[] = {
      {"nobody", ONNXIFI_DATATYPE_FLOAT32, {3}, const_cast<float*>(w.data())}};
  GraphOptions options;
  options.weights = weights;
  const auto alone = library.FindDevice("one:0")->InitBackend()->InitGraph(model, options);
  const auto chosen = library.FindDevice("auto")->InitBackend()->InitGraph(model, options);
  ASSERT_FALSE(alone.ok());
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().status, alone.error().status) << chosen.error().Text();
}

}  // namespace
}  // namespace onnxifi::dispatch
