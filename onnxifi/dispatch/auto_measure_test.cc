// SPDX-License-Identifier: Apache-2.0
//
// The auto device as a program sees it that has graphs measured: the order of devices counts until
// then, and what they take from then on.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <vector>

#include "onnxifi/dispatch/planned_stage.h"

namespace onnxifi::dispatch {
namespace {

constexpr std::chrono::milliseconds kSlow(120);

std::chrono::nanoseconds TimeOfARun(const Library& library) {
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
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(graph->RunAndWait());
  const auto taken = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(target, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  return taken;
}

TEST(AutoMeasure, GoesByWhatDevicesTakeOnceThatIsKnown) {
  PlannedStage stage;
  stage.AddMock("afirst", R"({"step_ms": {"*": 40}})")
      .AddMock("second", R"({"step_ms": {"*": 1}})");
  EXPECT_GE(TimeOfARun(stage.Open()), kSlow);
  setenv("ONNXIFI_MEASURE", "1", /*overwrite=*/1);
  EXPECT_LT(TimeOfARun(stage.Open()), kSlow);
  unsetenv("ONNXIFI_MEASURE");
  // Kept, for a process that measures nothing.
  EXPECT_LT(TimeOfARun(stage.Open()), kSlow);
  std::filesystem::remove_all(stage.folder() / "cache");
  // What this process has read it does not forget; a copy of the library is another process.
  Stage other;
  std::filesystem::copy(
      stage.folder(), other.folder(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  EXPECT_GE(TimeOfARun(other.Open()), kSlow);
}

}  // namespace
}  // namespace onnxifi::dispatch
