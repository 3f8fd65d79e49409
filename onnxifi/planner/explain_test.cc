// SPDX-License-Identifier: Apache-2.0
//
// Explain: what callers are told of every node on every device, by plugins of the SDK, by a plugin
// written against the standard header alone, and of models that are none.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::planner {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Node 0 is a constant, 2 a shape that the model fixes, 6 nobody reads.
constexpr const char* kModel = R"(
  graph (float[2, 3] x) => (float[2, 3] y, int64[2] s) {
    k = Constant<value = float[1] {2.5}>()
    a = Exp(x)
    s0 = Shape(x)
    b = Mul(a, k)
    c = Exp(b)
    s = Identity(s0)
    unread = Neg(c)
    y = Abs(c)
  })";

// By node: "given", "yes", or the numbers of its reasons.
std::map<uint32_t, std::string> Told(const DeviceAnswer& device) {
  std::map<uint32_t, std::string> told;
  for (const NodeAnswer& node : device.nodes) {
    std::string& text = told[node.verdict.node_index];
    if (node.role == ONNXIFI_SDK_NODE_GIVEN) {
      EXPECT_EQ(node.verdict.status, ONNXIFI_STATUS_SUCCESS);
      text = "given";
    } else if (node.verdict.status == ONNXIFI_STATUS_SUCCESS) {
      EXPECT_EQ(node.reason, 0U);
      EXPECT_EQ(node.verdict.sentence, "");
      text = "yes";
    } else {
      text += std::to_string(node.reason);
    }
  }
  return told;
}

const NodeVerdict& VerdictOf(const DeviceAnswer& device, uint32_t node) {
  for (const NodeAnswer& answer : device.nodes) {
    if (answer.verdict.node_index == node) return answer.verdict;
  }
  ADD_FAILURE() << "Node " << node << " is not told of.";
  return device.nodes.at(0).verdict;
}

std::vector<DeviceAnswer> Ask(const Library& library, std::span<const std::byte> model) {
  auto answers = library.ExplainOnDevices(model);
  EXPECT_TRUE(answers.ok()) << answers.error().Text();
  return answers ? *std::move(answers) : std::vector<DeviceAnswer>();
}

TEST(Explain, TellsOfEveryNodeOnEveryDeviceInOneCall) {
  PlannedSandbox sandbox;
  sandbox.AddMock("all", "{}").AddMock("some", R"({"operators": ["Abs", "Mul"]})");
  sandbox.Add("plain.so", "libonnxifi-plain.so");
  const auto answers = Ask(sandbox.Open(), ParseModel(kModel));
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].device_key + " " + answers[1].device_key + " " + answers[2].device_key,
            "all:0 plain:0 some:0");
  const DeviceAnswer& all = answers[0];
  EXPECT_TRUE(all.runs_model());
  EXPECT_EQ(all.nodes_told, unsigned{ONNXIFI_SDK_NODES_EXPLAINED});
  EXPECT_EQ(Told(all), (std::map<uint32_t, std::string>{{0, "given"},
                                                        {1, "yes"},
                                                        {2, "given"},
                                                        {3, "yes"},
                                                        {4, "yes"},
                                                        {5, "yes"},
                                                        {6, "given"},
                                                        {7, "yes"}}));
  // Both Exp for one reason, though they read and make values of other names; the Identity for
  // another.
  const DeviceAnswer& plain = answers[1];
  EXPECT_EQ(plain.status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_THAT(plain.sentence, HasSubstr("Plugin 'plain' answers UNSUPPORTED_OPERATOR"));
  EXPECT_EQ(plain.nodes_told, unsigned{ONNXIFI_SDK_NODES_ASKED_ALONE});
  EXPECT_EQ(Told(plain), (std::map<uint32_t, std::string>{{0, "given"},
                                                          {1, "1"},
                                                          {2, "given"},
                                                          {3, "yes"},
                                                          {4, "1"},
                                                          {5, "yes"},
                                                          {6, "given"},
                                                          {7, "yes"}}));
  const DeviceAnswer& some = answers[2];
  EXPECT_EQ(some.status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_EQ(Told(some), (std::map<uint32_t, std::string>{{0, "given"},
                                                         {1, "2"},
                                                         {2, "given"},
                                                         {3, "yes"},
                                                         {4, "2"},
                                                         {5, "3"},
                                                         {6, "given"},
                                                         {7, "yes"}}));
  EXPECT_THAT(VerdictOf(some, 5).sentence, HasSubstr("Operator 'Identity' is not among"));
  EXPECT_EQ(VerdictOf(some, 5).operator_type, "Identity");
  EXPECT_EQ(VerdictOf(some, 5).domain, "ai.onnx");
  EXPECT_EQ(VerdictOf(some, 5).opset_version, 21);
}

TEST(Explain, SaysWhatAPlainPluginWasAskedAndAnswered) {
  PlannedSandbox sandbox;
  sandbox.Add("plain.so", "libonnxifi-plain.so");
  const Library library = sandbox.Open();
  const auto model = ParseModel(kModel);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto explanation = library.FindDevice("plain:0")->Explain(model);
    ASSERT_TRUE(explanation.ok());
    EXPECT_EQ(explanation->status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
    ASSERT_EQ(explanation->nodes.size(), 8U);
    for (const NodeVerdict& node : explanation->nodes) {
      EXPECT_EQ(node.status, node.operator_type == "Exp" ? ONNXIFI_STATUS_UNSUPPORTED_OPERATOR
                                                         : ONNXIFI_STATUS_SUCCESS);
    }
    EXPECT_EQ(explanation->nodes[4].sentence,
              "Plugin 'plain' answers UNSUPPORTED_OPERATOR to onnxGetBackendCompatibility and "
              "gives no reason.\n  asked about a model of this Exp alone, from float[2,3] to "
              "float[2,3]");
  }
  // Whole it runs what it could not be given alone: nobody could tell how much NonZero makes.
  const auto whole = library.FindDevice("plain:0")->Explain(
      ParseModel("graph (float[2, 3] x) => (int64[2, n] y) { a = Abs(x)  y = NonZero(a) }"));
  EXPECT_EQ(whole->status, ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(whole->nodes.size(), 2U);
  EXPECT_EQ(whole->nodes[1].status, ONNXIFI_STATUS_SUCCESS);
}

TEST(Explain, CountsNodesOfPlainPluginsAmongTheReasonsOfAuto) {
  PlannedSandbox sandbox;
  sandbox.AddMock("some", R"({"operators": ["Abs"]})").Add("plain.so", "libonnxifi-plain.so");
  const Device device = *sandbox.Open().FindDevice("auto");
  const Outcome refused = device.CheckCompatibility(ParseModel(
      "graph (float[2, 3] x) => (float[2, 3] y) { a = Abs(x)  b = Neg(a)  y = Exp(b) }"));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().sentence,
              AllOf(HasSubstr("plain:0 claims 2 of 3 nodes"), HasSubstr("some:0 claims 1 of 3"),
                    HasSubstr("No device runs node 2 (Exp).")));
}

// As an empty file gives it: no bytes, and no address.
TEST(Explain, SaysOfAnEmptyModelThatItIsEmpty) {
  PlannedSandbox sandbox;
  sandbox.AddMock("all", "{}");
  const Library library = sandbox.Open();
  const Device device = *library.FindDevice("all:0");
  const std::span<const std::byte> empty;
  const auto answers = library.ExplainOnDevices(empty);
  ASSERT_FALSE(answers.ok());
  EXPECT_EQ(answers.error().Text(), "INVALID_SIZE: The model has 0 bytes.");
  EXPECT_EQ(device.CheckCompatibility(empty).error().status, ONNXIFI_STATUS_INVALID_SIZE);
  EXPECT_EQ(device.Explain(empty)->status, ONNXIFI_STATUS_INVALID_SIZE);
  EXPECT_EQ(device.InitBackend()->InitGraph(empty).error().status, ONNXIFI_STATUS_INVALID_SIZE);
}

TEST(Explain, DoesNotTakeADeviceThatHasGoneAtItsWord) {
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg", "Sqrt"], "vanishes_at_run": 1})");
  const Library library = sandbox.Open();
  Session session(library, kChain);
  session.Input("x", {2, 3}, {1, -2, 3, -4, 5, -6});
  session.Output("y", {2, 3});
  const auto before = Ask(library, session.model);
  EXPECT_EQ(Told(before[1]).at(1), "yes");
  EXPECT_FALSE(session.Run());
  const auto after = Ask(library, session.model);
  EXPECT_EQ(after[1].status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
  EXPECT_EQ(VerdictOf(after[1], 1).status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
  EXPECT_THAT(VerdictOf(after[1], 1).sentence, HasSubstr("has vanished"));
  EXPECT_EQ(Told(after[0]).at(0), "yes");
}

TEST(Explain, LeavesWhatIsWrongWithAModelToTheDevices) {
  PlannedSandbox sandbox;
  sandbox.AddMock("all", "{}").Add("plain.so", "libonnxifi-plain.so");
  const Library library = sandbox.Open();
  const std::string garbage = "\xff no model";
  const auto none = Ask(library, std::as_bytes(std::span(garbage)));
  EXPECT_EQ(none[0].status, ONNXIFI_STATUS_INVALID_PROTOBUF);
  EXPECT_NE(none[0].sentence, "");
  EXPECT_EQ(none[0].nodes_told, unsigned{ONNXIFI_SDK_NODES_NOT_TOLD});
  EXPECT_TRUE(none[0].nodes.empty());
  EXPECT_TRUE(none[1].nodes.empty());
  // An operator that a device does not know is held against nothing else.
  const auto unknown = Ask(library, ParseModel(R"(
      graph (float[2] x) => (float[2] y, float[2] z) <float[2] b> {
        a = Abs(x)  b = Nothing(a)  y = Neg(a)  z = Abs(b)
      })"));
  EXPECT_EQ(unknown[0].status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_THAT(unknown[0].sentence, HasSubstr("Nothing"));
  EXPECT_EQ(Told(unknown[0]),
            (std::map<uint32_t, std::string>{{0, "yes"}, {1, "1"}, {2, "yes"}, {3, "yes"}}));
  EXPECT_EQ(Told(unknown[1]).at(1), "yes");
  // Nodes in another order keep their numbers.
  const auto reversed = Ask(library, ParseModel(R"(
      graph (float[2] x) => (float[2] y) <float[2] a> { y = Nothing(a)  a = Abs(x) })"));
  EXPECT_EQ(reversed[0].status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_EQ(Told(reversed[0]), (std::map<uint32_t, std::string>{{0, "1"}, {1, "yes"}}));
  // A cycle cannot be cut: the whole model's answer, with the nodes that a plugin tells.
  const auto cyclic = Ask(library, ParseModel(R"(
      graph (float[2] x) => (float[2] y) { y = Neg(a)  a = Abs(b)  b = Neg(a) })"));
  EXPECT_EQ(cyclic[0].status, ONNXIFI_STATUS_INVALID_MODEL);
  EXPECT_THAT(cyclic[0].sentence, HasSubstr("The graph has a cycle of 2 nodes"));
  EXPECT_EQ(cyclic[1].nodes_told, unsigned{ONNXIFI_SDK_NODES_NOT_TOLD});
}

// y = |Reshape(x)|, whose shape (2, -1, 3) lies in the file "data" of the sandbox.
std::string ModelWithShapeBeside() {
  onnx::ModelProto model;
  const auto text = ParseModel(R"(
    graph (float[6, n] x) => (float[a, b, c] y) { r = Reshape(x, shape)  y = Abs(r) })");
  EXPECT_TRUE(model.ParseFromArray(text.data(), static_cast<int>(text.size())));
  onnx::TensorProto& shape = *model.mutable_graph()->add_initializer();
  shape.set_name("shape");
  shape.set_data_type(onnx::TensorProto::INT64);
  shape.add_dims(3);
  shape.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& location = *shape.add_external_data();
  location.set_key("location");
  location.set_value("data");
  return model.SerializeAsString();
}

void WriteShape(const PluginSandbox& sandbox) {
  const std::vector<int64_t> extents = {2, -1, 3};
  std::ofstream(sandbox.folder() / "data", std::ios::binary)
      .write(reinterpret_cast<const char*>(extents.data()), 24);
}

TEST(Explain, AutoGivesAnOperatorToTheOneDeviceThatKnowsIt) {
  PlannedSandbox sandbox;
  // The plain one takes any operator for a doubling, but for Exp.
  sandbox.AddMock("all", "{}").Add("plain.so", "libonnxifi-plain.so");
  Session session(sandbox.Open(),
                  "graph (float[3] x) => (float[3] y) { a = Exp(x)  y = Nothing(a) }");
  session.Input("x", {3}, {0, 1, -2});
  session.Output("y", {3});
  ASSERT_TRUE(session.Run());
  EXPECT_THAT(session.Of("y"),
              testing::Pointwise(testing::FloatNear(1e-5F), {2.0F, 5.436564F, 0.27067056F}));
}

TEST(Explain, ReadsSmallTensorsBesideTheModel) {
  PlannedSandbox sandbox;
  sandbox.AddMock("all", "{}").AddMock("other", R"({"refused": ["Abs"]})");
  const Library library = sandbox.Open();
  const std::string bytes = ModelWithShapeBeside();
  const auto content = std::as_bytes(std::span(bytes));
  const std::string folder = sandbox.folder().string();
  const auto absent = library.ExplainOnDevices(content, folder);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().status, ONNXIFI_STATUS_INVALID_MODEL);
  EXPECT_THAT(absent.error().sentence, HasSubstr("'shape'"));
  WriteShape(sandbox);
  const auto answers = library.ExplainOnDevices(content, folder);
  ASSERT_TRUE(answers.ok()) << answers.error().Text();
  EXPECT_TRUE(answers->at(0).runs_model()) << answers->at(0).sentence;
  EXPECT_EQ(Told(answers->at(0)), (std::map<uint32_t, std::string>{{0, "yes"}, {1, "yes"}}));
  EXPECT_EQ(Told(answers->at(1)).at(0), "yes");
  EXPECT_NE(Told(answers->at(1)).at(1), "yes");
}

TEST(Explain, AutoRunsModelsWhoseSmallTensorsLieBesideThem) {
  PlannedSandbox sandbox;
  sandbox.AddMock("reshape", R"({"operators": ["Reshape"]})")
      .AddMock("abs", R"({"operators": ["Abs"]})");
  WriteShape(sandbox);
  const Library library = sandbox.Open();
  const std::string bytes = ModelWithShapeBeside();
  const Backend backend = *library.FindDevice("auto")->InitBackend();
  const auto graph = backend.InitGraph(std::as_bytes(std::span(bytes)),
                                       {.base_folder = sandbox.folder().string()});
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  std::vector<float> x = {1, -2, 3, -4, 5, -6};
  std::vector<float> y(6, -99);
  const Tensor input{"x", ONNXIFI_DATATYPE_FLOAT32, {6, 1}, x.data()};
  const Tensor output{"y", ONNXIFI_DATATYPE_FLOAT32, {2, 1, 3}, y.data()};
  ASSERT_TRUE(graph->SetIO({&input, 1}, {&output, 1}));
  ASSERT_TRUE(graph->RunAndWait());
  EXPECT_THAT(y, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Explain, AutoRefusesAWrongLengthOfExternalDataAsASingleDeviceDoes) {
  PlannedSandbox sandbox;
  sandbox.AddMock("all", "{}");
  WriteShape(sandbox);
  const Library library = sandbox.Open();
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(ModelWithShapeBeside()));
  auto& length = *model.mutable_graph()->mutable_initializer(0)->add_external_data();
  length.set_key("length");
  for (const auto& [bytes, status] :
       {std::pair{"24", ONNXIFI_STATUS_SUCCESS}, std::pair{"16", ONNXIFI_STATUS_INVALID_MODEL},
        std::pair{"32", ONNXIFI_STATUS_INVALID_MODEL}}) {
    length.set_value(bytes);
    const std::string text = model.SerializeAsString();
    for (const char* const key : {"all:0", "auto"}) {
      const Backend backend = *library.FindDevice(key)->InitBackend();
      const auto graph = backend.InitGraph(std::as_bytes(std::span(text)),
                                           {.base_folder = sandbox.folder().string()});
      EXPECT_EQ(graph.ok() ? onnxStatus{ONNXIFI_STATUS_SUCCESS} : graph.error().status,
                onnxStatus{static_cast<onnxStatus>(status)})
          << key << " " << bytes;
      if (graph.ok()) continue;
      EXPECT_THAT(graph.error().Text(),
                  AllOf(HasSubstr("'shape'"), HasSubstr(std::string(bytes) + " bytes")));
    }
  }
}

TEST(Explain, TellsWhereTheModelWantsANode) {
  PlannedSandbox sandbox;
  sandbox.AddMock("one", "{}").AddMock("two", "{}");
  onnx::ModelProto model;
  const auto text = ParseModel("graph (float[2] x) => (float[2] y) { a = Abs(x)  y = Neg(a) }");
  ASSERT_TRUE(model.ParseFromArray(text.data(), static_cast<int>(text.size())));
  auto& entry = *model.mutable_graph()->mutable_node(1)->add_metadata_props();
  entry.set_key("onnxifi.device");
  entry.set_value("two:0");
  const std::string bytes = model.SerializeAsString();
  const auto answers = Ask(sandbox.Open(), std::as_bytes(std::span(bytes)));
  for (const DeviceAnswer& device : answers) {
    ASSERT_EQ(device.nodes.size(), 2U);
    EXPECT_EQ(device.nodes[0].placement, "");
    EXPECT_EQ(device.nodes[1].placement, "two:0");
    // A wish, not an answer.
    EXPECT_EQ(device.nodes[1].verdict.status, ONNXIFI_STATUS_SUCCESS);
  }
}

TEST(Explain, RefusesCallsThatAskNothing) {
  PlannedSandbox sandbox;
  sandbox.AddMock("all", "{}");
  const Library library = sandbox.Open();
  const auto function =
      library.FindDevice("all:0")->FindFunction<onnxExplainModelOnDevicesFunction>(
          "onnxExplainModelOnDevices");
  ASSERT_NE(function, nullptr);
  const auto on_device = [](void*, const onnxDeviceAnswer*) {};
  const auto on_node = [](void*, const onnxNodeAnswer*) {};
  const auto model = ParseModel("graph (float[2] x) => (float[2] y) { y = Neg(x) }");
  EXPECT_EQ(function(nullptr, model.size(), model.data(), on_device, on_node, nullptr),
            ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(function(nullptr, model.size(), nullptr, on_device, on_node, nullptr),
            ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(function(nullptr, model.size(), model.data(), nullptr, on_node, nullptr),
            ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(function(nullptr, model.size(), model.data(), on_device, nullptr, nullptr),
            ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(function(nullptr, 0, model.data(), on_device, on_node, nullptr),
            ONNXIFI_STATUS_INVALID_SIZE);
  const uint64_t profile[] = {ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE, 1, 0};
  EXPECT_EQ(function(profile, model.size(), model.data(), on_device, on_node, nullptr),
            ONNXIFI_STATUS_UNSUPPORTED_PROPERTY);
  const uint64_t nowhere[] = {ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER, 0, 0};
  EXPECT_EQ(function(nowhere, model.size(), model.data(), on_device, on_node, nullptr),
            ONNXIFI_STATUS_INVALID_PROPERTY);
}

}  // namespace
}  // namespace onnxifi::planner
