// SPDX-License-Identifier: Apache-2.0
//
// Every fault that a driver may have, at every call of every function that the backend makes: a
// documented status with a sentence, nothing left behind, and everything works once the fault is
// over. On the fake driver, so that this runs everywhere, under sanitizers too; what the kernels
// compute is for the tests on real devices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/vulkan/testing/fake_driver.h"
#include "backends/vulkan/testing/story.h"

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Status;
using testing::EndsWith;
using testing::IsEmpty;
using testing::MatchesRegex;

class FaultTest : public FakeDriverTest {};

TEST_F(FaultTest, WithoutAFaultTheStoryEndsWell) {
  const Status status = Story(folder_).All();
  EXPECT_TRUE(status.ok()) << status.Text();
  EXPECT_FALSE(FakeDriver::Starts().empty());
}

TEST_F(FaultTest, TheFakeDriverHasEveryFunction) {
  const Api api = FakeDriver::GetApi();
  const auto instance = Instance::Create(api, false);
  ASSERT_TRUE(instance.ok()) << instance.status().Text();
  EXPECT_TRUE(LoadDeviceApi((*instance)->api(), VK_NULL_HANDLE).ok());
}

// How a story ends in which `function` fails with `result` at its call `call`.
Status EndOfStory(const std::string& function, VkResult result, int call, int count) {
  FakeDriver::Recover();
  FakeDriver::Fail(function, result, call, count);
  return Story({}).All();
}

void ExpectDocumentedEnds(int least_failed) {
  ASSERT_TRUE(Story({}).All().ok());
  std::vector<std::pair<std::string, int>> calls;
  for (const std::string& function : FakeDriver::Functions()) {
    calls.emplace_back(function, FakeDriver::CallCount(function));
  }
  const std::set<Code> documented = {Code::kBackendUnavailable, Code::kNoDeviceMemory,
                                     Code::kNoDeviceResources, Code::kNoSystemMemory,
                                     Code::kInternalError};
  int failed = 0;
  for (const auto& [function, count] : calls) {
    for (int call = 0; call < count; ++call) {
      for (const VkResult result :
           {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST,
            VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_MEMORY_MAP_FAILED, VK_ERROR_UNKNOWN}) {
        // For good, and once.
        for (const int times : {INT_MAX, 1}) {
          const Status status = EndOfStory(function, result, call, times);
          const std::string what =
              "vk" + function + ", call " + std::to_string(call) + ", " + std::to_string(result);
          ASSERT_EQ(FakeDriver::LiveObjects(), 0) << what;
          ASSERT_THAT(FakeDriver::Misuses(), IsEmpty()) << what;
          if (status.ok()) continue;
          ++failed;
          EXPECT_TRUE(documented.contains(status.code())) << what << ": " << status.Text();
          EXPECT_THAT(std::string(status.sentence()), EndsWith(".")) << what;
        }
      }
    }
  }
  // Few faults pass unseen: those after which there is another way.
  EXPECT_GT(failed, least_failed);
  FakeDriver::Recover();
  EXPECT_TRUE(Story({}).All().ok());
}

TEST_F(FaultTest, EveryFaultOfEveryFunctionIsADocumentedStatus) { ExpectDocumentedEnds(200); }

TEST_F(FaultTest, SoItIsWhereTheHostCannotWriteTheDevicesMemory) {
  FakeDriver::SetDevices({DeviceWithMemoryOfItsOwn()});
  ExpectDocumentedEnds(200);
}

TEST_F(FaultTest, AStoryIsShortSoThatAllOfItsFaultsCanBeTried) {
  ASSERT_TRUE(Story({}).All().ok());
  int calls = 0;
  for (const std::string& function : FakeDriver::Functions()) {
    calls += FakeDriver::CallCount(function);
  }
  EXPECT_LT(calls, 200);
}

TEST_F(FaultTest, FaultsKeepTheirMeaning) {
  const auto status_after = [&](const char* function, VkResult result) {
    return EndOfStory(function, result, 0, INT_MAX);
  };
  Status status = status_after("AllocateMemory", VK_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(status.code(), Code::kNoDeviceMemory);
  EXPECT_THAT(std::string(status.sentence()),
              MatchesRegex("Vulkan cannot allocate [0-9]+ bytes: out of device memory\\."));
  status = status_after("MapMemory", VK_ERROR_MEMORY_MAP_FAILED);
  EXPECT_EQ(status.code(), Code::kNoSystemMemory);
  EXPECT_THAT(std::string(status.sentence()),
              MatchesRegex("Vulkan cannot map [0-9]+ bytes: memory map failed\\."));
  status = status_after("CreateBuffer", VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(status.code(), Code::kNoSystemMemory);
  status = status_after("CreateComputePipelines", VK_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(status.code(), Code::kNoDeviceMemory);
  EXPECT_EQ(status.sentence(), "Vulkan cannot create a kernel: out of device memory.");
  status = status_after("CreateShaderModule", VK_ERROR_UNKNOWN);
  EXPECT_EQ(status.code(), Code::kInternalError);
  EXPECT_EQ(status.sentence(), "Vulkan cannot create a kernel: error -13.");
  status = status_after("QueueSubmit", VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_EQ(status.code(), Code::kNoSystemMemory);
  EXPECT_EQ(status.sentence(), "Vulkan cannot submit a run: out of host memory.");
  status = status_after("WaitSemaphores", VK_ERROR_DEVICE_LOST);
  EXPECT_EQ(status.code(), Code::kBackendUnavailable);
  EXPECT_EQ(status.sentence(), "Vulkan cannot finish a run: device lost.");
  status = status_after("CreateDevice", VK_ERROR_INITIALIZATION_FAILED);
  EXPECT_EQ(status.code(), Code::kBackendUnavailable);
  EXPECT_EQ(status.sentence(), "Vulkan cannot open Fake device: initialization failed.");
}

// ---- What works while a fault lasts, and after it ----

TEST_F(FaultTest, ALostDeviceFailsItsRunsAndNoOtherDevices) {
  FakeDevice second;
  second.name = "Second fake device";
  second.uuid = {9};
  FakeDriver::SetDevices({FakeDevice{}, second});
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  ASSERT_TRUE(story.Run(4).ok());
  Story other(folder_, 1);
  ASSERT_TRUE(other.Open().ok());
  FakeDriver::LoseOpenDevices(0);
  for (const int64_t rows : {4, 5, 900}) {
    const Status status = story.Run(rows);
    EXPECT_EQ(status.code(), Code::kBackendUnavailable) << rows << ": " << status.Text();
    EXPECT_THAT(std::string(status.sentence()), EndsWith(": device lost."));
    const Status of_other = other.Run(rows);
    EXPECT_TRUE(of_other.ok()) << rows << ": " << of_other.Text();
  }
  // A new backend on the device that was lost works, beside the one that is lost.
  const Status anew = Story(folder_).All();
  EXPECT_TRUE(anew.ok()) << anew.Text();
  EXPECT_EQ(story.Run(4).code(), Code::kBackendUnavailable);
}

TEST_F(FaultTest, ADeviceThatIsLostWhileItIsOpenedIsOpenedLater) {
  FakeDriver::Fail("CreateDevice", VK_ERROR_DEVICE_LOST);
  EXPECT_EQ(Story(folder_).All().code(), Code::kBackendUnavailable);
  FakeDriver::Recover();
  EXPECT_TRUE(Story(folder_).All().ok());
}

TEST_F(FaultTest, ARunSaysWhatItWasDoing) {
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  ASSERT_TRUE(story.Run(4).ok());
  // What runs for the first time is not recorded: a recording that fails would be no failed run.
  int64_t rows = 4;
  const auto failed = [&](const char* function) {
    FakeDriver::Recover();
    FakeDriver::Fail(function, VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
    const Status status = story.Run(++rows);
    EXPECT_EQ(status.code(), Code::kNoSystemMemory) << function;
    // It is over at once.
    const Status next = story.Run(rows);
    EXPECT_TRUE(next.ok()) << function << ": " << next.Text();
    return std::string(status.sentence());
  };
  EXPECT_EQ(failed("BeginCommandBuffer"), "Vulkan cannot begin a run: out of host memory.");
  EXPECT_EQ(failed("ResetCommandPool"), "Vulkan cannot begin a run: out of host memory.");
  EXPECT_EQ(failed("EndCommandBuffer"), "Vulkan cannot end a run: out of host memory.");
  EXPECT_EQ(failed("QueueSubmit"), "Vulkan cannot submit a run: out of host memory.");
}

TEST_F(FaultTest, AWaitThatFailsLeavesNothingUnderWay) {
  for (const bool is_mapped : {true, false}) {
    FakeDriver::SetDevices({is_mapped ? FakeDevice{} : DeviceWithMemoryOfItsOwn()});
    Story story(folder_);
    ASSERT_TRUE(story.Open().ok());
    ASSERT_TRUE(story.Run(4).ok());
    // There is another way to wait, and time.
    FakeDriver::Fail("WaitSemaphores", VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
    FakeDriver::Fail("DeviceWaitIdle", VK_ERROR_OUT_OF_HOST_MEMORY, 0, 3);
    const Status status = story.Run(4);
    EXPECT_TRUE(status.ok()) << status.Text();
    const Status next = story.Run(9);
    EXPECT_TRUE(next.ok()) << next.Text();
  }
}

TEST_F(FaultTest, AKernelThatTheDriverRefusesFailsItsOwnGraphAlone) {
  Story before({});
  ASSERT_TRUE(before.Open().ok());
  // Few rows and many have kernels of their own.
  for (const int64_t rows : {3, 300}) ASSERT_TRUE(before.Run(rows).ok());
  Story refused({});
  FakeDriver::Fail("CreateComputePipelines", VK_ERROR_UNKNOWN);
  Status status = refused.Open();
  if (status.ok()) status = refused.Run(3);
  EXPECT_EQ(status.code(), Code::kInternalError);
  EXPECT_EQ(status.sentence(), "Vulkan cannot create a kernel: error -13.");
  // What was compiled before serves other extents too.
  for (const int64_t rows : {3, 4, 700}) {
    const Status other = before.Run(rows);
    EXPECT_TRUE(other.ok()) << rows << ": " << other.Text();
  }
  // A refusal is not kept.
  FakeDriver::Recover();
  status = refused.Load();
  if (status.ok()) status = refused.Run(3);
  EXPECT_TRUE(status.ok()) << status.Text();
}

// What is not brought over must not pass for the weights of a model.
TEST_F(FaultTest, AModelWhoseWeightsWereNotBroughtOverDoesNotRun) {
  FakeDriver::SetDevices({DeviceWithMemoryOfItsOwn()});
  const auto work_of_first_run = [&](const char* function, int call, Status& status) {
    Story story(folder_);
    status = story.Open();
    FakeDriver::Recover();
    if (function != nullptr) {
      FakeDriver::Fail(function, VK_ERROR_OUT_OF_HOST_MEMORY, call, 1);
      EXPECT_EQ(story.Run(3).code(), Code::kNoSystemMemory) << function;
      EXPECT_EQ(FakeDriver::CopyCount(), 0) << function;
      EXPECT_TRUE(FakeDriver::Starts().empty()) << function;
    }
    if (status.ok()) status = story.Run(3);
    return std::pair(FakeDriver::CopyCount(), FakeDriver::Starts().size());
  };
  Status status;
  const auto work = work_of_first_run(nullptr, 0, status);
  ASSERT_TRUE(status.ok()) << status.Text();
  // What cannot be submitted is submitted later.
  EXPECT_EQ(work_of_first_run("QueueSubmit", 0, status), work);
  EXPECT_TRUE(status.ok()) << status.Text();
  // The run's own commands are ended first, and then the weights': what could not be ended is lost,
  // and nothing tells whose it was.
  EXPECT_EQ(work_of_first_run("EndCommandBuffer", 0, status), work);
  EXPECT_TRUE(status.ok()) << status.Text();
  EXPECT_EQ(work_of_first_run("EndCommandBuffer", 1, status), std::pair(0, size_t{0}));
  EXPECT_EQ(status.code(), Code::kNoSystemMemory);
  status = Story(folder_).All();
  EXPECT_TRUE(status.ok()) << status.Text();
}

TEST_F(FaultTest, AModelIsLoadedWhileTheWeightsOfAnotherWait) {
  for (const bool is_mapped : {true, false}) {
    FakeDriver::SetDevices({is_mapped ? FakeDevice{} : DeviceWithMemoryOfItsOwn()});
    Story story(folder_);
    ASSERT_TRUE(story.Open().ok());
    FakeDriver::Fail("QueueSubmit", VK_ERROR_OUT_OF_DEVICE_MEMORY, 0, 1);
    EXPECT_EQ(story.Run(3).code(), Code::kNoDeviceMemory);
    Status status = story.Load();
    EXPECT_TRUE(status.ok()) << status.Text();
    status = story.Run(3);
    EXPECT_TRUE(status.ok()) << status.Text();
  }
}

// What is recorded is submitted at the latest when the device goes; what it uses goes later.
TEST_F(FaultTest, WeightsThatWaitAreBroughtOverWhenTheDeviceGoes) {
  for (const bool is_mapped : {true, false}) {
    FakeDriver::SetDevices({is_mapped ? FakeDevice{} : DeviceWithMemoryOfItsOwn()});
    for (int call = 0; call < 4; ++call) {
      FakeDriver::Recover();
      Story story(folder_);
      ASSERT_TRUE(story.Open().ok());
      FakeDriver::Fail("QueueSubmit", VK_ERROR_OUT_OF_DEVICE_MEMORY, 0, 1);
      EXPECT_EQ(story.Run(3).code(), Code::kNoDeviceMemory);
      FakeDriver::Fail("BeginCommandBuffer", VK_ERROR_OUT_OF_DEVICE_MEMORY, call, 1);
      if (story.Load().ok()) static_cast<void>(story.Run(3));
    }
  }
}

TEST_F(FaultTest, RunsOfSeveralThreadsDoNotMeet) {
  for (const bool is_mapped : {true, false}) {
    FakeDriver::SetDevices({is_mapped ? FakeDevice{} : DeviceWithMemoryOfItsOwn()});
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
}

TEST_F(FaultTest, ADeviceThatIsLostUnderSeveralThreadsFailsThemAll) {
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  std::vector<std::thread> threads;
  std::vector<Status> statuses(4);
  for (Status& status : statuses) {
    threads.emplace_back([&] {
      while (status.ok()) status = story.Run(3);
    });
  }
  FakeDriver::LoseOpenDevices();
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) EXPECT_EQ(status.code(), Code::kBackendUnavailable);
}

}  // namespace
}  // namespace onnxifi::vulkan
