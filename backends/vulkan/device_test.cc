// SPDX-License-Identifier: Apache-2.0
//
// The backend on the first Vulkan device of the machine, skipped where there is none: kernels from
// one process to the next, more groups than an axis takes, large buffers, and how few allocations
// of the driver's a model needs.

#include "backends/vulkan/device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/model/import.h"
#include "backends/core/plugin/pipeline.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/reference/device.h"
#include "backends/core/reference/random_step.h"

namespace onnxifi::vulkan {
namespace {

namespace fs = std::filesystem;
using base::Result;
using program::Expr;
using program::ExprPool;
using program::Operand;
using program::Program;
using program::ProgramMaker;
using tensor::ElementType;
using tensor::Tensor;

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto api = LoadApi(kLoaderLibrary);
    if (!api.ok()) GTEST_SKIP() << api.status().Text();
    auto instance = Instance::Create(*api);
    if (!instance.ok()) GTEST_SKIP() << instance.status().Text();
    instance_ = *std::move(instance);
    auto found = FindDevices(*instance_);
    ASSERT_TRUE(found.ok()) << found.status().Text();
    if (found->fit.empty()) GTEST_SKIP() << "No Vulkan device is fit.";
    info_ = found->fit.front();
    std::string name = (fs::temp_directory_path() / "vulkan_device.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  std::unique_ptr<Device> Open(const fs::path& cache_folder = {}) const {
    Result<std::unique_ptr<Device>> device = Device::Open(*instance_, info_, cache_folder);
    EXPECT_TRUE(device.ok()) << device.status().Text();
    return device.ok() ? *std::move(device) : nullptr;
  }

  std::unique_ptr<Instance> instance_;
  DeviceInfo info_;
  fs::path folder_;
};

// The outputs of a run.
std::vector<Tensor> RunOn(Device& device, const Program& program,
                          const std::vector<Tensor>& inputs) {
  plan::Counters counters;
  const auto plan = plan::Plan::Create(program, device, counters);
  EXPECT_TRUE(plan.ok()) << plan.status().Text();
  if (!plan.ok()) return {};
  execution::Executor executor(**plan);
  const auto boundary = execution::HostBoundary::Create(executor);
  EXPECT_TRUE(boundary.ok()) << boundary.status().Text();
  if (!boundary.ok()) return {};
  execution::TensorOutputs outputs(program);
  const base::Status ran = (*boundary)->Run(execution::AsInputs(inputs), outputs);
  EXPECT_TRUE(ran.ok()) << ran.Text();
  return std::move(outputs.tensors);
}

// The sums of the rows of x + 1, by two kernels.
ProgramMaker MakeSums() {
  ProgramMaker maker;
  const Operand x = maker.Input({7, 5});
  const Operand more = maker.Map({7, 5}, {x}, [](ExprPool&, const std::vector<Expr>& loads) {
    return loads[0] + Like(loads[0], 1);
  });
  maker.Output(maker.SumRows(more));
  return maker;
}

void ExpectSums(Device& device) {
  const std::vector<float> ones(35, 1);
  const std::vector<Tensor> sums = RunOn(
      device, MakeSums().program, {Tensor::FromValues<float>(ElementType::kFloat32, {7, 5}, ones)});
  ASSERT_EQ(sums.size(), 1U);
  for (int64_t row = 0; row < 7; ++row) EXPECT_EQ(sums[0].AsDouble(row), 10);
}

// What ASecondProcessFindsEveryKernelOnDisk starts: says how many kernels it compiled.
TEST_F(DeviceTest, DISABLED_CountsWhatItCompiles) {
  const char* const kernels = getenv("VULKAN_TEST_KERNELS");
  if (kernels == nullptr) GTEST_SKIP() << "Nobody started it.";
  const std::unique_ptr<Device> device = Open(kernels);
  ExpectSums(*device);
  std::printf("compiled %lld of %lld\n", static_cast<long long>(device->compiled_count()),
              static_cast<long long>(device->kernel_count()));
}

// Without the driver's own cache, Mesa's.
TEST_F(DeviceTest, ASecondProcessFindsEveryKernelOnDisk) {
  const auto told_by_process = [&] {
    const std::string command = "VULKAN_TEST_KERNELS='" + (folder_ / "kernels").string() +
                                "' MESA_SHADER_CACHE_DISABLE=true '" +
                                fs::read_symlink("/proc/self/exe").string() +
                                "' --gtest_also_run_disabled_tests"
                                " --gtest_filter='DeviceTest.DISABLED_CountsWhatItCompiles' 2>&1";
    FILE* const child = popen(command.c_str(), "r");
    std::string output;
    std::array<char, 256> part{};
    while (fgets(part.data(), static_cast<int>(part.size()), child) != nullptr) {
      output += part.data();
    }
    EXPECT_EQ(pclose(child), 0) << output;
    const size_t at = output.find("compiled ");
    EXPECT_NE(at, std::string::npos) << output;
    return at == std::string::npos ? std::string() : output.substr(at, output.find('\n', at) - at);
  };
  EXPECT_EQ(told_by_process(), "compiled 2 of 2");
  EXPECT_EQ(told_by_process(), "compiled 0 of 2");
}

// Rows begin an element behind a multiple of 16 bytes, so that an item takes one element.
TEST_F(DeviceTest, MoreGroupsThanAnAxisTakesAreRight) {
  if (info_.most_groups_x > 65'535) GTEST_SKIP() << "An axis takes more groups.";
  const std::unique_ptr<Device> device = Open();
  const int64_t count = (int64_t{info_.most_groups_x} + 3) * 64 + 5;
  reference::RandomStep made;
  program::Step step;
  for (const int64_t extent : {count + 1, count}) {
    Tensor tensor = *Tensor::Allocate(ElementType::kFloat32, {extent});
    auto* elements = reinterpret_cast<float*>(tensor.mutable_data());
    for (int64_t k = 0; k < extent; ++k) elements[k] = static_cast<float>(k % 1021);
    made.buffers.push_back(std::move(tensor));
    const program::BufferId id = made.program.AddBuffer(
        {program::Buffer::Kind::kTemporary, ElementType::kFloat32, {extent}});
    (extent == count ? step.writes : step.reads)
        .push_back(program::DenseView(id, ElementType::kFloat32, {extent}));
  }
  step.reads[0].offset = 1;
  step.domain = {count};
  const Expr x = Load(made.program.exprs, ElementType::kFloat32, 0);
  step.body = program::Map{{(x + Like(x, 0.5)).id()}};
  made.program.steps.push_back(std::move(step));
  reference::Device reference;
  const auto expected = RunStep(reference, made);
  const auto actual = RunStep(*device, made);
  ASSERT_TRUE(expected.ok()) << expected.status().Text();
  ASSERT_TRUE(actual.ok()) << actual.status().Text();
  const auto difference = FindDifference(made, *expected, *actual);
  EXPECT_FALSE(difference) << *difference;
}

// Nobody looks at the pages between, so that the system need not have them.
TEST_F(DeviceTest, ABufferOf1536MebibytesIsReadAndWrittenToItsEnd) {
  constexpr int64_t kBytes = int64_t{1536} << 20;
  constexpr int64_t kCount = 1000;
  if (info_.largest_allocation_bytes < kBytes) GTEST_SKIP() << "The device allocates less.";
  const std::unique_ptr<Device> device = Open();
  auto memory = device->memory().Allocate(kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status().Text();
  Program program;
  const program::BufferId id =
      program.AddBuffer({program::Buffer::Kind::kTemporary, ElementType::kUint8, {kBytes}});
  program::Step step;
  step.domain = {kCount};
  // The last elements become one more than the first.
  step.reads = {program::DenseView(id, ElementType::kUint8, {kCount})};
  step.writes = step.reads;
  step.writes[0].offset = kBytes - kCount;
  const Expr x = Load(program.exprs, ElementType::kUint8, 0);
  step.body = program::Map{{(x + Like(x, 1)).id()}};
  program.steps.push_back(std::move(step));
  const auto selection = device->Select({program, program.steps[0]});
  ASSERT_TRUE(selection.ok()) << selection.status().Text();
  const auto kernel = device->Build(*selection->recipe);
  ASSERT_TRUE(kernel.ok()) << kernel.status().Text();
  std::byte* const constants[] = {nullptr};
  const auto bound = (*kernel)->Bind(device::Bind(program, program.steps[0], {}), constants);
  ASSERT_TRUE(bound.ok()) << bound.status().Text();
  auto queue = device->NewQueue();
  ASSERT_TRUE(queue.ok()) << queue.status().Text();
  std::vector<std::byte> first(kCount);
  for (size_t k = 0; k < first.size(); ++k) first[k] = static_cast<std::byte>(k * 7);
  std::vector<std::byte> last(kCount);
  std::byte* const addresses[] = {(*memory)->data()};
  ASSERT_TRUE((*queue)->Upload(first.data(), addresses[0], kCount).ok());
  ASSERT_TRUE((*bound)->Enqueue(**queue, addresses).ok());
  ASSERT_TRUE((*queue)->Download(addresses[0] + kBytes - kCount, last.data(), kCount).ok());
  ASSERT_TRUE((*queue)->Finish().ok());
  for (size_t k = 0; k < last.size(); ++k) {
    ASSERT_EQ(static_cast<uint8_t>(last[k]), static_cast<uint8_t>(k * 7 + 1)) << k;
  }
}

// Drivers allow 4,096; a few models have to fit beside each other.
constexpr int64_t kMaxAllocations = 100;

TEST_F(DeviceTest, AModelOfManyLayersNeedsFewAllocationsOfTheDrivers) {
  const std::unique_ptr<Device> device = Open();
  ProgramMaker maker;
  constexpr int64_t kWidth = 512;
  constexpr int kLayers = 120;
  const Operand x = maker.Input({4, kWidth});
  Operand value = x;
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::vector<float> weights(kWidth * kWidth, 1.0F / kWidth);
    value = maker.MatMul(value, maker.Constant(Tensor::FromValues<float>(
                                    ElementType::kFloat32, {kWidth, kWidth}, weights)));
    const std::vector<float> bias(kWidth, 1);
    const Operand added =
        maker.Constant(Tensor::FromValues<float>(ElementType::kFloat32, {kWidth}, bias));
    value = maker.Map({4, kWidth}, {value, added}, [](ExprPool&, const std::vector<Expr>& loads) {
      return loads[0] + loads[1];
    });
  }
  maker.Output(value);
  const std::vector<float> ones(4 * kWidth, 1);
  const std::vector<Tensor> outputs =
      RunOn(*device, maker.program,
            {Tensor::FromValues<float>(ElementType::kFloat32, {4, kWidth}, ones)});
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_NEAR(outputs[0].AsDouble(0), kLayers + 1, 0.01);
  EXPECT_GT(device->buffer_count(), kLayers);
  EXPECT_LT(device->block_count(), kMaxAllocations);
}

TEST_F(DeviceTest, TheModelOfTheSamplesNeedsFewAllocationsOfTheDrivers) {
  std::ifstream file("samples/digits/digits.onnx", std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  const auto graph = model::Import(std::as_bytes(std::span(text)), {});
  ASSERT_TRUE(graph.ok()) << graph.status().Text();
  const std::unique_ptr<Device> device = Open();
  plugin::LoadTimes times;
  const auto program = plugin::Compile(*graph, *device, base::Log(base::LogLevel::kError), times);
  ASSERT_TRUE(program.ok()) << program.status().Text();
  const std::vector<float> image(64, 0.5F);
  const std::vector<Tensor> outputs = RunOn(
      *device, **program, {Tensor::FromValues<float>(ElementType::kFloat32, {1, 1, 8, 8}, image)});
  EXPECT_EQ(outputs.size(), 1U);
  // Pieces share them.
  EXPECT_GT(device->buffer_count(), 2 * device->block_count());
  EXPECT_LT(device->block_count(), kMaxAllocations);
}

}  // namespace
}  // namespace onnxifi::vulkan
