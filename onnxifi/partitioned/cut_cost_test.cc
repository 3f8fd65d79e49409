// SPDX-License-Identifier: Apache-2.0
//
// What a boundary between two islands on the CPU costs: no copy, and little time.
// ONNXIFI_TEST_MOST_BOUNDARY_US sets how much where the tensors are small; without it, for machines
// that do other things too, the time is only printed. Between steps that go through large tensors
// it is only printed too: they leave nothing of what a boundary needs in the caches near a core,
// and fetching that again takes longer than all else.

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::partitioned {
namespace {

using Clock = std::chrono::steady_clock;

// A chain of `count` nodes, each on another device than the one before.
std::vector<std::byte> MakeChain(int count, uint64_t rows) {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("chain");
  const auto declare = [&](onnx::ValueInfoProto& value, const std::string& name) {
    value.set_name(name);
    auto& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(static_cast<int64_t>(rows));
    type.mutable_shape()->add_dim()->set_dim_value(64);
  };
  declare(*graph.add_input(), "v0");
  declare(*graph.add_output(), "v" + std::to_string(count));
  for (int k = 0; k < count; ++k) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(k % 2 == 0 ? "Neg" : "Abs");
    node.add_input("v" + std::to_string(k));
    node.add_output("v" + std::to_string(k + 1));
    auto& place = *node.add_metadata_props();
    place.set_key("onnxifi.device");
    place.set_value(k % 2 == 0 ? "one:0" : "two:0");
  }
  const std::string text = model.SerializeAsString();
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

struct Timing {
  double run_us = 0;
  // Of that in steps of the devices.
  double steps_us = 0;
  uint64_t copies = 0;
};

// The best of many runs: others use the machine too.
Timing TimeChain(const Backend& backend, int count, uint64_t rows) {
  Timing timing;
  for (const bool is_profiled : {false, true}) {
    GraphOptions options;
    options.profile = is_profiled;
    const auto graph = backend.InitGraph(MakeChain(count, rows), options);
    EXPECT_TRUE(graph.ok()) << graph.error().Text();
    if (!graph.ok()) return timing;
    const auto plan = graph->Plan();
    EXPECT_EQ(plan->islands.size(), static_cast<size_t>(count));
    std::vector<float> source(rows * 64, -2);
    std::vector<float> target(rows * 64);
    const std::string name = "v" + std::to_string(count);
    const Tensor x{"v0", ONNXIFI_DATATYPE_FLOAT32, {rows, 64}, source.data()};
    const Tensor y{name.c_str(), ONNXIFI_DATATYPE_FLOAT32, {rows, 64}, target.data()};
    EXPECT_TRUE(graph->SetIO({&x, 1}, {&y, 1}));
    const int runs = rows > 100 ? 40 : 400;
    std::vector<double> times;
    for (int run = 0; run < runs; ++run) {
      const auto start = Clock::now();
      const Outcome outcome = graph->RunAndWait();
      const std::chrono::duration<double, std::micro> took = Clock::now() - start;
      EXPECT_TRUE(outcome.ok()) << outcome.error().Text();
      if (!is_profiled) {
        times.push_back(took.count());
        continue;
      }
      double sum_us = 0;
      const auto steps = graph->Profile();
      EXPECT_TRUE(steps.ok());
      for (const StepRecord& step : *steps) sum_us += static_cast<double>(step.duration_ns) * 1e-3;
      times.push_back(sum_us);
    }
    (is_profiled ? timing.steps_us : timing.run_us) = *std::min_element(times.begin(), times.end());
    EXPECT_EQ(target[5], count % 2 == 0 ? 2 : -2);
    timing.copies += graph->Counters()->copies;
  }
  return timing;
}

// Two copies of the CPU plugin.
class Boundary : public testing::Test {
 public:
  void SetUp() override {
    if (!std::filesystem::exists(ONNXIFI_TEST_CPU)) GTEST_SKIP() << "The CPU plugin is not built.";
    for (const char* name : {"one", "two"}) {
      std::filesystem::copy_file(ONNXIFI_TEST_CPU,
                                 stage_.folder() / (std::string("libonnxifi-") + name + ".so"));
    }
  }

 protected:
  PlannedSandbox stage_;
};

TEST_F(Boundary, BetweenIslandsOnTheCpuCostsLittle) {
  const char* most_us = std::getenv("ONNXIFI_TEST_MOST_BOUNDARY_US");
  const Library library = stage_.Open();
  const Device device = *library.FindDevice("auto");
  const Backend backend = *device.InitBackend();
  constexpr int kFew = 2;
  constexpr int kMany = 34;
  // Work that is over before another thread would begin, and work that is not.
  for (const uint64_t rows : {1, 2000}) {
    const Timing few = TimeChain(backend, kFew, rows);
    const Timing many = TimeChain(backend, kMany, rows);
    const double per_boundary_us =
        ((many.run_us - many.steps_us) - (few.run_us - few.steps_us)) / (kMany - kFew);
    std::cout << rows * 64 << " elements: " << per_boundary_us << " us for a boundary ("
              << many.run_us << " us for " << kMany << " islands, " << many.steps_us
              << " us of it in steps)\n";
    if (most_us != nullptr && rows == 1) {
      EXPECT_LT(per_boundary_us, std::strtod(most_us, nullptr));
    }
    EXPECT_EQ(few.copies, 0U);
    EXPECT_EQ(many.copies, 0U);
  }
}

TEST_F(Boundary, IsCrossedByTheThreadThatStartsTheRunWhereItMay) {
  const Library library = stage_.Open();
  // A chain for both devices, and one that one of them has whole.
  for (const char* key : {"auto", "one:0"}) {
    const Device device = *library.FindDevice(key);
    const Backend backend = *device.InitBackend();
    for (const bool caller_runs : {false, true}) {
      GraphOptions options;
      options.caller_runs = caller_runs;
      constexpr uint64_t kRows = 40'000;
      const auto graph = backend.InitGraph(MakeChain(3, kRows), options);
      ASSERT_TRUE(graph.ok()) << graph.error().Text();
      std::vector<float> source(kRows * 64, -2);
      std::vector<float> target(kRows * 64);
      const Tensor x{"v0", ONNXIFI_DATATYPE_FLOAT32, {kRows, 64}, source.data()};
      const Tensor y{"v3", ONNXIFI_DATATYPE_FLOAT32, {kRows, 64}, target.data()};
      ASSERT_TRUE(graph->SetIO({&x, 1}, {&y, 1}));
      const auto input = backend.NewEvent();
      ASSERT_TRUE(input->Signal());
      // The first run has more to do.
      for (int run = 0; run < 2; ++run) {
        const auto end = graph->Run(*input);
        ASSERT_TRUE(end.ok());
        if (caller_runs) {
          EXPECT_TRUE(*end->IsSignalled()) << key;
        }
        ASSERT_TRUE(end->Wait());
        EXPECT_EQ(target[5], -2);
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::partitioned
