// SPDX-License-Identifier: Apache-2.0
//
// The OpenCL backend on the first device of the machine, skipped where there is none: faults of the
// driver, memory, the caches of programs, and what a steady state costs. Faults are injected by
// putting functions that fail in the place of the loader's.

#include "backends/opencl/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/reference/device.h"
#include "backends/opencl/kernels.h"

namespace onnxifi::opencl {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Result;
using base::Status;
using program::Expr;
using program::ExprPool;
using program::Operand;
using program::ProgramMaker;
using tensor::ElementType;
using tensor::Tensor;
using testing::HasSubstr;
using testing::Pointwise;

TEST(ApiTest, AMissingLoaderIsOneSentence) {
  const Result<Api> api = LoadApi("libOpenCL-that-is-not-there.so.1");
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.status().code(), Code::kBackendUnavailable);
  EXPECT_THAT(api.status().Text(), HasSubstr("libOpenCL-that-is-not-there.so.1"));
}

TEST(ApiTest, ALoaderWithoutItsFunctionsIsOneSentence) {
  const Result<Api> api = LoadApi("libc.so.6");
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.status().code(), Code::kBackendUnavailable);
  EXPECT_THAT(api.status().Text(), HasSubstr("has no function cl"));
}

TEST(ApiTest, FaultsHaveTheDocumentedStatuses) {
  EXPECT_TRUE(ToStatus(CL_SUCCESS, "breathe").ok());
  EXPECT_EQ(ToStatus(CL_MEM_OBJECT_ALLOCATION_FAILURE, "").code(), Code::kNoDeviceMemory);
  EXPECT_EQ(ToStatus(CL_OUT_OF_HOST_MEMORY, "").code(), Code::kNoSystemMemory);
  EXPECT_EQ(ToStatus(CL_OUT_OF_RESOURCES, "").code(), Code::kNoDeviceResources);
  EXPECT_EQ(ToStatus(CL_DEVICE_NOT_AVAILABLE, "").code(), Code::kBackendUnavailable);
  EXPECT_EQ(ToStatus(CL_INVALID_KERNEL_ARGS, "start a kernel").code(), Code::kInternalError);
  EXPECT_EQ(ToStatus(CL_OUT_OF_RESOURCES, "start a kernel").sentence(),
            "OpenCL cannot start a kernel: out of resources.");
}

TEST(TuningTableTest, EveryDeviceHasATileForEveryRowCount) {
  std::istringstream table{std::string(kTuningTable)};
  int devices = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::string name = line.substr(0, line.find(','));
    codegen::Tuning tuning;
    ASSERT_TRUE(codegen::AddRules(kTuningTable, name, tuning).ok()) << name;
    ASSERT_FALSE(tuning.tiles.empty()) << name;
    EXPECT_EQ(tuning.tiles.back().most_rows, 0) << "More rows than any rule has fit none.";
    ++devices;
  }
  EXPECT_GT(devices, 0);
}

// Prepared programs keep their places: dense float32 vectors in, one out.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<Api> api = LoadApi(kLoaderLibrary);
    if (!api.ok()) GTEST_SKIP() << api.status().Text();
    api_ = *api;
    Result<std::vector<DeviceInfo>> devices = FindDevices(api_);
    if (!devices.ok()) GTEST_SKIP() << devices.status().Text();
    if (devices->empty()) GTEST_SKIP() << "No platform has a device.";
    info_ = devices->front();
    std::string name = (fs::temp_directory_path() / "opencl_cache.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  std::unique_ptr<Device> Open() {
    Result<std::unique_ptr<Device>> device = Device::Open(api_, info_, folder_);
    EXPECT_TRUE(device.ok()) << device.status().Text();
    return device.ok() ? *std::move(device) : nullptr;
  }

  Api api_;
  DeviceInfo info_;
  fs::path folder_;
};

// Two steps that cannot become one: out = (x + 1) summed over rows, times 2. N rows.
ProgramMaker MakeProgram() {
  ProgramMaker maker;
  const program::Dim n = maker.program.dims->NewSymbol("N", false);
  const Operand x = maker.Input({n, 5});
  const Operand more = maker.Map({n, 5}, {x}, [](ExprPool&, const std::vector<Expr>& loads) {
    return loads[0] + Like(loads[0], 1);
  });
  const Operand sums = maker.SumRows(more);
  maker.Output(maker.Map({n}, {sums}, [](ExprPool&, const std::vector<Expr>& loads) {
    return loads[0] * Like(loads[0], 2);
  }));
  return maker;
}

Result<std::vector<float>> RunOnce(execution::HostBoundary& boundary,
                                   const program::Program& program, int64_t rows,
                                   execution::RunProfile* profile = nullptr) {
  std::vector<float> values(static_cast<size_t>(rows * 5));
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k % 7);
  const std::vector<Tensor> inputs = {
      Tensor::FromValues<float>(ElementType::kFloat32, {rows, 5}, values)};
  execution::TensorOutputs places(program);
  ONNXIFI_RETURN_IF_ERROR(boundary.Run(execution::AsInputs(inputs), places, profile));
  const std::span<const float> results = places.tensors[0].values<float>();
  return std::vector<float>(results.begin(), results.end());
}

std::vector<float> Expected(int64_t rows) {
  std::vector<float> expected;
  for (int64_t row = 0; row < rows; ++row) {
    float sum = 0;
    for (int64_t k = 0; k < 5; ++k) sum += static_cast<float>((row * 5 + k) % 7) + 1;
    expected.push_back(2 * sum);
  }
  return expected;
}

TEST_F(DeviceTest, ASteadyStateAllocatesNothingAndCopiesEachTensorOnce) {
  const std::unique_ptr<Device> device = Open();
  const ProgramMaker maker = MakeProgram();
  plan::Counters counters;
  const auto plan = plan::Plan::Create(maker.program, *device, counters);
  ASSERT_TRUE(plan.ok()) << plan.status().Text();
  execution::Executor executor(**plan);
  const auto boundary = execution::HostBoundary::Create(executor);
  ASSERT_TRUE(boundary.ok());
  ASSERT_EQ(*RunOnce(**boundary, maker.program, 11), Expected(11));
  const uint64_t allocations = counters.allocations;
  const int64_t buffers = device->buffer_count();
  const uint64_t copies = counters.copies;
  for (int k = 0; k < 10; ++k) ASSERT_EQ(*RunOnce(**boundary, maker.program, 11), Expected(11));
  EXPECT_EQ(counters.allocations, allocations);
  EXPECT_EQ(device->buffer_count(), buffers);
  EXPECT_EQ(counters.copies, copies + 10 * 2);
}

// What the driver is asked for, counted on its way there.
struct Calls {
  int buffers = 0, uploads = 0, downloads = 0, copies = 0, kernels = 0, waits = 0, blocking = 0;
};
Calls calls;
Api real;

Api CountedApi(const Api& api) {
  real = api;
  calls = {};
  Api counted = api;
  counted.CreateBuffer = [](cl_context context, cl_mem_flags flags, size_t size, void* from,
                            cl_int* result) {
    ++calls.buffers;
    return real.CreateBuffer(context, flags, size, from, result);
  };
  counted.EnqueueWriteBuffer = [](cl_command_queue queue, cl_mem to, cl_bool is_blocking,
                                  size_t offset, size_t size, const void* from, cl_uint count,
                                  const cl_event* events, cl_event* event) {
    ++calls.uploads;
    calls.blocking += is_blocking == CL_TRUE ? 1 : 0;
    return real.EnqueueWriteBuffer(queue, to, is_blocking, offset, size, from, count, events,
                                   event);
  };
  counted.EnqueueReadBuffer = [](cl_command_queue queue, cl_mem from, cl_bool is_blocking,
                                 size_t offset, size_t size, void* to, cl_uint count,
                                 const cl_event* events, cl_event* event) {
    ++calls.downloads;
    calls.blocking += is_blocking == CL_TRUE ? 1 : 0;
    return real.EnqueueReadBuffer(queue, from, is_blocking, offset, size, to, count, events, event);
  };
  counted.EnqueueCopyBuffer = [](cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                 size_t to_offset, size_t size, cl_uint count,
                                 const cl_event* events, cl_event* event) {
    ++calls.copies;
    return real.EnqueueCopyBuffer(queue, from, to, from_offset, to_offset, size, count, events,
                                  event);
  };
  counted.EnqueueNDRangeKernel = [](cl_command_queue queue, cl_kernel kernel, cl_uint axes,
                                    const size_t* offsets, const size_t* items, const size_t* group,
                                    cl_uint count, const cl_event* events, cl_event* event) {
    ++calls.kernels;
    return real.EnqueueNDRangeKernel(queue, kernel, axes, offsets, items, group, count, events,
                                     event);
  };
  counted.WaitForEvents = [](cl_uint count, const cl_event* events) {
    ++calls.waits;
    return real.WaitForEvents(count, events);
  };
  counted.Finish = [](cl_command_queue queue) {
    ++calls.waits;
    return real.Finish(queue);
  };
  return counted;
}

// out = the 7 largest of each row of relu(x * a) * b, for 11 rows of 5.
ProgramMaker MakeNetwork() {
  ProgramMaker maker;
  const auto weights = [](int64_t rows, int64_t columns) {
    std::vector<float> values;
    for (int64_t k = 0; k < rows * columns; ++k) {
      values.push_back(static_cast<float>((k * 7) % 11) / 8 - 0.5F);
    }
    return Tensor::FromValues<float>(ElementType::kFloat32, {rows, columns}, values);
  };
  const Operand hidden = maker.MatMul(maker.Input({11, 5}), maker.Constant(weights(5, 40)));
  const Operand positive =
      maker.Map({11, 40}, {hidden}, [](ExprPool&, const std::vector<Expr>& loads) {
        return Maximum(loads[0], Like(loads[0], 0));
      });
  const Operand scores = maker.MatMul(positive, maker.Constant(weights(40, 1500)));
  const Operand largest = maker.Temporary({11, 7});
  const Operand places = maker.Temporary({11, 7}, ElementType::kInt64);
  maker.AddStep({scores.shape,
                 {scores.view},
                 {largest.view, places.view},
                 program::Index{.kind = program::Index::Kind::kTopK, .k = 7}});
  maker.Output(largest);
  return maker;
}

TEST_F(DeviceTest, ASteadyRunOfANetworkAsksTheDriverForNothingButItsWork) {
  const Result<std::unique_ptr<Device>> device = Device::Open(CountedApi(api_), info_, folder_);
  ASSERT_TRUE(device.ok()) << device.status().Text();
  const ProgramMaker maker = MakeNetwork();
  plan::Counters counters;
  const auto plan = plan::Plan::Create(maker.program, **device, counters);
  ASSERT_TRUE(plan.ok()) << plan.status().Text();
  execution::Executor executor(**plan);
  const auto boundary = execution::HostBoundary::Create(executor);
  ASSERT_TRUE(boundary.ok());
  const Result<std::vector<float>> first = RunOnce(**boundary, maker.program, 11);
  ASSERT_TRUE(first.ok()) << first.status().Text();
  reference::Device reference;
  const auto expected_plan = plan::Plan::Create(maker.program, reference, counters);
  ASSERT_TRUE(expected_plan.ok());
  execution::Executor expected_executor(**expected_plan);
  const auto expected_boundary = execution::HostBoundary::Create(expected_executor);
  ASSERT_TRUE(expected_boundary.ok());
  EXPECT_THAT(*first, Pointwise(testing::FloatNear(1e-3F),
                                *RunOnce(**expected_boundary, maker.program, 11)));
  calls = {};
  constexpr int kRuns = 5;
  for (int k = 0; k < kRuns; ++k) ASSERT_EQ(*RunOnce(**boundary, maker.program, 11), *first);
  // Each product lays its rows out and sums; the seven largest are sorted, merged and taken.
  EXPECT_EQ(calls.kernels, kRuns * (2 + 1 + 2 + 3));
  EXPECT_EQ(calls.uploads, kRuns);
  EXPECT_EQ(calls.downloads, kRuns);
  EXPECT_EQ(calls.waits, kRuns) << "Only the end of a run is waited for.";
  EXPECT_EQ(calls.blocking, 0);
  EXPECT_EQ(calls.buffers, 0);
  EXPECT_EQ(calls.copies, 0);
  EXPECT_EQ(counters.waits, 0U);
}

TEST_F(DeviceTest, AProfiledRunIsTimedByTheDeviceAndNotWaitedFor) {
  const Result<std::unique_ptr<Device>> device = Device::Open(CountedApi(api_), info_, folder_);
  ASSERT_TRUE(device.ok()) << device.status().Text();
  const ProgramMaker maker = MakeNetwork();
  plan::Counters counters;
  const auto plan = plan::Plan::Create(maker.program, **device, counters);
  ASSERT_TRUE(plan.ok()) << plan.status().Text();
  execution::Executor executor(**plan);
  const auto boundary = execution::HostBoundary::Create(executor);
  ASSERT_TRUE(boundary.ok());
  const Result<std::vector<float>> plain = RunOnce(**boundary, maker.program, 11);
  ASSERT_TRUE(plain.ok()) << plain.status().Text();
  for (const bool has_timed_queue : {false, true}) {
    calls = {};
    execution::RunProfile profile;
    ASSERT_EQ(*RunOnce(**boundary, maker.program, 11, &profile), *plain);
    const auto end = execution::RunProfile::Clock::now() - profile.start;
    // The first time the queue is exchanged; the steps are waited for together, as the run is.
    EXPECT_EQ(calls.waits, has_timed_queue ? 2 : 3);
    ASSERT_EQ(profile.steps.size(), 4U);
    int64_t before_ns = 0;
    for (const execution::RunProfile::Step& step : profile.steps) {
      EXPECT_GE(step.start_ns, before_ns) << step.step;
      EXPECT_GT(step.duration_ns, 0) << step.step;
      before_ns = step.start_ns + step.duration_ns;
    }
    EXPECT_LE(before_ns, std::chrono::nanoseconds(end).count());
  }
  // A queue that tells times serves every other run too.
  EXPECT_EQ(*RunOnce(**boundary, maker.program, 11), *plain);
}

TEST_F(DeviceTest, NoKernelIsCompiledForAnotherExtent) {
  const std::unique_ptr<Device> device = Open();
  const ProgramMaker maker = MakeProgram();
  plan::Counters counters;
  const auto plan = plan::Plan::Create(maker.program, *device, counters);
  ASSERT_TRUE(plan.ok()) << plan.status().Text();
  execution::Executor executor(**plan);
  const auto boundary = execution::HostBoundary::Create(executor);
  ASSERT_TRUE(boundary.ok());
  ASSERT_EQ(*RunOnce(**boundary, maker.program, 2), Expected(2));
  const int64_t kernels = device->kernel_count();
  EXPECT_EQ(kernels, 3);
  for (int64_t rows = 3; rows <= 52; ++rows) {
    ASSERT_EQ(*RunOnce(**boundary, maker.program, rows), Expected(rows));
  }
  EXPECT_EQ(device->kernel_count(), kernels);
  EXPECT_EQ(*RunOnce(**boundary, maker.program, 0), Expected(0));
}

TEST_F(DeviceTest, ASecondProcessCompilesNothingFromSource) {
  const ProgramMaker maker = MakeProgram();
  for (const int64_t compiled : {3, 0}) {
    // A device of its own has an empty cache of its own, as a process has.
    const std::unique_ptr<Device> device = Open();
    plan::Counters counters;
    const auto plan = plan::Plan::Create(maker.program, *device, counters);
    ASSERT_TRUE(plan.ok()) << plan.status().Text();
    execution::Executor executor(**plan);
    const auto boundary = execution::HostBoundary::Create(executor);
    ASSERT_TRUE(boundary.ok());
    EXPECT_EQ(*RunOnce(**boundary, maker.program, 7), Expected(7));
    EXPECT_EQ(device->compiled_count(), compiled);
    EXPECT_EQ(device->kernel_count(), 3);
  }
}

// What ASecondProcessFindsEveryKernelOnDisk starts: says how many kernels it compiled.
TEST_F(DeviceTest, DISABLED_CountsWhatItCompiles) {
  const char* const kernels = getenv("OPENCL_TEST_KERNELS");
  if (kernels == nullptr) GTEST_SKIP() << "Nobody started it.";
  const ProgramMaker maker = MakeProgram();
  const Result<std::unique_ptr<Device>> device = Device::Open(api_, info_, fs::path(kernels));
  ASSERT_TRUE(device.ok());
  plan::Counters counters;
  const auto plan = plan::Plan::Create(maker.program, **device, counters);
  ASSERT_TRUE(plan.ok());
  execution::Executor executor(**plan);
  const auto boundary = execution::HostBoundary::Create(executor);
  ASSERT_TRUE(boundary.ok());
  EXPECT_EQ(*RunOnce(**boundary, maker.program, 7), Expected(7));
  std::printf("compiled %lld\n", static_cast<long long>((*device)->compiled_count()));
}

// The driver's own cache, PoCL's, is another empty folder each time.
TEST_F(DeviceTest, ASecondProcessFindsEveryKernelOnDisk) {
  const auto compiled_by = [&](const std::string& drivers_folder) {
    const fs::path drivers = folder_ / drivers_folder;
    fs::create_directory(drivers);
    const std::string command = "OPENCL_TEST_KERNELS='" + (folder_ / "kernels").string() +
                                "' POCL_CACHE_DIR='" + drivers.string() + "' '" +
                                fs::read_symlink("/proc/self/exe").string() +
                                "' --gtest_also_run_disabled_tests"
                                " --gtest_filter='*DISABLED_CountsWhatItCompiles' 2>&1";
    FILE* const child = popen(command.c_str(), "r");
    std::string output;
    std::array<char, 256> part{};
    while (fgets(part.data(), static_cast<int>(part.size()), child) != nullptr) {
      output += part.data();
    }
    EXPECT_EQ(pclose(child), 0) << output;
    const size_t at = output.find("compiled ");
    EXPECT_NE(at, std::string::npos) << output;
    return at == std::string::npos ? -1 : std::atoi(output.c_str() + at + std::strlen("compiled "));
  };
  EXPECT_EQ(compiled_by("first"), 3);
  EXPECT_EQ(compiled_by("second"), 0);
}

TEST_F(DeviceTest, MemoryThatIsGivenBackIsUsedAgain) {
  const std::unique_ptr<Device> device = Open();
  for (int k = 0; k < 20; ++k) {
    const auto a = device->memory().Allocate(100'000);
    const auto b = device->memory().Allocate(100'001 + k);
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_GE((*b)->size_bytes(), 100'001 + k);
    EXPECT_NE((*a)->data(), (*b)->data());
  }
  EXPECT_EQ(device->buffer_count(), 2);
}

// The memory of an output was somebody else's before; its elements do not fill the last byte.
TEST_F(DeviceTest, NothingShowsBehindPackedElements) {
  for (const ElementType type : {ElementType::kUint4, ElementType::kFloat6E2M3}) {
    const std::unique_ptr<Device> device = Open();
    ProgramMaker maker;
    const program::Dim n = maker.program.dims->NewSymbol("N", false);
    const Operand x = maker.Input({n}, type);
    maker.Output(
        maker.Map({n}, {x}, [](ExprPool&, const std::vector<Expr>& loads) { return loads[0]; }));
    plan::Counters counters;
    const auto plan = plan::Plan::Create(maker.program, *device, counters);
    ASSERT_TRUE(plan.ok()) << plan.status().Text();
    execution::Executor executor(**plan);
    const auto boundary = execution::HostBoundary::Create(executor);
    ASSERT_TRUE(boundary.ok());
    const std::vector<std::byte> ones(256, std::byte{0xFF});
    {
      const auto first = device->memory().Allocate(256);
      const auto second = device->memory().Allocate(256);
      const auto queue = device->NewQueue();
      ASSERT_TRUE((*queue)->Upload(ones.data(), (*first)->data(), 256).ok());
      ASSERT_TRUE((*queue)->Upload(ones.data(), (*second)->data(), 256).ok());
      ASSERT_TRUE((*queue)->Finish().ok());
    }
    // The second run has more of the first one's elements behind its own.
    for (const int64_t count : {7, 5, 8}) {
      Tensor input = *Tensor::Allocate(type, {count});
      std::memset(input.mutable_data(), 0xBB, static_cast<size_t>(input.size_bytes()));
      const std::vector<Tensor> inputs = {std::move(input)};
      execution::TensorOutputs places(maker.program);
      ASSERT_TRUE((*boundary)->Run(execution::AsInputs(inputs), places).ok());
      const auto* bytes = reinterpret_cast<const uint8_t*>(places.tensors[0].data());
      const int64_t bits = count * tensor::BitWidth(type);
      EXPECT_EQ(bytes[0], 0xBB);
      EXPECT_EQ(bytes[(bits - 1) / 8], bits % 8 == 0 ? 0xBB : 0xBB & ((1 << bits % 8) - 1))
          << count;
    }
  }
}

TEST_F(DeviceTest, TooLargeAnAllocationIsRefusedWithBothNumbers) {
  const std::unique_ptr<Device> device = Open();
  const auto refused = device->memory().Allocate(int64_t{1} << 60);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kNoDeviceMemory);
  EXPECT_THAT(refused.status().Text(), HasSubstr("1152921504606846976"));
}

cl_mem CL_API_CALL NoMemory(cl_context, cl_mem_flags, size_t, void*, cl_int* result) {
  *result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  return nullptr;
}

cl_int CL_API_CALL NoBuild(cl_program, cl_uint, const cl_device_id*, const char*,
                           void(CL_CALLBACK*)(cl_program, void*), void*) {
  return CL_BUILD_PROGRAM_FAILURE;
}

cl_int CL_API_CALL LostDevice(cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*,
                              const size_t*, cl_uint, const cl_event*, cl_event*) {
  return CL_DEVICE_NOT_AVAILABLE;
}

// Runs MakeProgram once on a device whose driver has a fault; another device still works after.
Status RunWithFault(const Api& api, const DeviceInfo& info) {
  const ProgramMaker maker = MakeProgram();
  Result<std::unique_ptr<Device>> device = Device::Open(api, info, /*cache_folder=*/{});
  if (!device.ok()) return std::move(device).status();
  plan::Counters counters;
  auto plan = plan::Plan::Create(maker.program, **device, counters);
  if (!plan.ok()) return std::move(plan).status();
  execution::Executor executor(**plan);
  const auto boundary = execution::HostBoundary::Create(executor);
  Result<std::vector<float>> results = RunOnce(**boundary, maker.program, 4);
  return results.ok() ? base::Ok() : std::move(results).status();
}

TEST_F(DeviceTest, FaultsOfTheDriverAreStatusesAndLeaveTheOthersAlone) {
  // Another backend of the process, on the same device, with a driver that has no fault.
  const ProgramMaker maker = MakeProgram();
  const std::unique_ptr<Device> device = Open();
  plan::Counters counters;
  const auto plan = plan::Plan::Create(maker.program, *device, counters);
  ASSERT_TRUE(plan.ok());
  execution::Executor executor(**plan);
  const auto boundary = execution::HostBoundary::Create(executor);
  ASSERT_TRUE(boundary.ok());
  int64_t rows = 2;
  const auto fails_with = [&](const Api& faulty, Code code, std::string_view sentence) {
    const Status status = RunWithFault(faulty, info_);
    EXPECT_EQ(status.code(), code) << status.Text();
    EXPECT_THAT(std::string(status.sentence()), HasSubstr(std::string(sentence)));
    ++rows;
    EXPECT_EQ(*RunOnce(**boundary, maker.program, rows), Expected(rows));
  };
  Api faulty = api_;
  faulty.CreateBuffer = NoMemory;
  fails_with(faulty, Code::kNoDeviceMemory, ": memory object allocation failure.");
  faulty = api_;
  faulty.BuildProgram = NoBuild;
  fails_with(faulty, Code::kInternalError,
             "OpenCL cannot compile a kernel: build program failure.");
  faulty = api_;
  faulty.EnqueueNDRangeKernel = LostDevice;
  fails_with(faulty, Code::kBackendUnavailable, ": device not available.");
  EXPECT_TRUE(RunWithFault(api_, info_).ok());
}

}  // namespace
}  // namespace onnxifi::opencl
