// SPDX-License-Identifier: Apache-2.0
//
// Which device auto prefers: kernels before emulation, and a plugin that is made for the processor
// before one that reaches the processor through the interface of other devices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <filesystem>
#include <string>
#include <vector>

#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::dispatch {
namespace {

using testing::ElementsAre;

constexpr const char* kThreeNodes = R"(
  graph (float[3] x) => (float[3] y) { a = Abs(x)  b = Neg(a)  y = Abs(b) })";
constexpr const char* kFourNodes = R"(
  graph (float[3] x) => (float[3] y) { a = Abs(x)  b = Exp(a)  c = Neg(b)  y = Abs(c) })";

// "a:0:03 b:0:1": each island's device and nodes.
std::string PlanOf(const Graph& graph) {
  const auto plan = graph.Plan();
  if (!plan.ok()) return plan.error().Text();
  std::string text;
  for (const PlanIsland& island : plan->islands) {
    text += (text.empty() ? "" : " ") + island.device_key + ":";
    for (const uint32_t node : island.nodes) text += std::to_string(node);
  }
  return text;
}

struct Answers {
  onnxStatus claim = ONNXIFI_STATUS_SUCCESS;
  bool is_emulated = false;
  std::string plan;
};

Answers Ask(const Library& library, const char* device_key, const std::string& text) {
  const Device device = *library.FindDevice(device_key);
  const auto model = ParseModel(text);
  const auto explanation = device.Explain(model);
  EXPECT_TRUE(explanation.ok());
  const auto graph = device.InitBackend()->InitGraph(model);
  EXPECT_TRUE(graph.ok()) << graph.error().Text();
  return {explanation->status, graph->is_emulated(), PlanOf(*graph)};
}

void PutInFront(PlannedSandbox& sandbox, const std::string& name) {
  sandbox.Write("libonnxifi-" + name + ".json", R"({"format_version": 1, "priority": -9})");
}

TEST(AutoRanking, PrefersKernelsToEmulationWhateverThePriority) {
  PlannedSandbox sandbox;
  sandbox.AddMock("clone", R"({"emulated": ["*"]})").AddMock("real", "{}");
  PutInFront(sandbox, "clone");
  const Library library = sandbox.Open();
  const Answers chosen = Ask(library, "auto", kFourNodes);
  EXPECT_EQ(chosen.plan, "real:0:");
  EXPECT_EQ(chosen.claim, ONNXIFI_STATUS_SUCCESS);
  EXPECT_FALSE(chosen.is_emulated);
}

TEST(AutoRanking, EmulatesOnlyWhatNoDeviceHasKernelsFor) {
  PlannedSandbox sandbox;
  sandbox.AddMock("clone", R"({"emulated": ["*"]})").AddMock("real", R"({"refused": ["Neg"]})");
  PutInFront(sandbox, "clone");
  const Answers chosen = Ask(sandbox.Open(), "auto", kFourNodes);
  EXPECT_EQ(chosen.plan, "real:0:01 clone:0:2 real:0:3");
  EXPECT_EQ(chosen.claim, ONNXIFI_STATUS_FALLBACK);
  EXPECT_TRUE(chosen.is_emulated);
}

TEST(AutoRanking, CountsPartlyEmulatedDevicesByNode) {
  PlannedSandbox sandbox;
  sandbox.AddMock("clone", R"({"emulated": ["Exp"]})").AddMock("real", R"({"operators": ["Exp"]})");
  PutInFront(sandbox, "clone");
  const Answers chosen = Ask(sandbox.Open(), "auto", kFourNodes);
  EXPECT_EQ(chosen.plan, "clone:0:0 real:0:1 clone:0:23");
  EXPECT_EQ(chosen.claim, ONNXIFI_STATUS_SUCCESS);
  EXPECT_FALSE(chosen.is_emulated);
}

TEST(AutoRanking, EmulatesTheModelWhereThereIsNothingElse) {
  PlannedSandbox sandbox;
  sandbox.AddMock("clone", R"({"emulated": ["*"]})");
  const Library library = sandbox.Open();
  for (const char* const key : {"auto", "clone:0"}) {
    const Answers answers = Ask(library, key, kFourNodes);
    EXPECT_EQ(answers.claim, ONNXIFI_STATUS_FALLBACK) << key;
    EXPECT_TRUE(answers.is_emulated) << key;
  }
  const auto told = library.ExplainOnDevices(ParseModel(kFourNodes));
  ASSERT_TRUE(told.ok());
  ASSERT_EQ(told->at(0).nodes.size(), 4U);
  for (const NodeAnswer& node : told->at(0).nodes) {
    EXPECT_EQ(node.verdict.status, ONNXIFI_STATUS_FALLBACK);
    EXPECT_EQ(node.verdict.sentence, "");
    EXPECT_EQ(node.reason, 0U);
  }
}

// No plan can carry it; what is wrong with it is the device's to tell.
TEST(AutoRanking, LeavesAWrongWeightToTheDeviceThatEmulates) {
  PlannedSandbox sandbox;
  sandbox.AddMock("clone", R"({"emulated": ["*"]})");
  const Library library = sandbox.Open();
  std::vector<float> data = {1, 2, 3};
  const Tensor weights[] = {{"w", ONNXIFI_DATATYPE_UNDEFINED, {3}, data.data()}};
  GraphOptions options;
  options.weights = weights;
  for (const char* const key : {"clone:0", "auto"}) {
    const auto graph =
        library.FindDevice(key)->InitBackend()->InitGraph(ParseModel(kFourNodes), options);
    ASSERT_FALSE(graph.ok()) << key;
    EXPECT_EQ(graph.error().status, ONNXIFI_STATUS_INVALID_DATATYPE) << key;
  }
}

TEST(AutoRanking, GivesAnEmulatedNodeToWhomTheCallerNames) {
  PlannedSandbox sandbox;
  sandbox.AddMock("clone", R"({"emulated": ["*"]})").AddMock("real", "{}");
  const Backend backend = *sandbox.Open().FindDevice("auto")->InitBackend();
  GraphOptions options;
  options.placement.emplace();
  options.placement->groups = {{"clone:0", {1}}};
  auto graph = backend.InitGraph(ParseModel(kFourNodes), options);
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  EXPECT_EQ(PlanOf(*graph), "real:0:0 clone:0:1 real:0:23");
  options.placement->groups.clear();
  options.placement->kind = ONNXIFI_SDK_PLACEMENT_PREFER;
  options.placement->device_keys = {"clone:0"};
  graph = backend.InitGraph(ParseModel(kFourNodes), options);
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  EXPECT_EQ(PlanOf(*graph), "clone:0:");
}

// The template as a vendor copies it: under another name, in front of everything.
TEST(AutoRanking, DoesNotGiveAModelToACloneOfTheNullPlugin) {
  PlannedSandbox sandbox;
  std::filesystem::copy_file(ONNXIFI_TEST_NULL, sandbox.folder() / "libonnxifi-clone.so");
  std::filesystem::copy_file(ONNXIFI_TEST_NULL, sandbox.folder() / "libonnxifi-null.so");
  sandbox.AddMock("real", R"({"refused": ["Exp"]})");
  PutInFront(sandbox, "clone");
  const Library library = sandbox.Open();
  EXPECT_EQ(Ask(library, "auto", kThreeNodes).plan, "real:0:");
  EXPECT_EQ(Ask(library, "auto", kFourNodes).plan, "real:0:0 clone:0:1 real:0:23");
  // At the claim and afterwards alike.
  const Answers null = Ask(library, "null:0", kThreeNodes);
  EXPECT_EQ(null.claim, ONNXIFI_STATUS_FALLBACK);
  EXPECT_TRUE(null.is_emulated);
  // Nothing is computed where tensors are only looked at in another shape.
  const Answers view = Ask(library, "null:0", R"(
    graph (float[2, 3] x) => (float[3, 2] y) {
      s = Constant<value_ints = [3, 2]>()  r = Reshape(x, s)  t = Transpose(r)  y = Transpose(t)
    })");
  EXPECT_EQ(view.claim, ONNXIFI_STATUS_SUCCESS);
  EXPECT_FALSE(view.is_emulated);
}

std::string OrderOf(const Library& library) {
  return *library.FindDevice("auto")->TextInfo(ONNXIFI_BACKEND_DEVICE);
}

TEST(AutoRanking, PutsTheProcessorBehindAnInterfaceAfterItsOwnPlugin) {
  PlannedSandbox sandbox;
  sandbox.AddMock("behind", R"({"type": "cpu", "behind": "opencl"})")
      .AddMock("gpu", R"({"type": "gpu", "behind": "opencl"})")
      .AddMock("own", R"({"type": "cpu"})")
      .AddMock("second", R"({"type": "cpu"})");
  PutInFront(sandbox, "behind");
  const Library library = sandbox.Open();
  EXPECT_EQ(OrderOf(library),
            "the first fit of gpu:0 own:0 second:0 behind:0, or several together");
  // Without a plugin of its own it stays where its priority puts it.
  PlannedSandbox alone;
  alone.AddMock("behind", R"({"type": "cpu", "behind": "opencl"})")
      .AddMock("gpu", R"({"type": "gpu", "behind": "opencl"})");
  PutInFront(alone, "behind");
  EXPECT_EQ(OrderOf(alone.Open()), "the first fit of behind:0 gpu:0, or several together");
}

// A processor is known by the interface's memory, whichever interface it is.
TEST(AutoRanking, PutsAProcessorBehindVulkanAfterItsOwnPlugin) {
  PlannedSandbox sandbox;
  sandbox.AddMock("behind", R"({"type": "cpu", "behind": "vulkan"})")
      .AddMock("own", R"({"type": "cpu"})")
      .AddMock("second", R"({"type": "cpu", "behind": "opencl"})");
  PutInFront(sandbox, "behind");
  EXPECT_EQ(OrderOf(sandbox.Open()),
            "the first fit of own:0 behind:0 second:0, or several together");
}

// Branches that could run at a time promise nothing where both IDs are one device: nothing is cut
// but for what only another device runs.
TEST(AutoRanking, DoesNotCutAModelBetweenTwoPluginsOfOneDevice) {
  PlannedSandbox sandbox;
  const std::string twin =
      R"({"type": "gpu", "refused": ["Cos"], "uuid": ")" + std::string(32, '7') + "\"}";
  sandbox.AddMock("a", twin).AddMock("b", twin).AddMock("other", R"({"operators": ["Cos"]})");
  const Library library = sandbox.Open();
  EXPECT_EQ(*library.FindDevice("b:0")->TextInfo(ONNXIFI_SDK_BACKEND_DEVICE_UUID),
            std::string(32, '7'));
  const std::string plan = Ask(library, "auto", R"(
    graph (float[3] x) => (float[3] y, float[3] z) {
      a = Abs(x)  b = Neg(x)  c = Exp(a)  d = Sin(b)  y = Add(c, d)  z = Sub(c, d)
    })")
                               .plan;
  EXPECT_EQ(plan, "a:0:");
  const std::string mixed = Ask(library, "auto", R"(
    graph (float[3] x) => (float[3] y) {
      a = Abs(x)  b = Neg(x)  c = Exp(a)  d = Sin(b)  e = Add(c, d)  y = Cos(e)
    })")
                                .plan;
  EXPECT_THAT(mixed, testing::Not(testing::HasSubstr("b:0")));
}

// Three devices, of which the first two are told to be one by `identity` and `other`: the first
// refuses Exp, which both others run.
std::string PlanOfTwins(const std::string& identity, const std::string& other) {
  PlannedSandbox sandbox;
  sandbox.AddMock("a", R"({"type": "gpu", "refused": ["Exp"])" + identity + "}")
      .AddMock("b", R"({"type": "gpu", "refused": ["Neg"])" + other + "}")
      .AddMock("host", R"({"operators": ["Exp", "Neg"]})");
  return Ask(sandbox.Open(), "auto", kFourNodes).plan;
}

TEST(AutoRanking, LeavesWhatOneTwinRefusesToAnotherDevice) {
  const std::string uuid = R"(, "uuid": ")" + std::string(31, '0') + "7\"";
  const std::string other_uuid = R"(, "uuid": ")" + std::string(31, '0') + "8\"";
  const std::string no_uuid = R"(, "uuid": ")" + std::string(32, '0') + '"';
  const std::string luid = R"(, "luid": "0000000000000009")";
  const std::string pci = R"(, "pci": [0, 3, 1])";
  const std::string other_pci = R"(, "pci": [1, 3, 1])";
  const std::string apart = "b:0:01 a:0:23";
  const std::string together = "a:0:0 host:0:1 a:0:23";
  EXPECT_EQ(PlanOfTwins("", ""), apart);
  EXPECT_EQ(PlanOfTwins(uuid, uuid), together);
  EXPECT_EQ(PlanOfTwins(uuid + pci, other_uuid + pci), apart);
  // UUIDs that are not told, or zeros, decide nothing.
  EXPECT_EQ(PlanOfTwins(uuid + pci, pci), together);
  EXPECT_EQ(PlanOfTwins(no_uuid, no_uuid), apart);
  EXPECT_EQ(PlanOfTwins(no_uuid + pci, uuid + pci), together);
  EXPECT_EQ(PlanOfTwins(uuid + luid, luid), together);
  EXPECT_EQ(PlanOfTwins(pci, pci), together);
  EXPECT_EQ(PlanOfTwins(pci, other_pci), apart);
}

TEST(AutoRanking, CutsBetweenTwinsForWhatNobodyElseRuns) {
  PlannedSandbox sandbox;
  const std::string pci = R"("type": "gpu", "pci": [0, 3, 1]})";
  sandbox.AddMock("a", R"({"refused": ["Exp", "Cos"], )" + pci)
      .AddMock("b", R"({"refused": ["Neg"], )" + pci)
      .AddMock("host", R"({"operators": ["Cos", "Neg"]})");
  const Library library = sandbox.Open();
  // Exp is b's alone; so b has all but Neg, which a host runs.
  EXPECT_EQ(Ask(library, "auto", kFourNodes).plan, "b:0:01 host:0:2 b:0:3");
  // Sin is of both, Neg and Exp of one each.
  PlannedSandbox alone;
  alone.AddMock("a", R"({"refused": ["Exp"], )" + pci)
      .AddMock("b", R"({"refused": ["Neg"], )" + pci);
  EXPECT_EQ(Ask(alone.Open(), "auto", kFourNodes).plan, "a:0:0 b:0:1 a:0:23");
}

TEST(AutoRanking, CutsBetweenTwinsAsTheCallerWants) {
  PlannedSandbox sandbox;
  const std::string twin = R"({"type": "gpu", "uuid": ")" + std::string(32, '7') + "\"}";
  sandbox.AddMock("a", twin).AddMock("b", twin);
  const Backend backend = *sandbox.Open().FindDevice("auto")->InitBackend();
  GraphOptions options;
  options.placement.emplace();
  options.placement->groups = {{"b:0", {1}}};
  const auto graph = backend.InitGraph(ParseModel(kFourNodes), options);
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  EXPECT_EQ(PlanOf(*graph), "a:0:0 b:0:1 a:0:23");
}

TEST(AutoRanking, TakesProcessorsBehindInterfacesForTheMachines) {
  PlannedSandbox sandbox;
  sandbox.AddMock("own", R"({"refused": ["Exp"]})")
      .AddMock("behind", R"({"behind": "vulkan", "refused": ["Neg"], "uuid": ")" +
                             std::string(32, '7') + "\"}")
      .AddMock("npu", R"({"type": "npu", "operators": ["Exp"]})")
      .AddMock("null", "{}");
  PutInFront(sandbox, "own");
  PutInFront(sandbox, "behind");
  const Library library = sandbox.Open();
  EXPECT_EQ(OrderOf(library), "the first fit of own:0 behind:0 npu:0, or several together");
  EXPECT_EQ(Ask(library, "auto", kFourNodes).plan, "own:0:0 npu:0:1 own:0:23");
  const auto told = library.ExplainOnDevices(ParseModel(kFourNodes));
  ASSERT_TRUE(told.ok()) << told.error().Text();
  for (const DeviceAnswer& device : *told) {
    const bool is_processor = device.device_key == "own:0" || device.device_key == "behind:0";
    EXPECT_EQ(device.physical_device, is_processor ? 1U : 0U) << device.device_key;
  }
}

// By the manifests that the plugins are installed with.
TEST(AutoRanking, OrdersPluginsOfOneGpu) {
  PlannedSandbox sandbox;
  for (const char* name : {"opencl", "vulkan", "cuda"}) {
    sandbox.AddMock(name, R"({"type": "gpu", "pci": [0, 3, 0]})");
    std::filesystem::copy_file("backends/" + std::string(name) + "/manifest.json",
                               sandbox.folder() / ("libonnxifi-" + std::string(name) + ".json"));
  }
  const Library library = sandbox.Open();
  EXPECT_EQ(OrderOf(library), "the first fit of cuda:0 vulkan:0 opencl:0, or several together");
  EXPECT_EQ(Ask(library, "auto", kFourNodes).plan, "cuda:0:");
}

}  // namespace
}  // namespace onnxifi::dispatch
