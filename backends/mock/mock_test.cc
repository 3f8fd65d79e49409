// SPDX-License-Identifier: Apache-2.0
//
// The mock plugin as a caller of the interface sees it: each setting shows in what it does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>
#include <stdlib.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <onnxifi/onnxifi.hpp>
#include <string>
#include <thread>
#include <vector>

#include "backends/mock/testing/shared_number.h"

namespace onnxifi::mock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kModel = R"(
<ir_version: 10, opset_import: ["" : 20]>
graph (float[4] x) => (float[4] y) { t = Abs(x)  y = Neg(t) }
)";

std::vector<std::byte> Parse(const char* text) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, text);
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  const std::string bytes = model.SerializeAsString();
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

// A copy of the plugin with these settings in a folder of its own.
class Mock : public testing::Test {
 public:
  Mock() {
    std::string pattern = (std::filesystem::temp_directory_path() / "onnxifi-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Mock() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

 protected:
  Library Open(const std::string& settings) {
    const std::filesystem::path file = folder_ / "libonnxifi-told.so";
    std::filesystem::copy_file(ONNXIFI_TEST_MOCK, file);
    std::ofstream(file.string() + ".json") << settings;
    auto library = Library::Open(file.string());
    EXPECT_TRUE(library.ok()) << library.error().Text();
    return *std::move(library);
  }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

// The model on the first device, with its inputs and outputs.
struct Session {
  explicit Session(const Device& device)
      : backend(*device.InitBackend()), graph(backend.InitGraph(Parse(kModel))) {}
  Outcome RunOnce() {
    if (Outcome bound = graph->SetIO({&x, 1}, {&y, 1}); !bound) return bound;
    return graph->RunAndWait();
  }
  std::vector<float> source = {1, -2, 3, -4};
  std::vector<float> target = {0, 0, 0, 0};
  Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {4}, source.data()};
  Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {4}, target.data()};
  Backend backend;
  Result<Graph> graph;
};

TEST_F(Mock, IsACompleteDeviceByDefault) {
  const Library library = Open("{}");
  Session session((*library.Devices())[0]);
  ASSERT_TRUE(session.graph.ok()) << session.graph.error().Text();
  ASSERT_TRUE(session.RunOnce());
  EXPECT_THAT(session.target, ElementsAre(-1, -2, -3, -4));
}

TEST_F(Mock, RefusesWhatItDoesNotClaimInClaimsAndInitialisation) {
  const Library library = Open(R"({"devices": 2, "type": "gpu", "operators": ["Abs"]})");
  const std::vector<Device> devices = *library.Devices();
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(*devices[1].NumberInfo(ONNXIFI_BACKEND_DEVICE_TYPE), uint64_t{ONNXIFI_DEVICE_TYPE_GPU});
  const Outcome claim = devices[0].CheckCompatibility(Parse(kModel));
  ASSERT_FALSE(claim.ok());
  EXPECT_EQ(claim.error().status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_THAT(claim.error().Text(), HasSubstr("'Neg'"));
  const auto explanation = devices[0].Explain(Parse(kModel));
  ASSERT_TRUE(explanation.ok());
  ASSERT_EQ(explanation->nodes.size(), 2U);
  EXPECT_EQ(explanation->nodes[0].status, ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(explanation->nodes[1].status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  const Session session(devices[0]);
  ASSERT_FALSE(session.graph.ok());
  EXPECT_EQ(session.graph.error().status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
}

TEST_F(Mock, LiesWhereItIsToldTo) {
  const Library library = Open(R"({"lies": ["Neg"]})");
  const Device device = (*library.Devices())[0];
  EXPECT_TRUE(device.CheckCompatibility(Parse(kModel)).ok());
  const Session session(device);
  ASSERT_FALSE(session.graph.ok());
  EXPECT_EQ(session.graph.error().status, ONNXIFI_STATUS_UNSUPPORTED_OPERATOR);
  EXPECT_THAT(session.graph.error().Text(), HasSubstr("claimed"));
}

TEST_F(Mock, TakesTheTimeOfItsSteps) {
  const Library library = Open(R"({"step_ms": {"Abs": 4, "*": 2}, "launch_ms": 1})");
  Session session((*library.Devices())[0]);
  ASSERT_TRUE(session.RunOnce());
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(session.graph->RunAndWait());
  // Sleeping is never shorter; how much longer is the machine's affair.
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(7));
  EXPECT_THAT(session.target, ElementsAre(-1, -2, -3, -4));
}

TEST_F(Mock, SetsTheClockForwardInsteadOfSleeping) {
  const auto clock = *SharedNumber::Open(folder() / "clock");
  const Library library = Open(R"({"step_ms": {"Abs": 40000, "*": 2}, "launch_ms": 1, "clock": ")" +
                               (folder() / "clock").string() + "\"}");
  Session session((*library.Devices())[0]);
  ASSERT_TRUE(session.RunOnce());
  ASSERT_TRUE(session.graph->RunAndWait());
  EXPECT_EQ(clock->Get(), 2 * int64_t{40003} * 1000 * 1000);
}

TEST_F(Mock, WaitsAtItsGate) {
  const auto gate = *SharedNumber::Open(folder() / "gate");
  const Library library =
      Open(R"({"gate_opens_at": 3, "gate": ")" + (folder() / "gate").string() + "\"}");
  Session session((*library.Devices())[0]);
  ASSERT_TRUE(session.graph->SetIO({&session.x, 1}, {&session.y, 1}));
  const auto input = session.backend.NewEvent();
  ASSERT_TRUE(input->Signal());
  const auto run = session.graph->Run(*input);
  ASSERT_TRUE(run.ok());
  while (gate->Get() < 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(*run->IsSignalled());
  gate->Add(2);
  EXPECT_TRUE(run->Wait());
  EXPECT_THAT(session.target, ElementsAre(-1, -2, -3, -4));
}

TEST_F(Mock, FailsLate) {
  const Library library = Open(R"({"fails_at_run": 2})");
  Session session((*library.Devices())[0]);
  ASSERT_TRUE(session.RunOnce());
  const Outcome second = session.graph->RunAndWait();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().status, ONNXIFI_STATUS_INTERNAL_ERROR);
  EXPECT_FALSE(session.graph->RunAndWait().ok());
}

TEST_F(Mock, VanishesForEverything) {
  const Library library = Open(R"({"vanishes_at_run": 2})");
  const Device device = (*library.Devices())[0];
  Session session(device);
  ASSERT_TRUE(session.RunOnce());
  const Outcome second = session.graph->RunAndWait();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
  const Outcome third = session.RunOnce();
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
  const auto graph = session.backend.InitGraph(Parse(kModel));
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE);
}

TEST_F(Mock, HasAsMuchMemoryAsItIsGiven) {
  const Library library = Open(R"({"memory_bytes": 1024})");
  const Device device = (*library.Devices())[0];
  EXPECT_EQ(*device.NumberInfo(ONNXIFI_BACKEND_MEMORY_SIZE), 1024U);
  // A product in the middle, which takes memory of the device.
  const Backend backend = *device.InitBackend();
  const auto graph = backend.InitGraph(Parse(R"(
    <ir_version: 10, opset_import: ["" : 20]>
    graph (float[64, 64] x) => (float[64, 64] y) { t = MatMul(x, x)  y = MatMul(t, x) }
  )"));
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  std::vector<float> data(64 * 64, 1);
  std::vector<float> result(64 * 64);
  const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {64, 64}, data.data()};
  const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {64, 64}, result.data()};
  Outcome outcome = graph->SetIO({&x, 1}, {&y, 1});
  if (outcome.ok()) outcome = graph->RunAndWait();
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().Text(), HasSubstr("1024"));
}

TEST_F(Mock, SaysWhatIsWrongWithItsSettings) {
  const Library library = Open(R"({"speed": 3})");
  const auto devices = library.Devices();
  ASSERT_FALSE(devices.ok());
  EXPECT_THAT(devices.error().Text(), HasSubstr("'speed'"));
}

}  // namespace
}  // namespace onnxifi::mock
