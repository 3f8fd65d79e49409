// SPDX-License-Identifier: Apache-2.0
//
// Tensors between islands on the CPU and on a device of OpenCL that shares memory with the host:
// not copied where they are large, and right wherever they lie. Skipped without such a device.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::partitioned {
namespace {

// y = -|(-x) * 2 - x|, with the product and the difference on the device, the others on the CPU.
std::vector<std::byte> MakeModel() {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, R"(
    <ir_version: 10, opset_import: ["" : 21]>
    graph (float[rows, 64] x) => (float[rows, 64] y)
    <float two = {2}>
    {
      a = Neg(x)  b = Mul(a, two)  c = Sub(b, x)  d = Abs(c)  y = Neg(d)
    })");
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage();
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    const bool is_far = node.op_type() == "Mul" || node.op_type() == "Sub";
    auto& place = *node.add_metadata_props();
    place.set_key("onnxifi.device");
    place.set_value(is_far ? "opencl:0" : "cpu:0");
  }
  const std::string text = model.SerializeAsString();
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

class SharedCut : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* plugin : {ONNXIFI_TEST_CPU, ONNXIFI_TEST_OPENCL}) {
      const std::filesystem::path file = plugin;
      if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not built.";
      std::filesystem::copy_file(file, stage_.folder() / file.filename());
    }
    library_ = std::make_unique<Library>(stage_.Open());
    const auto far = library_->FindDevice("opencl:0");
    if (!far.ok()) GTEST_SKIP() << far.error().Text();
    const auto memory = far->InitBackend()->AllocateSharedMemory(64);
    if (!memory.ok()) GTEST_SKIP() << memory.error().Text();
    backend_.emplace(*library_->FindDevice("auto")->InitBackend());
  }

  // Runs a few times; adds the copies that were made.
  void Run(const Graph& graph, uint64_t rows, uint64_t& copies) {
    std::mt19937 random(static_cast<uint32_t>(rows));
    std::uniform_int_distribution<int> number(-50, 50);
    std::vector<float> x(rows * 64);
    std::vector<float> y(rows * 64);
    const Tensor in{"x", ONNXIFI_DATATYPE_FLOAT32, {rows, 64}, x.data()};
    const Tensor out{"y", ONNXIFI_DATATYPE_FLOAT32, {rows, 64}, y.data()};
    ASSERT_TRUE(graph.SetIO({&in, 1}, {&out, 1}));
    const uint64_t before = graph.Counters()->copies;
    for (int run = 0; run < 3; ++run) {
      for (float& value : x) value = static_cast<float>(number(random));
      const Outcome ran = graph.RunAndWait();
      ASSERT_TRUE(ran.ok()) << ran.error().Text();
      for (size_t k = 0; k < x.size(); ++k) ASSERT_EQ(y[k], -std::abs(3 * x[k])) << k;
    }
    copies = graph.Counters()->copies - before;
  }

  PlannedSandbox stage_;
  std::unique_ptr<Library> library_;
  std::optional<Backend> backend_;
};

TEST_F(SharedCut, CopiesNothingThatIsLarge) {
  const auto graph = backend_->InitGraph(MakeModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  ASSERT_EQ(graph->Plan()->islands.size(), 3U);
  // Where a copy is cheaper than a buffer, there is one into the device and one out of it.
  for (const auto& [rows, copies] :
       {std::pair<uint64_t, uint64_t>(2000, 0), {3, 9}, {700, 0}, {5000, 0}}) {
    uint64_t counted = 99;
    Run(*graph, rows, counted);
    // The caller's x goes in, too: the difference reads it.
    EXPECT_EQ(counted, rows == 3 ? copies : copies + 3) << rows;
  }
}

TEST_F(SharedCut, SurvivesTheBindingThatItWasMadeFor) {
  const auto graph = backend_->InitGraph(MakeModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  // What a device still has bound is not given back under its hands: each binding here is dropped
  // while the device has it, and others' memory comes and goes.
  for (uint64_t rows = 300; rows < 330; ++rows) {
    uint64_t copies = 0;
    Run(*graph, rows, copies);
    const auto other = backend_->InitGraph(MakeModel());
    ASSERT_TRUE(other.ok());
    Run(*other, 1000 - rows, copies);
  }
}

}  // namespace
}  // namespace onnxifi::partitioned
