// SPDX-License-Identifier: Apache-2.0
//
// Which of several kernels computes a step where the caller lets them be measured: on the emulated
// device, whose clock is set forward by what a kernel of ours takes, and by what a library takes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backends/core/codegen/binary_cache.h"
#include "backends/core/codegen/testing/tiled_fixture.h"
#include "backends/cuda/device.h"
#include "backends/cuda/libraries/library_host.h"
#include "backends/cuda/libraries/measured_choices.h"
#include "backends/cuda/testing/emulated/control.h"
#include "backends/cuda/testing/story.h"

namespace onnxifi::cuda {
namespace {

namespace fs = std::filesystem;
using codegen::kFloat;
using codegen::MakeConvolution;
using codegen::MakeProduct;
using reference::RandomStep;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kUse[] = "ONNXIFI_CUDA_LIBRARIES";

class ChoiceTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv(kUse);
    emulated_recover();
    emulated_forget();
    emulated_cublaslt_fail(nullptr, 0, 0, 0);
    emulated_cudnn_fail(nullptr, 0, 0, 0);
    std::string name = (fs::temp_directory_path() / "cuda_choice.XXXXXX").string();
    folder_ = mkdtemp(name.data());
    Open();
  }
  void TearDown() override {
    device_ = nullptr;
    emulated_set_clock(0, 0);
    emulated_recover();
    unsetenv(kUse);
    fs::remove_all(folder_);
    EXPECT_EQ(LiveObjects(), 0);
    EXPECT_EQ(emulated_cublaslt_live(), 0);
    EXPECT_EQ(emulated_cudnn_live(), 0);
    EXPECT_EQ(emulated_misuse(0), nullptr) << emulated_misuse(0);
  }

  // As another process would.
  void Open() {
    device_ = nullptr;
    const auto api = LoadApi();
    const auto devices = FindDevices(*api);
    ASSERT_FALSE(devices->fit.empty());
    auto opened = Device::Open(*api, *LoadCompilerApi(), devices->fit.front(), folder_);
    ASSERT_TRUE(opened.ok()) << opened.status().Text();
    device_ = *std::move(opened);
  }

  static RandomStep Product(int64_t rows = 5) {
    RandomStep step = MakeProduct({.batch = 1, .m = rows, .n = 6, .k = 7}, 1);
    step.program.may_measure = true;
    return step;
  }

  // What the bound kernel says of itself.
  base::Result<std::string> Bind(const RandomStep& step) {
    const program::Step& body = step.program.steps[0];
    const auto selection = device_->Select({step.program, body});
    const auto kernel = device_->Build(*selection->recipe);
    std::vector<std::unique_ptr<device::Allocation>> held;
    std::vector<std::byte*> constants(step.buffers.size());
    for (size_t buffer = 0; buffer < step.buffers.size(); ++buffer) {
      if (step.program.buffers[buffer].kind != program::Buffer::Kind::kConstant) continue;
      held.push_back(*device_->memory().Hold(step.buffers[buffer]));
      constants[buffer] = held.back()->data();
    }
    const auto bound = (*kernel)->Bind(device::Bind(step.program, body, step.dims), constants);
    if (!bound.ok()) return base::Status(bound.status());
    return (*bound)->Detail();
  }
  std::string DetailOf(const RandomStep& step) {
    const base::Result<std::string> detail = Bind(step);
    EXPECT_TRUE(detail.ok()) << detail.status().Text();
    return detail.ok() ? *detail : std::string();
  }
  void ExpectRight(const RandomStep& step) {
    reference::Device reference;
    const auto expected = RunStep(reference, step);
    const auto actual = RunStep(*device_, step);
    ASSERT_TRUE(actual.ok()) << actual.status().Text();
    const auto difference = FindDifference(step, *expected, *actual);
    EXPECT_FALSE(difference) << *difference;
  }

  fs::path folder_;
  std::unique_ptr<Device> device_;
};

TEST_F(ChoiceTest, TheFasterOneComputesTheStep) {
  emulated_set_clock(/*kernel_us=*/200, /*function_us=*/10);
  // The product, and a kernel of ours that makes results of its sums.
  const std::string by_library = DetailOf(Product());
  EXPECT_THAT(by_library, AllOf(StartsWith("results by"), HasSubstr("measured: cuBLASLt 0.")));
  ExpectRight(Product());
  emulated_set_clock(/*kernel_us=*/10, /*function_us=*/200);
  // Of another shape, as an answer is kept.
  EXPECT_THAT(DetailOf(Product(4)), AllOf(StartsWith("tiled product"), HasSubstr("cuBLASLt 0.2")));
  ExpectRight(Product(4));
}

TEST_F(ChoiceTest, TheAnswerIsKeptForOtherProcesses) {
  emulated_set_clock(/*kernel_us=*/10, /*function_us=*/200);
  const std::string first = DetailOf(Product());
  EXPECT_THAT(first, StartsWith("tiled product"));
  emulated_set_clock(/*kernel_us=*/200, /*function_us=*/10);
  Open();
  const int multiplied = emulated_cublaslt_call_count("Matmul");
  EXPECT_EQ(DetailOf(Product()), first);
  EXPECT_EQ(emulated_cublaslt_call_count("Matmul"), multiplied) << "Nothing is run again.";
  // One kept for another shape says nothing.
  EXPECT_THAT(DetailOf(Product(300)), StartsWith("results by"));
}

// Where there is no folder, too, as long as the device is open.
TEST_F(ChoiceTest, TheAnswerIsKeptInTheProcess) {
  emulated_set_clock(/*kernel_us=*/200, /*function_us=*/10);
  folder_.clear();
  Open();
  const std::string first = DetailOf(Product());
  EXPECT_THAT(first, HasSubstr("measured: cuBLASLt 0."));
  const int multiplied = emulated_cublaslt_call_count("Matmul");
  EXPECT_EQ(DetailOf(Product()), first);
  EXPECT_EQ(emulated_cublaslt_call_count("Matmul"), multiplied) << "Nothing is run again.";
  // Threads that bind the same step at a time measure it once.
  Open();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] { EXPECT_THAT(DetailOf(Product()), HasSubstr("measured")); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(emulated_cublaslt_call_count("Matmul"), 2 * multiplied);
}

// The queues of a device, and nothing else of it.
class QueueHost final : public LibraryHost {
 public:
  explicit QueueHost(device::Device& device) : device_(device) {}
  bool IsReal() const override { return true; }
  base::Result<std::unique_ptr<device::Queue>> NewQueue() const override {
    return device_.NewQueue();
  }
  base::Status Do(std::string_view /*doing*/,
                  const std::function<base::Status()>& call) const override {
    return call();
  }
  base::Status Put(device::Queue& /*queue*/, std::string_view /*doing*/,
                   std::span<const device::MemoryUse> /*uses*/,
                   const std::function<base::Status(CUstream)>& call) const override {
    return call(nullptr);
  }

 private:
  device::Device& device_;
};

class NoKernel final : public device::BoundKernel {
 public:
  base::Status Enqueue(device::Queue& /*queue*/, device::Addresses /*addresses*/) const override {
    return base::Ok();
  }
};

// The answers that were asked for last are kept, and there are never more of them.
TEST_F(ChoiceTest, SoManyAnswersAreKeptInTheProcess) {
  const QueueHost host(*device_);
  const MeasuredChoices choices(host, codegen::BinaryCache({}, 0), /*most_answers=*/2);
  const RandomStep step = Product();
  const device::BoundStep bound = device::Bind(step.program, step.program.steps[0], step.dims);
  const NoKernel kernel;
  const std::vector<MeasuredChoices::Runner> runners = {{"one", &kernel}, {"other", &kernel}};
  const std::vector<std::byte*> constants(step.program.buffers.size());
  const auto measure = [&](std::string_view key) {
    const auto choice = choices.Measure(key, bound, constants, device_->memory(), runners);
    EXPECT_TRUE(choice.ok()) << choice.status().Text();
  };
  measure("a");
  measure("b");
  EXPECT_TRUE(choices.Find("a"));
  measure("c");
  EXPECT_TRUE(choices.Find("a"));
  EXPECT_FALSE(choices.Find("b"));
  EXPECT_TRUE(choices.Find("c"));
  measure("c");
  EXPECT_TRUE(choices.Find("a"));
}

// The same product, in a program that may have another expression before it.
RandomStep ProductBehind(bool has_another) {
  codegen::StepMaker make(1);
  if (has_another) {
    // What the product's results share with it comes in another order.
    static_cast<void>(Binary(program::ExprOp::kAdd, Constant(make.pool(), kFloat, 0),
                             Load(make.pool(), kFloat, 3)));
  }
  program::Contract contract;
  contract.batch_axes = contract.m_axes = contract.n_axes = 1;
  contract.inner = {7};
  contract.a_prologue = make.Read(make.Buffer({1, 5, 7})).id();
  contract.b_prologue = make.Read(make.Buffer({1, 7, 6})).id();
  make.Finish(std::move(contract), {1, 5, 6}, 2);
  return std::move(make.made);
}

TEST_F(ChoiceTest, AnEqualStepElsewhereInAProgramHasTheSameAnswer) {
  const RandomStep alone = ProductBehind(false), behind = ProductBehind(true);
  const auto describe = [](const RandomStep& step) {
    return DescribeStep(device::Bind(step.program, step.program.steps[0], step.dims));
  };
  EXPECT_NE(alone.program.steps[0].As<program::Contract>()->roots,
            behind.program.steps[0].As<program::Contract>()->roots);
  EXPECT_EQ(describe(alone), describe(behind));
  EXPECT_EQ(describe(alone), describe(Product()));
  EXPECT_NE(describe(alone), describe(Product(4)));
}

// A whole entry with a name that no kernel has, as another version may have written it.
TEST_F(ChoiceTest, AnAnswerOfNobodysNameIsMeasuredAnew) {
  emulated_set_clock(/*kernel_us=*/10, /*function_us=*/200);
  const std::string first = DetailOf(Product());
  ASSERT_THAT(first, StartsWith("tiled product"));
  const codegen::BinaryCache files(folder_, int64_t{1} << 20);
  const std::string nobody = "nobody's kernel\nnobody's kernel 0.0001 ms";
  std::vector<std::string> keys;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(stream), {}};
    // The key lies before what is kept for it.
    const size_t begin = whole.find("fastest of "), end = whole.find("tiled product\ncuBLASLt");
    if (begin == std::string::npos || end == std::string::npos) continue;
    keys.push_back(whole.substr(begin, end - begin));
  }
  for (const std::string& key : keys) {
    ASSERT_TRUE(files.Find(key)) << key;
    files.Store(key, std::as_bytes(std::span(nobody)));
  }
  ASSERT_EQ(keys.size(), 1U);
  Open();
  const int multiplied = emulated_cublaslt_call_count("Matmul");
  EXPECT_EQ(DetailOf(Product()), first);
  EXPECT_GT(emulated_cublaslt_call_count("Matmul"), multiplied);
  // The new answer is kept in its place.
  Open();
  EXPECT_EQ(DetailOf(Product()), first);
}

// Cut, or changed.
TEST_F(ChoiceTest, ADamagedAnswerIsMeasuredAnew) {
  emulated_set_clock(/*kernel_us=*/10, /*function_us=*/200);
  const std::vector<void (*)(const fs::path&)> damages = {
      [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); },
      [](const fs::path& file) { fs::resize_file(file, 0); },
      [](const fs::path& file) {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(-1, std::ios::end);
        stream.put('\x7f');
      }};
  for (size_t damage = 0; damage < damages.size(); ++damage) {
    SCOPED_TRACE(damage);
    // The one computes it after the other.
    const bool is_ours = damage % 2 == 0;
    emulated_set_clock(is_ours ? 10 : 400, is_ours ? 400 : 10);
    for (const auto& entry : fs::directory_iterator(folder_)) damages[damage](entry.path());
    Open();
    EXPECT_THAT(DetailOf(Product()), StartsWith(is_ours ? "tiled product" : "results by"));
    ExpectRight(Product());
  }
}

TEST_F(ChoiceTest, NothingIsMeasuredUnasked) {
  emulated_set_clock(/*kernel_us=*/200, /*function_us=*/10);
  RandomStep step = Product();
  step.program.may_measure = false;
  const auto selection = device_->Select({step.program, step.program.steps[0]});
  EXPECT_NE(selection->recipe->implementation(), "cuBLASLt");
  EXPECT_THAT(std::string(selection->rejected[0].sentence()),
              HasSubstr("There is no rule for cuBLASLt's products of float32."));
  // Nor what was switched off.
  setenv(kUse, "never", /*replace=*/1);
  Open();
  EXPECT_THAT(DetailOf(Product()), Not(HasSubstr("measured")));
  EXPECT_EQ(emulated_cublaslt_call_count("Matmul"), 0);
}

TEST_F(ChoiceTest, CudnnIsMeasuredWhereARuleSwitchesItOn) {
  emulated_set_clock(/*kernel_us=*/200, /*function_us=*/10);
  RandomStep step = MakeConvolution(1, 1, 5, 6, {{9, 1}, {7, 1}}, kFloat, 3);
  step.program.may_measure = true;
  EXPECT_THAT(DetailOf(step), AllOf(HasSubstr("cuBLASLt"), Not(HasSubstr("cuDNN"))));
  setenv(kUse, "always", /*replace=*/1);
  Open();
  const std::string all = DetailOf(step);
  EXPECT_THAT(all, AllOf(HasSubstr("measured: cuDNN 0."), HasSubstr(", cuBLASLt 0."),
                         HasSubstr(", tiled ")));
  ExpectRight(step);
}

// What a measurement takes may not be there; the graph is made ready all the same.
TEST_F(ChoiceTest, WithoutMemoryToMeasureInTheFirstTakesIt) {
  emulated_set_clock(/*kernel_us=*/200, /*function_us=*/10);
  ASSERT_THAT(DetailOf(Product()), HasSubstr("measured"));
  emulated_recover();
  const RandomStep step = Product(9);
  static_cast<void>(DetailOf(step));
  const int allocations = emulated_call_count("cuMemAlloc");
  fs::remove_all(folder_);
  for (int call = 0; call < allocations; ++call) {
    SCOPED_TRACE(call);
    Open();
    emulated_recover();
    emulated_fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, call, 1);
    EXPECT_THAT(DetailOf(step),
                AnyOf(HasSubstr("not measured: CUDA cannot allocate"), HasSubstr("passed over: ")));
    emulated_recover();
    ExpectRight(step);
    device_ = nullptr;
    fs::remove_all(folder_);
  }
  Open();
}

TEST_F(ChoiceTest, EveryCallOfAMeasurementFailsInTurn) {
  emulated_set_clock(/*kernel_us=*/200, /*function_us=*/10);
  const RandomStep step = Product();
  emulated_recover();
  ASSERT_THAT(DetailOf(step), HasSubstr("measured"));
  for (const char* const function : {"cuEventCreate", "cuEventRecord", "cuEventElapsedTime",
                                     "cuLaunchKernel", "cuLaunchHostFunc", "cuMemcpyHtoDAsync"}) {
    fs::remove_all(folder_);
    Open();
    emulated_recover();
    static_cast<void>(DetailOf(step));
    const int count = emulated_call_count(function);
    EXPECT_GT(count, 0) << function;
    for (int call = 0; call < count; ++call) {
      SCOPED_TRACE(std::string(function) + ", call " + std::to_string(call));
      fs::remove_all(folder_);
      Open();
      emulated_recover();
      emulated_fail(function, CUDA_ERROR_OUT_OF_MEMORY, call, 1);
      const base::Result<std::string> detail = Bind(step);
      if (std::string_view(function) == "cuLaunchHostFunc") {
        // The library does not tell why its launch failed: the device may be lost.
        ASSERT_FALSE(detail.ok());
        EXPECT_EQ(detail.status().code(), base::Code::kBackendUnavailable);
      } else {
        ASSERT_TRUE(detail.ok()) << detail.status().Text();
        // What an interval needs may be had when it is asked for again.
        EXPECT_THAT(*detail, AnyOf(HasSubstr("not measured: "), HasSubstr(", measured: ")));
      }
      emulated_recover();
      EXPECT_THAT(DetailOf(step), HasSubstr(", measured: ")) << "Once the fault is over.";
    }
  }
}

}  // namespace
}  // namespace onnxifi::cuda
