// SPDX-License-Identifier: Apache-2.0
//
// Graphs that run through libonnxifi on fake plugins: plain pass-through, the choice of the auto
// device, and events between them.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnxifi/testing/plugin_sandbox.h"

namespace onnxifi::plugins {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> Bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string Number(onnxStatus status) { return std::to_string(status); }

// A graph on a device, and vectors of four elements for it.
struct Session {
  Session(const Library& library, std::string_view key, std::string_view model = "double")
      : device(*library.FindDevice(key)),
        backend(*device.InitBackend()),
        graph(*backend.InitGraph(Bytes(model))) {}

  Outcome SetIO() { return graph.SetIO({&x, 1}, {&y, 1}); }

  std::vector<float> source = {1, 2, 3, 4};
  std::vector<float> target = {0, 0, 0, 0};
  Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {4}, source.data()};
  Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {4}, target.data()};
  Device device;
  Backend backend;
  Graph graph;
};

class Forwarding : public testing::TestWithParam<const char*> {
 protected:
  Forwarding() {
    stage_.Add("alpha.so", "libonnxifi-alpha.so").Add("plain.so", "libonnxifi-plain.so");
  }
  Library library() { return stage_.Open(); }

 private:
  PluginSandbox stage_;
};

TEST_P(Forwarding, RunsAGraphThatIsStartedBeforeItsInputsAreReady) {
  Session session(library(), GetParam());
  ASSERT_TRUE(session.SetIO());
  auto input = session.backend.NewEvent();
  ASSERT_TRUE(input.ok());
  auto output = session.graph.Run(*input);
  ASSERT_TRUE(output.ok()) << output.error().Text();
  EXPECT_FALSE(*output->IsSignalled());
  session.source = {10, 20, 30, 40};
  ASSERT_TRUE(input->Signal());
  ASSERT_TRUE(output->Wait());
  EXPECT_THAT(session.target, ElementsAre(20, 40, 60, 80));
  EXPECT_TRUE(*output->IsSignalled());
}

TEST_P(Forwarding, RunsAGraphWhoseInputsAreReady) {
  Session session(library(), GetParam());
  ASSERT_TRUE(session.SetIO());
  ASSERT_TRUE(session.graph.RunAndWait());
  EXPECT_THAT(session.target, ElementsAre(2, 4, 6, 8));
}

TEST_P(Forwarding, FinishesARunAsFailedWhenItsInputEventIsReleased) {
  Session session(library(), GetParam());
  ASSERT_TRUE(session.SetIO());
  auto input = session.backend.NewEvent();
  auto output = session.graph.Run(*input);
  ASSERT_TRUE(output.ok());
  { const Event released = *std::move(input); }
  const Outcome outcome = output->Wait();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().status, ONNXIFI_STATUS_INTERNAL_ERROR);
}

TEST_P(Forwarding, BindsAndRunsInOneStepWithoutTouchingTheStandingBinding) {
  Session session(library(), GetParam());
  ASSERT_TRUE(session.SetIO());
  const auto run =
      session.device.FindFunction<onnxSetIOAndRunGraphFunction>("onnxSetIOAndRunGraph");
  ASSERT_NE(run, nullptr);
  std::vector<float> other = {0, 0, 0, 0};
  const uint64_t shape[] = {4};
  onnxTensorDescriptorV1 x = {};
  x.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
  x.name = "x";
  x.dataType = ONNXIFI_DATATYPE_FLOAT32;
  x.dimensions = 1;
  x.shape = shape;
  x.buffer = reinterpret_cast<uintptr_t>(session.source.data());
  onnxTensorDescriptorV1 y = x;
  y.name = "y";
  y.buffer = reinterpret_cast<uintptr_t>(other.data());
  onnxMemoryFenceV1 fence = {};
  fence.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
  ASSERT_EQ(run(session.graph.handle(), 1, &x, 1, &y, &fence), ONNXIFI_STATUS_SUCCESS);

  const auto wait_for = session.device.FindFunction<onnxWaitEventForFunction>("onnxWaitEventFor");
  onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
  onnxStatus work = ONNXIFI_STATUS_INTERNAL_ERROR;
  EXPECT_EQ(wait_for(fence.event, /*timeoutMs=*/60000, &state, &work, nullptr, nullptr),
            ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(state, ONNXIFI_EVENT_STATE_SIGNALLED);
  EXPECT_EQ(work, ONNXIFI_STATUS_SUCCESS);
  // The event is the caller's, and no wrapper has it.
  Dl_info file{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(run), &file), 0);
  void* handle = dlopen(file.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(handle, nullptr);
  const auto release =
      reinterpret_cast<onnxReleaseEventFunction>(dlsym(handle, "onnxReleaseEvent"));
  ASSERT_NE(release, nullptr);
  EXPECT_EQ(release(fence.event), ONNXIFI_STATUS_SUCCESS);
  dlclose(handle);
  EXPECT_THAT(other, ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(session.target, ElementsAre(0, 0, 0, 0));
  ASSERT_TRUE(session.graph.RunAndWait());
  EXPECT_THAT(session.target, ElementsAre(2, 4, 6, 8));
}

TEST_P(Forwarding, PassesOnRefusals) {
  const Library opened = library();
  Session session(opened, GetParam());
  const Outcome outcome = session.graph.SetIO({}, {&session.y, 1});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().status, ONNXIFI_STATUS_UNIDENTIFIED_NAME);
  EXPECT_FALSE(outcome.error().sentence.empty());
  const Outcome run = session.graph.RunAndWait();
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().status, ONNXIFI_STATUS_UNIDENTIFIED_NAME);
}

INSTANTIATE_TEST_SUITE_P(Devices, Forwarding, testing::Values("alpha", "plain", "auto"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param);
                         });

TEST(Forwarded, RunHandsOverItsStatusAndSentence) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so");
  for (const char* key : {"alpha", "auto"}) {
    Session session(sandbox.Open(), key, "fail");
    ASSERT_TRUE(session.SetIO());
    const Outcome outcome = session.graph.RunAndWait();
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().status, ONNXIFI_STATUS_INTERNAL_ERROR);
    EXPECT_THAT(outcome.error().sentence, HasSubstr("The fake has 0 bytes of device memory."));
    EXPECT_THAT(outcome.error().sentence, HasSubstr("NO_DEVICE_MEMORY"));
  }
}

TEST(Forwarded, ExtensionsOfTheSdkReachThePlugin) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so");
  for (const char* key : {"alpha:1", "auto"}) {
    Session session(sandbox.Open(), key, "half");
    const auto inferred = session.graph.InferOutputShapes({&session.x, 1});
    ASSERT_TRUE(inferred.ok()) << inferred.error().Text();
    EXPECT_THAT(inferred->at(0).extents, ElementsAre(ONNXIFI_SDK_UNKNOWN));
    ASSERT_TRUE(session.SetIO());
    auto input = session.backend.NewEvent();
    ASSERT_TRUE(input->Signal());
    auto output = session.graph.Run(*input);
    ASSERT_TRUE(output->Wait());
    const auto actual = output->OutputShapes();
    ASSERT_TRUE(actual.ok()) << actual.error().Text();
    EXPECT_THAT(actual->at(0).extents, ElementsAre(2));
    const auto counters = session.graph.Counters();
    ASSERT_TRUE(counters.ok());
    EXPECT_EQ(counters->lowerings, 1u);
    EXPECT_EQ(counters->runs, 1u);
    const auto explanation = session.device.Explain(
        Bytes("double claims=9 status=" + Number(ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE)));
    ASSERT_TRUE(explanation.ok());
    EXPECT_EQ(explanation->status, ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE);
    ASSERT_EQ(explanation->nodes.size(), 10u);
    EXPECT_EQ(explanation->nodes[9].subject, "axis");
  }
}

TEST(Forwarded, ProfilesComeFromThePluginWhole) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so").Add("plain.so", "libonnxifi-plain.so");
  GraphOptions options;
  options.profile = true;
  options.precision = ONNXIFI_SDK_PRECISION_FLOAT16;
  options.dynamic_quantization = true;
  for (const char* key : {"alpha:1", "auto"}) {
    Session session(sandbox.Open(), key);
    auto profiled = session.backend.InitGraph(Bytes("double"), options);
    ASSERT_TRUE(profiled.ok()) << profiled.error().Text();
    session.graph = *std::move(profiled);
    const auto early = session.graph.Profile();
    ASSERT_FALSE(early.ok());
    EXPECT_EQ(early.error().status, ONNXIFI_STATUS_INVALID_STATE);
    ASSERT_TRUE(session.SetIO());
    ASSERT_TRUE(session.graph.RunAndWait());
    const auto steps = session.graph.Profile();
    ASSERT_TRUE(steps.ok()) << steps.error().Text();
    ASSERT_EQ(steps->size(), 2u);
    const StepRecord& step = steps->front();
    EXPECT_EQ(step.node_index, 3);
    EXPECT_EQ(step.family + "/" + step.implementation + "/" + step.detail, "Map/fake/bytes");
    EXPECT_EQ(step.data_type, ONNXIFI_DATATYPE_FLOAT32);
    EXPECT_THAT(step.extents, ElementsAre(4, 5));
    EXPECT_THAT(step.rejected, ElementsAre("Faster is busy.", "Fastest is broken."));
    EXPECT_THAT((std::vector<uint64_t>{step.start_ns, step.duration_ns, step.flops, step.read_bytes,
                                       step.written_bytes}),
                ElementsAre(6, 7, 8, 9, 10));
    // What was asked for: the fake device does as permitted.
    EXPECT_EQ(step.precision, uint32_t{ONNXIFI_SDK_PRECISION_FLOAT16});
    EXPECT_EQ(steps->back().node_index, ONNXIFI_SDK_UNKNOWN);
  }
  const auto plain =
      sandbox.Open().FindDevice("plain")->InitBackend()->InitGraph(Bytes("double"), options);
  ASSERT_FALSE(plain.ok());
  EXPECT_EQ(plain.error().status, ONNXIFI_STATUS_UNSUPPORTED_PROPERTY);
}

TEST(Forwarded, LoadProfilesComeFromThePluginWhole) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so").Add("plain.so", "libonnxifi-plain.so");
  for (const char* key : {"alpha:1", "auto"}) {
    const Session session(sandbox.Open(), key);
    const auto stages = session.graph.LoadProfile();
    ASSERT_TRUE(stages.ok()) << stages.error().Text();
    ASSERT_EQ(stages->size(), 2u);
    EXPECT_EQ(stages->front().stage, "parse");
    EXPECT_EQ(stages->back().stage, "double");
    EXPECT_EQ(stages->back().count, 4u);
    EXPECT_EQ(stages->back().duration_ns, 567u);
  }
  const Session plain(sandbox.Open(), "plain:0");
  const auto missing = plain.graph.LoadProfile();
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().status, ONNXIFI_STATUS_INTERNAL_ERROR);
}

TEST(Forwarded, WeightsReachThePluginWithTheirNamesAndShapes) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so");
  std::vector<float> data(6);
  const std::vector<Tensor> weights = {{"a", ONNXIFI_DATATYPE_FLOAT32, {2, 3}, data.data()},
                                       {"b", ONNXIFI_DATATYPE_FLOAT32, {4}, data.data()}};
  GraphOptions options;
  options.weights = weights;
  for (const char* key : {"alpha", "auto"}) {
    const auto backend = sandbox.Open().FindDevice(key)->InitBackend();
    const auto graph = backend->InitGraph(Bytes("double weights"), options);
    EXPECT_TRUE(graph.ok()) << graph.error().Text();
    EXPECT_FALSE(backend->InitGraph(Bytes("double weights")).ok());
  }
}

TEST(Forwarded, StringsOfPluginsThatDoNotCountTheNulAreWhole) {
  PluginSandbox sandbox;
  sandbox.Add("plain.so", "libonnxifi-plain.so");
  const auto device = sandbox.Open().FindDevice("plain");
  EXPECT_EQ(*device->TextInfo(ONNXIFI_BACKEND_NAME), "Plain");
  const auto missing = device->TextInfo(ONNXIFI_BACKEND_VENDOR);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().status, ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE);
  EXPECT_THAT(missing.error().sentence, HasSubstr("Plugin 'plain' answers UNSUPPORTED_ATTRIBUTE"));
}

TEST(Forwarded, PropertiesThatAPluginDoesNotAnnounceAreRefusedUnread) {
  PluginSandbox sandbox;
  sandbox.Add("plain.so", "libonnxifi-plain.so").Add("alpha.so", "libonnxifi-alpha.so");
  const Library library = sandbox.Open();
  GraphOptions options;
  options.base_folder = "/";
  const auto plain =
      library.FindDevice("plain")->InitBackend()->InitGraph(Bytes("double"), options);
  ASSERT_FALSE(plain.ok());
  EXPECT_EQ(plain.error().status, ONNXIFI_STATUS_UNSUPPORTED_PROPERTY);
  EXPECT_TRUE(library.FindDevice("alpha")->InitBackend()->InitGraph(Bytes("double"), options).ok());
}

// ---- The auto device ----

// Which plugin gets the graph: only those of the kit count.
std::string ChosenDevice(const Library& library, std::string_view model) {
  const auto graph = library.FindDevice("auto")->InitBackend()->InitGraph(Bytes(model));
  if (!graph.ok()) return "refused";
  const auto counters = graph->Counters();
  return counters.ok() ? "kit" : "plain";
}

TEST(Auto, IsHeterogeneousAndNamesItsDevices) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so").Add("gpu.so", "libonnxifi-gpu.so");
  const auto device = sandbox.Open().FindDevice("auto");
  EXPECT_EQ(*device->NumberInfo(ONNXIFI_BACKEND_DEVICE_TYPE),
            static_cast<uint64_t>(ONNXIFI_DEVICE_TYPE_HETEROGENEOUS));
  EXPECT_EQ(*device->TextInfo(ONNXIFI_BACKEND_DEVICE),
            "the first fit of gpu:0 alpha:0 alpha:1, or several together");
  EXPECT_EQ(*device->TextInfo(ONNXIFI_BACKEND_OPSET_VERSION), "ai.onnx:17");
  EXPECT_EQ(*device->TextInfo(ONNXIFI_BACKEND_ONNX_IR_VERSION), "3 4");
}

TEST(Auto, PrefersPriorityThenTheKindOfDeviceThenTheOrder) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so")
      .Add("gpu.so", "libonnxifi-gpu.so")
      .Add("plain.so", "libonnxifi-last.so")
      .Write("libonnxifi-last.json", R"({"format_version": 1, "priority": 1})")
      .Add("alpha.so", "libonnxifi-null.so")
      .Write("libonnxifi-null.json", R"({"format_version": 1, "priority": -9})");
  EXPECT_EQ(*sandbox.Open().FindDevice("auto")->TextInfo(ONNXIFI_BACKEND_DEVICE),
            "the first fit of gpu:0 alpha:0 alpha:1 last:0, or several together");
}

// Its kernels are right everywhere and fast nowhere yet: a GPU that it finds is no reason to prefer
// it to the CPU.
TEST(Auto, TakesOpenClByItsManifestAfterTheOthers) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-z.so").Add("gpu.so", "libonnxifi-opencl.so");
  std::filesystem::copy_file("backends/opencl/manifest.json",
                             sandbox.folder() / "libonnxifi-opencl.json");
  const Library library = sandbox.Open();
  EXPECT_EQ(PluginSandbox::Keys(library), "auto z:0 z:1 opencl:0");
  EXPECT_EQ(*library.FindDevice("auto")->TextInfo(ONNXIFI_BACKEND_DEVICE),
            "the first fit of z:0 z:1 opencl:0, or several together");
}

TEST(Auto, GivesTheGraphToTheFirstDeviceThatClaimsEveryNode) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so").Add("plain.so", "libonnxifi-plain.so");
  const Library library = sandbox.Open();
  EXPECT_EQ(ChosenDevice(library, "double"), "kit");
  EXPECT_EQ(ChosenDevice(library, "double alpha=9/" + Number(ONNXIFI_STATUS_UNSUPPORTED_SHAPE)),
            "plain");
}

TEST(Auto, AnswersForTheDeviceThatClaimsMostAndGivesAllReasons) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so").Add("gpu.so", "libonnxifi-gpu.so");
  const auto device = sandbox.Open().FindDevice("auto");
  const Outcome outcome =
      device->CheckCompatibility(Bytes("double gpu=3/" + Number(ONNXIFI_STATUS_UNSUPPORTED_SHAPE) +
                                       " alpha=9/" + Number(ONNXIFI_STATUS_UNSUPPORTED_DATATYPE)));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().status, ONNXIFI_STATUS_UNSUPPORTED_DATATYPE);
  EXPECT_THAT(outcome.error().sentence, HasSubstr("gpu:0 claims 3 of 10 nodes"));
  EXPECT_THAT(outcome.error().sentence, HasSubstr("alpha:1 claims 9 of 10 nodes"));
  EXPECT_THAT(outcome.error().sentence, HasSubstr("alpha:0 refuses node 9."));
}

TEST(Auto, PassesOnWhatIsWrongWithTheModelItself) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so");
  const auto graph = sandbox.Open().FindDevice("auto")->InitBackend()->InitGraph(Bytes("\x01"));
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().status, ONNXIFI_STATUS_INVALID_PROTOBUF);
}

TEST(Auto, ChainsRunsAcrossPluginsByEvents) {
  PluginSandbox sandbox;
  sandbox.Add("alpha.so", "libonnxifi-alpha.so").Add("plain.so", "libonnxifi-plain.so");
  const Library library = sandbox.Open();
  const auto backend = library.FindDevice("auto")->InitBackend();
  const auto first = backend->InitGraph(Bytes("double"));
  const auto second =
      backend->InitGraph(Bytes("double alpha=9/" + Number(ONNXIFI_STATUS_UNSUPPORTED_SHAPE)));
  ASSERT_TRUE(first.ok() && second.ok());
  std::vector<float> a = {1, 2}, b = {0, 0}, c = {0, 0}, d = {0, 0};
  const auto tensor = [](const char* name, std::vector<float>& data) {
    return Tensor{name, ONNXIFI_DATATYPE_FLOAT32, {2}, data.data()};
  };
  const Tensor a_x = tensor("x", a), b_y = tensor("y", b), b_x = tensor("x", b),
               c_y = tensor("y", c), c_x = tensor("x", c), d_y = tensor("y", d);
  ASSERT_TRUE(first->SetIO({&a_x, 1}, {&b_y, 1}));
  ASSERT_TRUE(second->SetIO({&b_x, 1}, {&c_y, 1}));
  const auto start = backend->NewEvent();
  const auto after_first = first->Run(*start);
  ASSERT_TRUE(after_first.ok());
  const auto after_second = second->Run(*after_first);
  ASSERT_TRUE(after_second.ok()) << after_second.error().Text();
  ASSERT_TRUE(first->SetIO({&c_x, 1}, {&d_y, 1}));
  const auto after_third = first->Run(*after_second);
  ASSERT_TRUE(after_third.ok()) << after_third.error().Text();
  ASSERT_TRUE(start->Signal());
  ASSERT_TRUE(after_third->Wait());
  EXPECT_THAT(d, ElementsAre(8, 16));
}

}  // namespace
}  // namespace onnxifi::plugins
