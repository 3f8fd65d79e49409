// SPDX-License-Identifier: Apache-2.0
//
// The auto device as a program sees it that has graphs measured: the order of devices counts until
// then, and what they take from then on.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/mock/testing/shared_number.h"
#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::measurement {
namespace {

// The key of the device that gets the model; empty where it is cut.
std::string ChosenDevice(const Library& library) {
  const auto model = ParseModel(R"(
    graph (float[2, 3] x) => (float[2, 3] y) { a = Abs(x)  b = Neg(a)  c = Neg(b)  y = Abs(c) })");
  const Device device = *library.FindDevice("auto");
  const Backend backend = *device.InitBackend();
  const auto graph = backend.InitGraph(model);
  EXPECT_TRUE(graph.ok()) << graph.error().Text();
  std::vector<float> source = {1, -2, 3, -4, 5, -6};
  std::vector<float> target(6, 0);
  const Tensor x{"x", ONNXIFI_DATATYPE_FLOAT32, {2, 3}, source.data()};
  const Tensor y{"y", ONNXIFI_DATATYPE_FLOAT32, {2, 3}, target.data()};
  EXPECT_TRUE(graph->SetIO({&x, 1}, {&y, 1}));
  EXPECT_TRUE(graph->RunAndWait());
  EXPECT_EQ(target, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const auto plan = graph->Plan();
  EXPECT_TRUE(plan.ok()) << plan.error().Text();
  if (plan->islands.size() != 1) return {};
  return plan->islands[0].device_key;
}

TEST(AutoMeasure, GoesByWhatDevicesTakeOnceThatIsKnown) {
  PlannedSandbox sandbox;
  sandbox.AddMock("afirst", R"({"step_ms": {"*": 60}})")
      .AddMock("second", R"({"step_ms": {"*": 1}})");
  EXPECT_EQ(ChosenDevice(sandbox.Open()), "afirst:0");
  setenv("ONNXIFI_MEASURE", "1", /*overwrite=*/1);
  EXPECT_EQ(ChosenDevice(sandbox.Open()), "second:0");
  unsetenv("ONNXIFI_MEASURE");
  // Kept, for a process that measures nothing.
  EXPECT_EQ(ChosenDevice(sandbox.Open()), "second:0");
  std::filesystem::remove_all(sandbox.folder() / "cache");
  // What this process has read it does not forget; a copy of the library is another process.
  PluginSandbox other;
  std::filesystem::copy(
      sandbox.folder(), other.folder(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(ChosenDevice(other.Open()), "afirst:0");
}

TEST(AutoMeasure, TrialsSearchNoImplementations) {
  PlannedSandbox sandbox;
  const std::string file = (sandbox.folder() / "measured").string();
  const auto measured = mock::SharedNumber::Open(file);
  ASSERT_TRUE(measured.ok()) << measured.status().Text();
  const std::string settings = R"({"step_ms": {"*": 1}, "measured": ")" + file + "\"}";
  sandbox.AddMock("afirst", settings).AddMock("second", settings);
  const Library library = sandbox.Open();
  const Device device = *library.FindDevice("auto");
  const Backend backend = *device.InitBackend();
  const auto model = ParseModel("graph (float[2] x) => (float[2] y) { a = Abs(x)  y = Neg(a) }");
  GraphOptions options;
  options.measure = true;
  const auto graph = backend.InitGraph(model, options);
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  const auto plan = graph->Plan();
  ASSERT_TRUE(plan.ok()) << plan.error().Text();
  EXPECT_EQ((*measured)->Get(), static_cast<int64_t>(plan->islands.size())) << "The graph itself.";
}

}  // namespace
}  // namespace onnxifi::measurement
