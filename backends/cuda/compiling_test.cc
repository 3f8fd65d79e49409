// SPDX-License-Identifier: Apache-2.0
//
// When kernels are compiled: at once on all threads, and not again: for other extents, in another
// process, or where a folder was filled without a device. On the emulated device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/base/cache_folder.h"
#include "backends/core/device/usable_cpus.h"
#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/plugin/testing/symbolic_encoder.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/cuda/compile_only.h"
#include "backends/cuda/device.h"
#include "backends/cuda/testing/story.h"

namespace onnxifi::cuda {
namespace {

namespace fs = std::filesystem;
using base::Status;
using program::Expr;
using program::ExprPool;
using program::Operand;
using program::ProgramMaker;
using tensor::ElementType;
using tensor::Tensor;

constexpr int64_t kRows = 6;
constexpr int64_t kColumns = 4;
constexpr int kMaps = 10;

// kMaps Maps of the input, each with a text of its own: x + x + … of k + 2 terms.
ProgramMaker MapsOfOneInput() {
  ProgramMaker maker;
  const Operand x = maker.Input({kRows, kColumns});
  for (int k = 0; k < kMaps; ++k) {
    maker.Output(maker.Map({kRows, kColumns}, {x}, [k](ExprPool&, const std::vector<Expr>& loads) {
      Expr sum = loads[0];
      for (int term = 0; term <= k; ++term) sum = sum + loads[0];
      return sum;
    }));
  }
  return maker;
}

// Of the calls of NVRTC that are under way. Functions of a CompilerApi have no state, so that this
// is global.
std::mutex gate;
std::condition_variable changed;
int calls_under_way = 0;
int most_under_way = 0;
bool is_awaited = false;

// The first call waits for a second one, if one may come, as long as that may take.
nvrtcResult CompileBesideAnother(nvrtcProgram program, int count, const char* const* options) {
  static const CompilerApi real = *LoadCompilerApi();
  {
    std::unique_lock lock(gate);
    most_under_way = std::max(most_under_way, ++calls_under_way);
    changed.notify_all();
    if (!std::exchange(is_awaited, true)) {
      changed.wait_for(lock, std::chrono::minutes(5), [] { return most_under_way > 1; });
    }
  }
  const nvrtcResult result = real.CompileProgram(program, count, options);
  const std::lock_guard lock(gate);
  --calls_under_way;
  return result;
}

class CompilingTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ONNXIFI_EMULATED_DEVICES", "2", /*replace=*/1);  // as all tests of this program
    std::string name = (fs::temp_directory_path() / "cuda_compiling.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  base::Result<std::unique_ptr<Device>> Open(const CompilerApi& compiler_api,
                                             std::optional<CUstream> stream = {}) const {
    const Api api = *LoadApi();
    ONNXIFI_ASSIGN_OR_RETURN(const FoundDevices devices, FindDevices(api));
    return Device::Open(api, compiler_api, devices.fit.at(0), folder_, stream);
  }

  fs::path folder_;
};

// On as many threads as the process may use at a time: on one CPU one after the other.
TEST_F(CompilingTest, KernelsAreCompiledSideBySide) {
  const bool has_one_cpu = device::CountUsableCpus() == 1;
  calls_under_way = most_under_way = 0;
  is_awaited = has_one_cpu;
  CompilerApi compiler_api = *LoadCompilerApi();
  compiler_api.CompileProgram = CompileBesideAnother;
  const auto device = Open(compiler_api);
  ASSERT_TRUE(device.ok()) << device.status().Text();
  const ProgramMaker maker = MapsOfOneInput();
  plan::Counters counters;
  const auto plan = plan::Plan::Create(maker.program, **device, counters);
  ASSERT_TRUE(plan.ok()) << plan.status().Text();
  execution::Executor executor(**plan);
  const auto boundary = execution::HostBoundary::Create(executor);
  ASSERT_TRUE(boundary.ok()) << boundary.status().Text();
  const std::vector<float> values(kRows * kColumns, 3);
  const std::vector<Tensor> inputs = {
      Tensor::FromValues<float>(ElementType::kFloat32, {kRows, kColumns}, values)};
  execution::TensorOutputs outputs(maker.program);
  const Status ran = (*boundary)->Run(execution::AsInputs(inputs), outputs);
  ASSERT_TRUE(ran.ok()) << ran.Text();
  EXPECT_EQ(most_under_way == 1, has_one_cpu) << most_under_way;
  EXPECT_EQ((*device)->compiled_count(), kMaps);
  for (int k = 0; k < kMaps; ++k) {
    const Tensor& sums = outputs.tensors[static_cast<size_t>(k)];
    const auto* const sum = reinterpret_cast<const float*>(sums.data());
    EXPECT_TRUE(std::all_of(sum, sum + kRows * kColumns, [&](float value) {
      return value == 3.0F * (static_cast<float>(k) + 2);
    })) << k;
  }
}

// What a thread puts into its own stream is not awaited by a run on another thread.
TEST_F(CompilingTest, AStreamPerThreadHasKernelsBoundByTheCaller) {
  const auto own = Open(*LoadCompilerApi());
  ASSERT_TRUE(own.ok()) << own.status().Text();
  EXPECT_NE((*own)->parallel(), nullptr);
  const auto per_thread = Open(*LoadCompilerApi(), CU_STREAM_PER_THREAD);
  ASSERT_TRUE(per_thread.ok()) << per_thread.status().Text();
  EXPECT_EQ((*per_thread)->parallel(), nullptr);
}

TEST_F(CompilingTest, FiftyNumbersOfTokensTakeTheKernelsOfTheFirst) {
  const auto device = Open(*LoadCompilerApi());
  ASSERT_TRUE(device.ok()) << device.status().Text();
  plugin::ExpectFiftyLengthsOfTheSameKernels(**device, [&] { return (*device)->kernel_count(); });
}

TEST_F(CompilingTest, ADeviceThatOnlyCompilesLeavesNothingToCompile) {
  const CompilerApi compiler_api = *LoadCompilerApi();
  int64_t compiled = 0;
  {
    Story story(folder_);
    const Status opened = story.Open(CompileOnlyApi(90), compiler_api, /*compiles_only=*/true);
    ASSERT_TRUE(opened.ok()) << opened.Text();
    for (const int64_t rows : {3, 700}) ASSERT_TRUE(story.Run(rows).ok());
    compiled = story.device().compiled_count();
    EXPECT_GE(compiled, 2);
  }
  Story story(folder_);
  const Status ran = story.All();
  ASSERT_TRUE(ran.ok()) << ran.Text();
  EXPECT_EQ(story.device().kernel_count(), compiled);
  EXPECT_EQ(story.device().compiled_count(), 0);
}

// Run by the next test, in processes of their own, with a cache folder that it names.
TEST_F(CompilingTest, DISABLED_TellsWhatAStoryCompiles) {
  Story story(base::CacheFolder());
  const Status ran = story.All();
  ASSERT_TRUE(ran.ok()) << ran.Text();
  std::printf("Compiled %d of %d kernels.\n", static_cast<int>(story.device().compiled_count()),
              static_cast<int>(story.device().kernel_count()));
}

TEST_F(CompilingTest, ASecondProcessCompilesNothing) {
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const auto run = [&] {
    const std::string command =
        "ONNXIFI_CACHE_DIR='" + (folder_ / "cache").string() + "' '" + program +
        "' --gtest_also_run_disabled_tests --gtest_filter='*TellsWhatAStoryCompiles'";
    std::string text;
    FILE* const pipe = popen(command.c_str(), "r");
    std::array<char, 4096> part{};
    for (size_t count = 0; (count = fread(part.data(), 1, part.size(), pipe)) > 0;) {
      text.append(part.data(), count);
    }
    EXPECT_EQ(pclose(pipe), 0) << text;
    return text;
  };
  const std::string first = run();
  EXPECT_THAT(first, testing::ContainsRegex("Compiled [1-9][0-9]* of [1-9]")) << first;
  const std::string second = run();
  EXPECT_THAT(second, testing::ContainsRegex("Compiled 0 of [1-9]")) << second;
}

}  // namespace
}  // namespace onnxifi::cuda
