// SPDX-License-Identifier: Apache-2.0
//
// The backend on the first Vulkan device of the machine, skipped where there is none: kernels from
// one process to the next.

#include "backends/vulkan/device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/program/testing/program_maker.h"

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

}  // namespace
}  // namespace onnxifi::vulkan
