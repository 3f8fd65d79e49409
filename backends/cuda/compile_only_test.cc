// SPDX-License-Identifier: Apache-2.0
//
// NVRTC fills a cache folder without a GPU. Skipped where it is missing.

#include "backends/cuda/compile_only.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "backends/core/codegen/kernel_report.h"
#include "backends/core/codegen/testing/attention_problem.h"
#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/cuda/device.h"

namespace onnxifi::cuda {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(CompileOnlyTest, ArchitecturesAreNamed) {
  EXPECT_EQ(*ParseArchitecture("sm_80"), 80);
  EXPECT_EQ(*ParseArchitecture("sm_120"), 120);
  for (const char* name : {"", "90", "sm_", "sm_75", "sm_9x", "sm_90a", "sm_1000", "sm_-90"}) {
    const auto refused = ParseArchitecture(name);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_THAT(std::string(refused.status().sentence()), HasSubstr("'" + std::string(name) + "'"));
  }
}

TEST(KernelReportTest, ReadsWhatTheAssemblerSays) {
  const auto read = ReadResources(
      "ptxas info    : 0 bytes gmem\nptxas info    : Function properties for run\n"
      "ptxas         .     8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 240 registers, used 1 barriers, 20480 bytes smem\n");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->registers, 240);
  EXPECT_EQ(read->stack_bytes, 8);
  EXPECT_EQ(read->spill_bytes, 28);
  EXPECT_EQ(read->shared_bytes, 20480);
  EXPECT_FALSE(ReadResources("").ok());
}

class CompilingTest : public testing::TestWithParam<int> {};

// The kernels that it compiled.
int64_t Compile(const Api& api, const CompilerApi& compiler_api, const fs::path& folder) {
  program::ProgramMaker maker;
  const program::Dim n = maker.program.dims->NewSymbol("N", false);
  const program::Operand x = maker.Input({n, 5});
  maker.Output(maker.SumRows(x));
  auto devices = FindDevices(api);
  EXPECT_TRUE(devices.ok());
  EXPECT_EQ(devices->fit.size(), 1U);
  devices->fit[0].is_compiled_for_only = true;
  const auto device = Device::Open(api, compiler_api, devices->fit[0], folder);
  EXPECT_TRUE(device.ok()) << device.status().Text();
  plan::Counters counters;
  const auto plan = plan::Plan::Create(maker.program, **device, counters);
  EXPECT_TRUE(plan.ok()) << plan.status().Text();
  execution::Executor executor(**plan);
  const auto boundary = execution::HostBoundary::Create(executor);
  for (const int64_t rows : {3, 700, 3}) {
    const std::vector<float> values(static_cast<size_t>(rows * 5), 2);
    const std::vector<tensor::Tensor> inputs = {
        tensor::Tensor::FromValues<float>(tensor::ElementType::kFloat32, {rows, 5}, values)};
    execution::TensorOutputs outputs(maker.program);
    const auto ran = (*boundary)->Run(execution::AsInputs(inputs), outputs);
    EXPECT_TRUE(ran.ok()) << ran.Text();
  }
  return (*device)->compiled_count();
}

std::vector<std::string> LinesOf(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST_P(CompilingTest, AFolderIsFilledOnceAndTellsWhatKernelsTake) {
  const auto compiler_api = LoadCompilerApi();
  if (!compiler_api.ok()) GTEST_SKIP() << compiler_api.status().Text();
  std::string name = (fs::temp_directory_path() / "cuda_compile.XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  const Api api = CompileOnlyApi(GetParam());
  const int64_t compiled = Compile(api, *compiler_api, folder);
  EXPECT_GT(compiled, 0);
  const fs::path report = folder / ("cuda-kernels-sm_" + std::to_string(GetParam()) + ".csv");
  const std::vector<std::string> lines = LinesOf(report);
  EXPECT_EQ(lines.size(), compiled);
  EXPECT_THAT(lines, testing::Each(testing::ContainsRegex("^[0-9a-f]+,Reduce,[0-9]+,")));
  // What is there is told too.
  const fs::path used = codegen::UsedKernelsFile(report);
  EXPECT_THAT(LinesOf(used), testing::UnorderedElementsAreArray(lines));
  fs::remove(used);
  EXPECT_EQ(Compile(api, *compiler_api, folder), 0);
  EXPECT_THAT(LinesOf(used), testing::UnorderedElementsAreArray(lines));
  EXPECT_EQ(LinesOf(report), lines);
  // What nothing is known of is compiled again.
  fs::remove(report);
  EXPECT_EQ(Compile(api, *compiler_api, folder), compiled);
  EXPECT_THAT(LinesOf(report), testing::UnorderedElementsAreArray(lines));
  // Machine code is an ELF file.
  bool has_machine_code = false;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    has_machine_code = has_machine_code || bytes.find(
                                               "\x7f"
                                               "ELF") != std::string::npos;
  }
  EXPECT_TRUE(has_machine_code);
  fs::remove_all(folder);
}

// Of all keys and of parts of them, of few values and of many.
TEST_P(CompilingTest, AttentionBySplitsKeepsAllInRegisters) {
  const auto compiler_api = LoadCompilerApi();
  if (!compiler_api.ok()) GTEST_SKIP() << compiler_api.status().Text();
  std::string name = (fs::temp_directory_path() / "cuda_compile.XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  const Api api = CompileOnlyApi(GetParam());
  auto devices = FindDevices(api);
  ASSERT_TRUE(devices.ok());
  DeviceInfo& info = devices->fit.at(0);
  info.is_compiled_for_only = true;
  info.tuning.split_depth = codegen::Tuning::kMinSplitDepth;
  info.tuning.Describe(info.capabilities);
  const auto device = Device::Open(api, *compiler_api, info, folder);
  ASSERT_TRUE(device.ok()) << device.status().Text();
  for (const int64_t values : {64, 128}) {
    for (const int64_t heads : {1, 300}) {
      const reference::RandomStep step = codegen::MakeAttention(
          {.heads = heads, .queries = 64, .keys = 256, .width = 64, .values = values}, 1);
      const auto ran = RunStep(**device, step);
      ASSERT_TRUE(ran.ok()) << ran.status().Text();
    }
  }
  int count = 0;
  for (const std::string& line :
       LinesOf(folder / ("cuda-kernels-sm_" + std::to_string(GetParam()) + ".csv"))) {
    EXPECT_THAT(line, testing::ContainsRegex(",Attention,[0-9]+,0,0,[0-9]+$"));
    count += line.ends_with(",44800") ? 1 : 0;
  }
  EXPECT_EQ(count, 4);
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CompilingTest, testing::Values(80, 90, 100));

}  // namespace
}  // namespace onnxifi::cuda
