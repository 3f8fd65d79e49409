// SPDX-License-Identifier: Apache-2.0
//
// Recorded runs on the first Vulkan device of the machine, skipped where there is none: what a
// steady run asks of the driver, memory that grows, many threads, and each call that makes
// commands failing once. With the validation layer where it is installed: no message.

#include "backends/vulkan/recording.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/plugin/testing/symbolic_encoder.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/reference/device.h"
#include "backends/vulkan/device.h"

namespace onnxifi::vulkan {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Result;
using program::Dim;
using program::Expr;
using program::ExprPool;
using program::Operand;
using program::Program;
using program::ProgramMaker;
using tensor::ElementType;
using tensor::Tensor;

// ---- A driver whose calls are counted, and of which one fails ----

std::atomic<int> calls = 0;  // that make commands, and submissions
std::atomic<int> submissions = 0;
std::atomic<int> failing_call = -1;  // counted as `calls`

bool Fails() { return calls++ == failing_call; }

PFN_vkGetInstanceProcAddr get_instance_function = nullptr;
PFN_vkGetDeviceProcAddr get_device_function = nullptr;
PFN_vkCreateCommandPool create_command_pool = nullptr;
PFN_vkAllocateCommandBuffers allocate_command_buffers = nullptr;
PFN_vkBeginCommandBuffer begin_command_buffer = nullptr;
PFN_vkEndCommandBuffer end_command_buffer = nullptr;
PFN_vkQueueSubmit queue_submit = nullptr;

VkResult VKAPI_CALL CreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo* info,
                                      const VkAllocationCallbacks* allocator, VkCommandPool* pool) {
  if (Fails()) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return create_command_pool(device, info, allocator, pool);
}
VkResult VKAPI_CALL AllocateCommandBuffers(VkDevice device, const VkCommandBufferAllocateInfo* info,
                                           VkCommandBuffer* buffers) {
  if (Fails()) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return allocate_command_buffers(device, info, buffers);
}
VkResult VKAPI_CALL BeginCommandBuffer(VkCommandBuffer buffer,
                                       const VkCommandBufferBeginInfo* info) {
  if (Fails()) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return begin_command_buffer(buffer, info);
}
VkResult VKAPI_CALL EndCommandBuffer(VkCommandBuffer buffer) {
  const VkResult result = end_command_buffer(buffer);
  return Fails() ? VK_ERROR_OUT_OF_DEVICE_MEMORY : result;
}
VkResult VKAPI_CALL QueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                VkFence fence) {
  if (Fails()) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  ++submissions;
  return queue_submit(queue, count, infos, fence);
}

template <typename Function>
PFN_vkVoidFunction Replace(PFN_vkVoidFunction real, Function& saved, Function ours) {
  saved = reinterpret_cast<Function>(real);
  return reinterpret_cast<PFN_vkVoidFunction>(ours);
}

PFN_vkVoidFunction VKAPI_CALL GetDeviceFunction(VkDevice device, const char* name) {
  PFN_vkVoidFunction real = get_device_function(device, name);
  const std::string_view asked = name;
  if (asked == "vkCreateCommandPool") return Replace(real, create_command_pool, &CreateCommandPool);
  if (asked == "vkAllocateCommandBuffers") {
    return Replace(real, allocate_command_buffers, &AllocateCommandBuffers);
  }
  if (asked == "vkBeginCommandBuffer") {
    return Replace(real, begin_command_buffer, &BeginCommandBuffer);
  }
  if (asked == "vkEndCommandBuffer") return Replace(real, end_command_buffer, &EndCommandBuffer);
  if (asked == "vkQueueSubmit") return Replace(real, queue_submit, &QueueSubmit);
  return real;
}

PFN_vkVoidFunction VKAPI_CALL GetInstanceFunction(VkInstance instance, const char* name) {
  PFN_vkVoidFunction real = get_instance_function(instance, name);
  if (std::string_view(name) != "vkGetDeviceProcAddr") return real;
  return Replace(real, get_device_function, &GetDeviceFunction);
}

// ---- A graph on a device ----

// x[N, 8]: the rows of x times a matrix, laid out in working memory first, times x again, twice.
Program MakeProducts() {
  ProgramMaker maker;
  const Dim n = maker.program.dims->NewSymbol("N", /*is_data=*/false);
  const Operand x = maker.Input({n, 8});
  std::vector<float> weights;
  for (int k = 0; k < 64; ++k) weights.push_back(static_cast<float>(k * 5 % 7) - 3);
  const Operand matrix =
      maker.Constant(Tensor::FromValues<float>(ElementType::kFloat32, {8, 8}, weights));
  const Operand product = maker.MatMul(x, matrix);
  const Operand square = maker.MatMul(product, Permute(x, {1, 0}));  // N x N
  const Operand sums = maker.SumRows(square);
  maker.Output(maker.Map({n}, {sums}, [](ExprPool&, const std::vector<Expr>& loads) {
    return loads[0] * Like(loads[0], 2);
  }));
  return std::move(maker.program);
}

class Ready {
 public:
  explicit Ready(device::Device& device) : program_(MakeProducts()) {
    plan_ = *plan::Plan::Create(program_, device, counters_);
    executor_ = std::make_unique<execution::Executor>(*plan_);
    boundary_ = *execution::HostBoundary::Create(*executor_);
  }

  // Small whole numbers, so that sums are exact in any order.
  Result<std::vector<float>> Run(int64_t rows, int seed) {
    std::vector<float> values(static_cast<size_t>(rows * 8));
    for (size_t k = 0; k < values.size(); ++k) {
      values[k] = static_cast<float>((k * 11 + static_cast<size_t>(seed) * 3) % 5);
    }
    const std::vector<Tensor> inputs = {
        Tensor::FromValues<float>(ElementType::kFloat32, {rows, 8}, values)};
    execution::TensorOutputs places(program_);
    ONNXIFI_RETURN_IF_ERROR(boundary_->Run(execution::AsInputs(inputs), places));
    const std::span<const float> results = places.tensors[0].values<float>();
    return std::vector<float>(results.begin(), results.end());
  }

  const plan::Counters& counters() const { return counters_; }
  int recordings() const { return boundary_->recordings()->count(); }

 private:
  const Program program_;
  plan::Counters counters_;
  std::unique_ptr<plan::Plan> plan_;
  std::unique_ptr<execution::Executor> executor_;
  std::unique_ptr<execution::HostBoundary> boundary_;
};

class RecordingTest : public testing::Test {
 protected:
  void SetUp() override {
    failing_call = -1;
    auto api = LoadApi(kLoaderLibrary);
    if (!api.ok()) GTEST_SKIP() << api.status().Text();
    get_instance_function = api->GetInstanceProcAddr;
    api->GetInstanceProcAddr = &GetInstanceFunction;
    auto instance = Instance::Create(*api, /*is_validated=*/true);
    if (!instance.ok()) instance = Instance::Create(*api, /*is_validated=*/false);
    if (!instance.ok()) GTEST_SKIP() << instance.status().Text();
    instance_ = *std::move(instance);
    const auto devices = FindDevices(*instance_);
    if (!devices.ok()) GTEST_SKIP() << devices.status().Text();
    if (devices->fit.empty()) GTEST_SKIP() << "No Vulkan device is fit.";
    std::string folder = (fs::temp_directory_path() / "onnxifi-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    auto device = Device::Open(*instance_, devices->fit.front(), folder_);
    ASSERT_TRUE(device.ok()) << device.status().Text();
    device_ = *std::move(device);
  }
  void TearDown() override {
    failing_call = -1;
    device_ = nullptr;
    if (instance_ != nullptr && instance_->validation() != nullptr) {
      EXPECT_EQ(instance_->validation()->message_count(), 0);
    }
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // Those of the reference.
  static std::vector<float> Expected(int64_t rows, int seed) {
    reference::Device reference;
    return *Ready(reference).Run(rows, seed);
  }
  testing::AssertionResult RunsRight(Ready& ready, int64_t rows, int seed) {
    const auto results = ready.Run(rows, seed);
    if (!results.ok()) return testing::AssertionFailure() << results.status().Text();
    if (*results == Expected(rows, seed)) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "wrong numbers of " << rows << " rows";
  }

  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Device> device_;
  fs::path folder_;
};

TEST_F(RecordingTest, ASteadyRunIsOneSubmissionOfWhatWasRecorded) {
  Ready ready(*device_);
  for (int run = 0; run < 2; ++run) ASSERT_TRUE(RunsRight(ready, 33, run));
  EXPECT_EQ(ready.counters().recordings, 1u);
  const uint64_t counted = ready.counters().submissions;
  const uint64_t allocations = ready.counters().allocations;
  const uint64_t copies = ready.counters().copies;
  const int64_t buffers = device_->buffer_count();
  const int calls_before = calls;
  const int submissions_before = submissions;
  for (int run = 0; run < 10; ++run) ASSERT_TRUE(RunsRight(ready, 33, run));
  EXPECT_EQ(ready.counters().recordings, 1u);
  EXPECT_EQ(ready.counters().submissions, counted + 10);
  EXPECT_EQ(submissions, submissions_before + 10);
  EXPECT_EQ(ready.counters().allocations, allocations);
  EXPECT_EQ(ready.counters().copies, copies + 20) << "one in and one out";
  EXPECT_EQ(device_->buffer_count(), buffers);
  // Where inputs and outputs go through staging memory, commands for these stand around it.
  EXPECT_LE(calls - calls_before, 10 * 5);
}

TEST_F(RecordingTest, LengthsInTurnAndMemoryThatGrows) {
  Ready ready(*device_);
  for (int64_t rows = 50; rows > 0; --rows) ASSERT_TRUE(RunsRight(ready, rows, 1));
  for (int64_t rows = 1; rows < 200; rows = rows * 2 + 1) {
    for (int run = 0; run < 3; ++run) ASSERT_TRUE(RunsRight(ready, rows, run));
  }
  EXPECT_GT(ready.counters().recordings, 0u);
  EXPECT_LE(ready.recordings(), execution::Recordings::kMaxRecordings);
}

TEST_F(RecordingTest, FiftyNumbersOfTokensTakeTheKernelsOfTheFirst) {
  plugin::ExpectFiftyLengthsOfTheSameKernels(*device_, [&] { return device_->kernel_count(); });
}

TEST_F(RecordingTest, WorkingMemoryThatGrowsElsewhereStaysWithWhatWasRecorded) {
  Ready first(*device_);
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(RunsRight(first, 9, run));
  {
    Ready second(*device_);
    for (int run = 0; run < 3; ++run) ASSERT_TRUE(RunsRight(second, 500, run));
    for (int run = 0; run < 3; ++run) ASSERT_TRUE(RunsRight(first, 9, run));
  }
  Ready third(*device_);  // in memory that the second had
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(RunsRight(third, 480, run));
    ASSERT_TRUE(RunsRight(first, 9, run));
  }
  EXPECT_EQ(first.counters().recordings, 1u);
}

TEST_F(RecordingTest, EightThreadsRunOneGraph) {
  Ready ready(*device_);
  std::vector<std::vector<float>> expected;
  for (int rows = 0; rows < 12; ++rows) expected.push_back(Expected(rows + 1, 5));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int run = 0; run < 25; ++run) {
        const int rows = run % 3 == 2 ? 1 + (thread * 5 + run) % 12 : 7;
        const auto results = ready.Run(rows, 5);
        right += results.ok() && *results == expected[static_cast<size_t>(rows - 1)] ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
  EXPECT_GT(ready.counters().recordings, 0u);
}

TEST_F(RecordingTest, AFaultInAnyCallFailsNoMoreThanItsRun) {
  Ready ready(*device_);
  ASSERT_TRUE(RunsRight(ready, 40, 0));
  int faults = 0;
  for (int call = 0;; ++call) {
    Ready graph(*device_);
    // Weights are laid out.
    ASSERT_TRUE(RunsRight(graph, 3, call));
    failing_call = calls + call;
    for (int run = 0; run < 4; ++run) {
      const auto results = graph.Run(17, run);
      if (results.ok()) {
        ASSERT_EQ(*results, Expected(17, run)) << "call " << call << ", run " << run;
      } else {
        EXPECT_EQ(results.status().code(), Code::kNoDeviceMemory) << results.status().Text();
        ++faults;
      }
    }
    const bool has_failed = calls > failing_call;
    failing_call = -1;
    for (int run = 0; run < 3; ++run) ASSERT_TRUE(RunsRight(graph, 17, run)) << "call " << call;
    EXPECT_EQ(graph.recordings(), 1) << "call " << call;
    ASSERT_TRUE(RunsRight(ready, 40, 0));
    if (!has_failed) break;
  }
  EXPECT_GT(faults, 0);
}

}  // namespace
}  // namespace onnxifi::vulkan
