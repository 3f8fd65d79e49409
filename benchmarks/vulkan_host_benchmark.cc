// SPDX-License-Identifier: Apache-2.0
//
// What the host spends on a steady run of the Vulkan plugin: from the call to the submission, on
// the fake driver, whose kernels do nothing. Its bookkeeping in the calls before the submission is
// counted. Prints figures; no test depends on them.

#include <fmt/format.h>
#include <onnx/onnx_pb.h>
#include <onnx/onnxifi.h>
#include <onnxifi/sdk.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "backends/vulkan/testing/fake_driver.h"

namespace onnxifi::vulkan {
namespace {

constexpr int kNodes = 30;  // a kernel each
constexpr int64_t kWidth = 16;
constexpr int kRuns = 1000;

// Products one behind the other.
std::string MakeModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("chain");
  const auto declare = [](onnx::ValueInfoProto* value, const std::string& name) {
    value->set_name(name);
    auto& type = *value->mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(1);
    type.mutable_shape()->add_dim()->set_dim_value(kWidth);
  };
  for (int k = 0; k < kNodes; ++k) {
    onnx::TensorProto& weight = *graph.add_initializer();
    weight.set_name(fmt::format("w{}", k));
    weight.set_data_type(onnx::TensorProto::FLOAT);
    weight.add_dims(kWidth);
    weight.add_dims(kWidth);
    for (int64_t place = 0; place < kWidth * kWidth; ++place) {
      weight.add_float_data(static_cast<float>((place + k) % 7));
    }
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("MatMul");
    node.add_input(fmt::format("x{}", k));
    node.add_input(weight.name());
    node.add_output(fmt::format("x{}", k + 1));
  }
  declare(graph.add_input(), "x0");
  declare(graph.add_output(), fmt::format("x{}", kNodes));
  return model.SerializeAsString();
}

bool Check(onnxStatus status, const char* function) {
  if (status == ONNXIFI_STATUS_SUCCESS) return true;
  fmt::print(stderr, "vulkan_host_benchmark: {} answers {:#x}.\n", function,
             static_cast<uint32_t>(status));
  return false;
}

onnxTensorDescriptorV1 Describe(const char* name, const std::array<uint64_t, 2>& shape,
                                std::vector<float>& values) {
  onnxTensorDescriptorV1 tensor = {};
  tensor.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
  tensor.name = name;
  tensor.dataType = ONNXIFI_DATATYPE_FLOAT32;
  tensor.memoryType = ONNXIFI_MEMORY_TYPE_CPU;
  tensor.dimensions = 2;
  tensor.shape = shape.data();
  tensor.buffer = reinterpret_cast<onnxPointer>(values.data());
  return tensor;
}

// Prints a line for runs by the calling thread, or by the backend's.
bool Measure(onnxBackendID id, onnxBackend backend, bool caller_runs) {
  const std::string model = MakeModel();
  const std::array<uint64_t, 3> properties = {ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS,
                                              caller_runs ? 1U : 0U, ONNXIFI_GRAPH_PROPERTY_NONE};
  onnxGraph graph = nullptr;
  if (!Check(
          onnxInitGraph(backend, properties.data(), model.size(), model.data(), 0, nullptr, &graph),
          "onnxInitGraph")) {
    return false;
  }
  std::vector<float> x(kWidth, 1);
  std::vector<float> y(kWidth);
  const std::array<uint64_t, 2> shape = {1, kWidth};
  const std::string last = fmt::format("x{}", kNodes);
  const onnxTensorDescriptorV1 input = Describe("x0", shape, x);
  const onnxTensorDescriptorV1 output = Describe(last.c_str(), shape, y);
  if (!Check(onnxSetGraphIO(graph, 1, &input, 1, &output), "onnxSetGraphIO")) return false;
  onnxExtensionFunctionPointer address = nullptr;
  if (!Check(onnxGetExtensionFunctionAddress(id, "onnxGetGraphCounters", &address),
             "onnxGetExtensionFunctionAddress")) {
    return false;
  }
  const auto counters_of =
      reinterpret_cast<onnxGetGraphCountersFunction>(reinterpret_cast<void (*)()>(address));
  onnxGraphCounters before = {};
  before.struct_size = sizeof(before);
  std::vector<double> times_us;
  constexpr int kWarm = 10;
  for (int run = -kWarm; run < kRuns; ++run) {
    if (run == 0) {
      FakeDriver::Recover();
      if (!Check(counters_of(graph, &before), "onnxGetGraphCounters")) return false;
    }
    onnxMemoryFenceV1 input_fence = {};
    input_fence.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
    input_fence.type = ONNXIFI_SYNCHRONIZATION_EVENT;
    onnxMemoryFenceV1 output_fence = input_fence;
    if (!Check(onnxInitEvent(backend, &input_fence.event), "onnxInitEvent") ||
        !Check(onnxSignalEvent(input_fence.event), "onnxSignalEvent")) {
      return false;
    }
    const auto called = std::chrono::steady_clock::now();
    if (!Check(onnxRunGraph(graph, &input_fence, &output_fence), "onnxRunGraph") ||
        !Check(onnxWaitEvent(output_fence.event), "onnxWaitEvent")) {
      return false;
    }
    const std::chrono::duration<double, std::micro> spent = FakeDriver::LastSubmission() - called;
    if (run >= 0) times_us.push_back(spent.count());
    static_cast<void>(onnxReleaseEvent(input_fence.event));
    static_cast<void>(onnxReleaseEvent(output_fence.event));
  }
  onnxGraphCounters after = before;
  if (!Check(counters_of(graph, &after), "onnxGetGraphCounters")) return false;
  std::ranges::sort(times_us);
  fmt::print("{:<10}  {:>7}  {:>11}  {:>10}  {:>9.1f}  {:>6.1f}\n",
             caller_runs ? "caller's" : "backend's", FakeDriver::Starts().size() / kRuns,
             after.submissions - before.submissions, after.recordings - before.recordings,
             times_us[times_us.size() / 2], times_us[times_us.size() * 9 / 10]);
  return Check(onnxReleaseGraph(graph), "onnxReleaseGraph");
}

bool Run() {
  FakeDriver::Reset();
  onnxBackendID id = nullptr;
  size_t count = 1;
  onnxBackend backend = nullptr;
  if (!Check(onnxGetBackendIDs(&id, &count), "onnxGetBackendIDs") ||
      !Check(onnxInitBackend(id, nullptr, &backend), "onnxInitBackend")) {
    return false;
  }
  fmt::print("From the call to the submission, {} steady runs on the fake driver:\n", kRuns);
  fmt::print("{:<10}  {:>7}  {:>11}  {:>10}  {:>9}  {:>6}\n", "thread", "kernels", "submissions",
             "recordings", "median us", "90 %");
  bool is_done = true;
  for (const bool caller_runs : {true, false}) {
    is_done = is_done && Measure(id, backend, caller_runs);
  }
  return Check(onnxReleaseBackend(backend), "onnxReleaseBackend") && is_done;
}

}  // namespace
}  // namespace onnxifi::vulkan

int main() { return onnxifi::vulkan::Run() ? 0 : 1; }
