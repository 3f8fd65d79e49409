// SPDX-License-Identifier: Apache-2.0
//
// Every fault that a driver may have, at every call of every function that the backend makes: a
// documented status with a sentence, nothing left behind, and everything works once the fault is
// over. On the fake driver, so that this runs everywhere, under sanitizers too; what the kernels
// compute is for the tests on real devices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backends/core/execution/testing/story_model.h"
#include "backends/opencl/device.h"
#include "backends/opencl/testing/fake_driver.h"

namespace onnxifi::opencl {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Result;
using base::Status;
using testing::HasSubstr;
using testing::StartsWith;

// What a plugin does with a driver, from the first question to the end of a run.
class Story {
 public:
  explicit Story(fs::path cache_folder) : cache_folder_(std::move(cache_folder)) {}

  Status Open() {
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices,
                             FindDevices(FakeDriver::GetApi()));
    if (devices.empty()) return Status(Code::kBackendUnavailable, "OpenCL cannot list a device.");
    ONNXIFI_ASSIGN_OR_RETURN(device_,
                             Device::Open(FakeDriver::GetApi(), devices[0], cache_folder_));
    return model_.Load(*device_);
  }

  // The fake driver computes nothing.
  Status Run(int64_t rows) { return model_.Run(rows, /*computes=*/false); }

  // A buffer of the caller's, an event each way, and memory that host and device share.
  Status Share() {
    const Api api = FakeDriver::GetApi();
    cl_int result = CL_SUCCESS;
    cl_context context = nullptr;
    ONNXIFI_ASSIGN_OR_RETURN(const device::Sharing::NewEvent made, device_->sharing().MakeEvent());
    const Handle<cl_event> event(
        reinterpret_cast<cl_event>(static_cast<uintptr_t>(made.event.handle)), api.ReleaseEvent);
    int told = 0;
    const Status waits =
        device_->sharing().WhenComplete(made.event, [&](const Status&) { ++told; });
    made.complete(base::Ok());
    ONNXIFI_RETURN_IF_ERROR(Status(waits));
    ONNXIFI_RETURN_IF_ERROR(
        ToStatus(api.GetEventInfo(event.get(), CL_EVENT_CONTEXT, sizeof(context),
                                  static_cast<void*>(&context), nullptr),
                 "tell the context"));
    const Handle<cl_mem> buffer(api.CreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, &result),
                                api.ReleaseMemObject);
    ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "make a buffer"));
    ONNXIFI_ASSIGN_OR_RETURN(
        const std::unique_ptr<device::Allocation> imported,
        device_->sharing().ImportMemory(reinterpret_cast<uintptr_t>(buffer.get()), 64,
                                        device::Sharing::Access::kWrite));
    ONNXIFI_ASSIGN_OR_RETURN(const device::Sharing::SharedMemory shared,
                             device_->sharing().AllocateShared(64));
    // A driver that cannot complete the event calls nobody.
    if (told != 1) return Status(Code::kInternalError, "OpenCL cannot complete an event.");
    return base::Ok();
  }

  Status All() {
    ONNXIFI_RETURN_IF_ERROR(Open());
    ONNXIFI_RETURN_IF_ERROR(Run(3));
    ONNXIFI_RETURN_IF_ERROR(Run(700));
    return Share();
  }

  Device& device() { return *device_; }

 private:
  const fs::path cache_folder_;
  std::unique_ptr<Device> device_;
  execution::StoryModel model_;
};

class FaultTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeDriver::Recover();
    std::string name = (fs::temp_directory_path() / "opencl_fault.XXXXXX").string();
    folder_ = mkdtemp(name.data());
    ASSERT_EQ(FakeDriver::LiveObjects(), 0);
  }
  void TearDown() override {
    FakeDriver::Recover();
    fs::remove_all(folder_);
    EXPECT_EQ(FakeDriver::LiveObjects(), 0);
  }

  fs::path folder_;
};

TEST_F(FaultTest, WithoutAFaultTheStoryEndsWell) {
  const Status status = Story(folder_).All();
  EXPECT_TRUE(status.ok()) << status.Text();
}

TEST_F(FaultTest, EveryFaultOfEveryFunctionIsADocumentedStatus) {
  // Answered for anything but a single fault: which functions a story calls at all, and how often.
  ASSERT_TRUE(Story({}).All().ok());
  std::vector<std::pair<std::string, int>> calls;
  for (const std::string& function : FakeDriver::Functions()) {
    calls.emplace_back(function, FakeDriver::CallCount(function));
  }
  const std::set<Code> documented = {Code::kBackendUnavailable, Code::kNoDeviceMemory,
                                     Code::kNoDeviceResources,  Code::kNoSystemMemory,
                                     Code::kInternalError,      Code::kInvalidMemoryLocation,
                                     Code::kInvalidEvent};
  int failed = 0;
  for (const auto& [function, count] : calls) {
    // What waits for an event that nothing completes is there for good.
    if (function == "SetUserEventStatus") continue;
    for (int call = 0; call < count; ++call) {
      for (const cl_int result :
           {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE,
            CL_DEVICE_NOT_AVAILABLE, CL_BUILD_PROGRAM_FAILURE, CL_INVALID_VALUE}) {
        FakeDriver::Recover();
        FakeDriver::Fail(function, result, call);
        Status status;
        {
          Story story({});
          status = story.All();
        }
        const std::string what =
            "cl" + function + ", call " + std::to_string(call) + ", " + std::to_string(result);
        EXPECT_EQ(FakeDriver::LiveObjects(), 0) << what;
        if (status.ok()) continue;
        ++failed;
        EXPECT_TRUE(documented.contains(status.code())) << what << ": " << status.Text();
        EXPECT_THAT(std::string(status.sentence()), testing::EndsWith(".")) << what;
      }
    }
  }
  // Few faults pass unseen: those after which there is another way.
  EXPECT_GT(failed, 200);
  FakeDriver::Recover();
  EXPECT_TRUE(Story({}).All().ok());
}

TEST_F(FaultTest, FaultsKeepTheirMeaning) {
  const auto status_after = [&](const char* function, cl_int result) {
    FakeDriver::Recover();
    FakeDriver::Fail(function, result);
    return Story({}).All();
  };
  Status status = status_after("CreateBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE);
  EXPECT_EQ(status.code(), Code::kNoDeviceMemory);
  EXPECT_THAT(std::string(status.sentence()), StartsWith("OpenCL cannot allocate "));
  status = status_after("SVMAlloc", CL_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(status.code(), Code::kNoDeviceMemory);
  EXPECT_EQ(std::string(status.sentence()),
            "OpenCL cannot share 256 bytes: memory object allocation failure.");
  status = status_after("BuildProgram", CL_BUILD_PROGRAM_FAILURE);
  EXPECT_EQ(status.code(), Code::kInternalError);
  EXPECT_THAT(status.Text(), HasSubstr("the fake compiler was told to fail"));
  status = status_after("EnqueueNDRangeKernel", CL_OUT_OF_RESOURCES);
  EXPECT_EQ(status.code(), Code::kNoDeviceResources);
  status = status_after("WaitForEvents", CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  EXPECT_EQ(status.code(), Code::kBackendUnavailable);
  status = status_after("CreateContext", CL_DEVICE_NOT_AVAILABLE);
  EXPECT_EQ(status.code(), Code::kBackendUnavailable);
  EXPECT_THAT(std::string(status.sentence()), HasSubstr("Fake device"));
  // cl_khr_icd's answer of a loader that finds no driver.
  constexpr cl_int kNoPlatform = -1001;
  status = status_after("GetPlatformIDs", kNoPlatform);
  EXPECT_EQ(status.code(), Code::kBackendUnavailable);
  EXPECT_EQ(std::string(status.sentence()), "OpenCL cannot list its platforms: no platform.");
}

TEST_F(FaultTest, ADriverOfOpenCl12HasNoMemoryToShare) {
  Api api = FakeDriver::GetApi();
  api.SVMAlloc = nullptr;
  const auto devices = FindDevices(api);
  ASSERT_TRUE(devices.ok());
  const auto device = Device::Open(api, devices->front(), folder_);
  ASSERT_TRUE(device.ok());
  const Status status = (*device)->sharing().AllocateShared(64).status();
  EXPECT_EQ(status.code(), Code::kUnsupportedMemoryType);
  EXPECT_THAT(status.Text(), HasSubstr("Fake device has no memory that it shares with the host"));
}

TEST_F(FaultTest, ADeviceThatVanishesFailsItsRunsAndNothingElse) {
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  ASSERT_TRUE(story.Run(4).ok());
  FakeDriver::FailAll(CL_DEVICE_NOT_AVAILABLE);
  for (const int64_t rows : {4, 5, 900}) {
    const Status status = story.Run(rows);
    EXPECT_EQ(status.code(), Code::kBackendUnavailable) << rows << ": " << status.Text();
  }
  EXPECT_EQ(Story(folder_).All().code(), Code::kBackendUnavailable);
  FakeDriver::Recover();
  EXPECT_TRUE(story.Run(4).ok());
  EXPECT_TRUE(Story(folder_).All().ok());
}

// ---- What works while a fault lasts ----

TEST_F(FaultTest, AKernelThatTheCompilerRefusesFailsItsOwnGraphAlone) {
  Story before({});
  ASSERT_TRUE(before.Open().ok());
  // Few rows and many have kernels of their own.
  for (const int64_t rows : {3, 300}) ASSERT_TRUE(before.Run(rows).ok());
  Story refused({});
  ASSERT_TRUE(refused.Open().ok());
  FakeDriver::Fail("BuildProgram", CL_BUILD_PROGRAM_FAILURE);
  const Status status = refused.Run(3);
  EXPECT_EQ(status.code(), Code::kInternalError);
  EXPECT_EQ(status.sentence(), "OpenCL cannot compile a kernel: build program failure.");
  EXPECT_THAT(status.Text(),
              HasSubstr("the compiler says: error: the fake compiler was told to fail"));
  // What was compiled before serves other extents too.
  for (const int64_t rows : {3, 4, 700}) {
    const Status other = before.Run(rows);
    EXPECT_TRUE(other.ok()) << rows << ": " << other.Text();
  }
  // And kernels on the disk need no compiler.
  FakeDriver::Recover();
  ASSERT_TRUE(Story(folder_).All().ok());
  FakeDriver::Fail("CreateProgramWithSource", CL_COMPILER_NOT_AVAILABLE);
  EXPECT_TRUE(Story(folder_).All().ok());
  EXPECT_EQ(Story({}).All().code(), Code::kBackendUnavailable);
  FakeDriver::Recover();
  // A refusal is not kept.
  EXPECT_TRUE(refused.Run(3).ok());
}

TEST_F(FaultTest, WhereMemoryRunsOutWhatIsBoundStillRuns) {
  Story bound(folder_);
  ASSERT_TRUE(bound.Open().ok());
  ASSERT_TRUE(bound.Run(3).ok());
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  ASSERT_TRUE(story.Run(3).ok());
  FakeDriver::Fail("CreateBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE);
  // For more than it has, the story gives up what it had, and then has neither.
  for (const int64_t rows : {100'000, 3}) {
    const Status status = story.Run(rows);
    EXPECT_EQ(status.code(), Code::kNoDeviceMemory) << rows;
    EXPECT_THAT(std::string(status.sentence()),
                testing::MatchesRegex("OpenCL cannot allocate .+: memory object allocation"
                                      " failure\\."));
    EXPECT_EQ(Story(folder_).All().code(), Code::kNoDeviceMemory);
    const Status other = bound.Run(3);
    EXPECT_TRUE(other.ok()) << other.Text();
  }
  FakeDriver::Recover();
  EXPECT_TRUE(story.Run(100'000).ok());
  EXPECT_TRUE(story.Run(3).ok());
}

TEST_F(FaultTest, PlatformsThatVanishLeaveOpenDevicesAlone) {
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  constexpr cl_int kNoPlatform = -1001;
  FakeDriver::Fail("GetPlatformIDs", kNoPlatform);
  FakeDriver::Fail("GetDeviceIDs", CL_DEVICE_NOT_FOUND);
  const Result<std::vector<DeviceInfo>> found = FindDevices(FakeDriver::GetApi());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), Code::kBackendUnavailable);
  EXPECT_EQ(found.status().sentence(), "OpenCL cannot list its platforms: no platform.");
  for (const int64_t rows : {3, 900}) {
    const Status status = story.Run(rows);
    EXPECT_TRUE(status.ok()) << rows << ": " << status.Text();
  }
  EXPECT_TRUE(story.Share().ok());
  // A platform that has lost its devices is no fault of the others.
  FakeDriver::Recover();
  FakeDriver::Fail("GetDeviceIDs", CL_DEVICE_NOT_FOUND);
  const Result<std::vector<DeviceInfo>> without = FindDevices(FakeDriver::GetApi());
  ASSERT_TRUE(without.ok());
  EXPECT_TRUE(without->empty());
}

TEST_F(FaultTest, ARunThatLosesItsDeviceSaysWhatItWasDoing) {
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  ASSERT_TRUE(story.Run(4).ok());
  const auto lost = [&](const char* function) {
    FakeDriver::Recover();
    FakeDriver::Fail(function, CL_DEVICE_NOT_AVAILABLE);
    const Status status = story.Run(4);
    EXPECT_EQ(status.code(), Code::kBackendUnavailable) << function;
    return std::string(status.sentence());
  };
  EXPECT_EQ(lost("EnqueueWriteBuffer"), "OpenCL cannot upload 80 bytes: device not available.");
  EXPECT_THAT(lost("EnqueueNDRangeKernel"),
              testing::MatchesRegex("OpenCL cannot start a kernel of [0-9]+ items: device not"
                                    " available\\."));
  EXPECT_EQ(lost("EnqueueReadBuffer"), "OpenCL cannot download 16 bytes: device not available.");
  EXPECT_EQ(lost("WaitForEvents"), "OpenCL cannot finish a run: device not available.");
  FakeDriver::Recover();
  EXPECT_TRUE(story.Run(4).ok());
}

TEST_F(FaultTest, AnEventThatEndsInAnErrorIsToldAsOne) {
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  const Api api = FakeDriver::GetApi();
  for (const cl_int state : {CL_COMPLETE, CL_OUT_OF_RESOURCES}) {
    Result<device::Sharing::NewEvent> made = story.device().sharing().MakeEvent();
    ASSERT_TRUE(made.ok());
    std::vector<Status> told;
    ASSERT_TRUE(
        story.device()
            .sharing()
            .WhenComplete(made->event, [&](const Status& status) { told.push_back(status); })
            .ok());
    EXPECT_TRUE(told.empty());
    made->complete(state == CL_COMPLETE ? base::Ok() : Status(Code::kInternalError, "A test."));
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].code(), state == CL_COMPLETE ? Code::kOk : Code::kBackendUnavailable);
    api.ReleaseEvent(reinterpret_cast<cl_event>(static_cast<uintptr_t>(made->event.handle)));
  }
}

TEST_F(FaultTest, WhatThePoolKeepsIsGivenBackBeforeMemoryRunsOut) {
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  { const auto kept = story.device().memory().Allocate(10'000); }
  // Fails once: the pool lets go of what is idle and asks again.
  FakeDriver::Recover();
  FakeDriver::Fail("CreateBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE);
  EXPECT_EQ(story.device().memory().Allocate(1 << 20).status().code(), Code::kNoDeviceMemory);
  EXPECT_EQ(FakeDriver::CallCount("CreateBuffer"), 2);
  FakeDriver::Recover();
  EXPECT_TRUE(story.device().memory().Allocate(1 << 20).ok());
}

TEST_F(FaultTest, RunsOfSeveralThreadsDoNotMeet) {
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  std::vector<std::thread> threads;
  std::vector<Status> statuses(4);
  for (size_t k = 0; k < statuses.size(); ++k) {
    threads.emplace_back([&, k] {
      for (int64_t run = 0; run < 20 && statuses[k].ok(); ++run) {
        statuses[k] = story.Run(1 + (run + static_cast<int64_t>(k)) % 5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.Text();
}

// ---- Kernels on disk ----

// What the next process finds: how many kernels it compiles from source.
int64_t CompiledBy(const fs::path& folder) {
  Story story(folder);
  EXPECT_TRUE(story.All().ok());
  return story.device().compiled_count();
}

std::vector<fs::path> FilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

TEST_F(FaultTest, KernelsComeFromTheDiskTheSecondTime) {
  const int64_t compiled = CompiledBy(folder_);
  EXPECT_GT(compiled, 1);
  EXPECT_EQ(static_cast<int64_t>(FilesIn(folder_).size()), compiled);
  EXPECT_EQ(CompiledBy(folder_), 0);
}

TEST_F(FaultTest, DamagedKernelsOnDiskAreCompiledAnew) {
  const int64_t compiled = CompiledBy(folder_);
  const auto damage = [&](const std::function<void(const fs::path&)>& how) {
    for (const fs::path& file : FilesIn(folder_)) how(file);
    EXPECT_EQ(CompiledBy(folder_), compiled);
    EXPECT_EQ(CompiledBy(folder_), 0);
  };
  damage([](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); });
  damage([](const fs::path& file) { fs::resize_file(file, 0); });
  damage([](const fs::path& file) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-1, std::ios::end);
    stream.put('\x5a');
  });
  damage([](const fs::path& file) { std::ofstream(file) << "something else"; });
  // Sound files, and a driver that takes them no more.
  FakeDriver::Recover();
  FakeDriver::Fail("CreateProgramWithBinary", CL_INVALID_BINARY);
  EXPECT_EQ(CompiledBy(folder_), compiled);
}

TEST_F(FaultTest, AFolderThatCannotBeWrittenCostsNothingButTime) {
  std::ofstream(folder_ / "file") << "no folder";
  const int64_t compiled = CompiledBy(folder_ / "file");
  EXPECT_GT(compiled, 1);
  EXPECT_EQ(CompiledBy(folder_ / "file"), compiled);
}

}  // namespace
}  // namespace onnxifi::opencl
