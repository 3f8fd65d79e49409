// SPDX-License-Identifier: Apache-2.0
//
// Every fault that the driver may have, at every call of every function that the backend makes: a
// documented status with a sentence, nothing left behind, and everything works once the fault is
// over. On the emulated device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/compile_only.h"
#include "backends/cuda/testing/story.h"

namespace onnxifi::cuda {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Status;
using testing::HasSubstr;

constexpr int kEver = -1;

class FaultTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ONNXIFI_EMULATED_DEVICES", "2", /*replace=*/1);
    emulated_recover();
    emulated_forget();
    emulated_nvrtc_fail(nullptr, 0, 0, 0);
    std::string name = (fs::temp_directory_path() / "cuda_fault.XXXXXX").string();
    folder_ = mkdtemp(name.data());
    ASSERT_EQ(LiveObjects(), 0);
  }
  void TearDown() override {
    emulated_recover();
    emulated_nvrtc_fail(nullptr, 0, 0, 0);
    EXPECT_EQ(LiveObjects(), 0);
    fs::remove_all(folder_);
  }
  fs::path folder_;
};

// Those whose failure nobody can do anything about, and those that callers alone call. Without a
// context nothing can be released either, which has a test of its own.
bool IsOfNoConsequence(const std::string& function) {
  for (const char* part : {"Destroy", "Free", "Unload", "Release", "PushCurrent", "PopCurrent",
                           "BeginCapture", "EndCapture"}) {
    if (function.find(part) != std::string::npos) return true;
  }
  return false;
}

void ExpectDocumented(const Status& status) {
  const std::set<Code> documented = {Code::kNoDeviceMemory,     Code::kNoDeviceResources,
                                     Code::kBackendUnavailable, Code::kNoSystemMemory,
                                     Code::kInternalError,      Code::kInvalidState};
  EXPECT_TRUE(documented.contains(status.code())) << status.Text();
  EXPECT_FALSE(status.sentence().empty());
  EXPECT_EQ(status.Text().find("A sum is wrong"), std::string::npos) << status.Text();
}

TEST_F(FaultTest, AHealthyDriverIsNotMisused) {
  {
    Story story(folder_);
    const Status status = story.All();
    ASSERT_TRUE(status.ok()) << status.Text();
  }
  EXPECT_EQ(LiveObjects(), 0);
  EXPECT_EQ(emulated_misuse(0), nullptr) << emulated_misuse(0);
}

TEST_F(FaultTest, EveryCallOfEveryFunctionFailsInTurn) {
  ASSERT_TRUE(Story(folder_).All().ok());
  emulated_recover();
  ASSERT_TRUE(Story(folder_).All().ok());
  std::vector<std::pair<std::string, int>> functions;
  for (int number = 0; emulated_function(number) != nullptr; ++number) {
    const std::string name = emulated_function(number);
    const int count = emulated_call_count(name.c_str());
    if (count > 0 && !IsOfNoConsequence(name)) functions.emplace_back(name, count);
  }
  ASSERT_GT(functions.size(), 25U);
  int failed_count = 0;
  for (const auto& [name, count] : functions) {
    for (int call = 0; call < count; ++call) {
      for (const CUresult fault : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN}) {
        SCOPED_TRACE(name + ", call " + std::to_string(call) + ", fault " + std::to_string(fault));
        emulated_recover();
        emulated_fail(name.c_str(), fault, call, 1);
        const Status status = Story(folder_).All();
        if (!status.ok()) {
          ++failed_count;
          ExpectDocumented(status);
        }
        EXPECT_EQ(LiveObjects(), 0);
        emulated_recover();
        const Status healthy = Story(folder_).All();
        ASSERT_TRUE(healthy.ok()) << healthy.Text();
      }
    }
  }
  // Few questions have an answer that can be done without.
  EXPECT_GT(failed_count, 100);
}

Api OfUnknownArchitecture() {
  Api api = *LoadApi();
  static Api real;
  real = api;
  api.DeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice device) {
    if (attribute != CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) {
      return real.DeviceGetAttribute(value, attribute, device);
    }
    *value = 5;
    return CUDA_SUCCESS;
  };
  return api;
}

// Kernels of an architecture that the compiler knows, of one that it does not, which get PTX, and
// those of a device that only compiles, which asks what they take.
TEST_F(FaultTest, EveryCallOfTheCompilerFailsInTurn) {
  const CompilerApi compiler_api = *LoadCompilerApi();
  const Api apis[] = {*LoadApi(), OfUnknownArchitecture(), CompileOnlyApi(90)};
  const char* const functions[] = {"nvrtcVersion",
                                   "nvrtcGetNumSupportedArchs",
                                   "nvrtcGetSupportedArchs",
                                   "nvrtcCreateProgram",
                                   "nvrtcCompileProgram",
                                   "nvrtcGetProgramLogSize",
                                   "nvrtcGetProgramLog",
                                   "nvrtcGetCUBINSize",
                                   "nvrtcGetCUBIN",
                                   "nvrtcGetPTXSize",
                                   "nvrtcGetPTX"};
  const auto compile = [&](const Api& api, const fs::path& folder) {
    fs::create_directories(folder);
    Story story(folder);
    const Status opened = story.Open(api, compiler_api, /*compiles_only=*/&api == &apis[2]);
    return opened.ok() ? story.Run(3) : Status(opened);
  };
  std::set<std::string> failed;
  int number = 0;
  for (const Api& api : apis) {
    for (const char* const function : functions) {
      emulated_nvrtc_fail(nullptr, 0, 0, 0);
      const Status healthy = compile(api, folder_ / std::to_string(number++));
      ASSERT_TRUE(healthy.ok()) << healthy.Text();
      const int count = emulated_nvrtc_call_count(function);
      for (int call = 0; call < count; ++call) {
        for (const nvrtcResult fault :
             {NVRTC_ERROR_OUT_OF_MEMORY, NVRTC_ERROR_COMPILATION, NVRTC_ERROR_INTERNAL_ERROR}) {
          SCOPED_TRACE(std::string(function) + ", call " + std::to_string(call) + ", fault " +
                       std::to_string(fault));
          const fs::path folder = folder_ / std::to_string(number++);
          emulated_nvrtc_fail(function, fault, call, 1);
          const Status status = compile(api, folder);
          ASSERT_FALSE(status.ok());
          ExpectDocumented(status);
          EXPECT_THAT(std::string(status.sentence()), HasSubstr("NVRTC"));
          failed.insert(function);
          EXPECT_EQ(LiveObjects(), 0);
          emulated_nvrtc_fail(nullptr, 0, 0, 0);
          const Status again = compile(api, folder);
          EXPECT_TRUE(again.ok()) << again.Text();
        }
      }
    }
  }
  EXPECT_EQ(failed.size(), std::size(functions));
}

TEST_F(FaultTest, ADeviceWhoseContextCannotBeEnteredIsUnavailable) {
  emulated_fail("cuCtxPushCurrent", CUDA_ERROR_UNKNOWN, 0, kEver);
  const Status status = Story(folder_).Open();
  EXPECT_EQ(status.code(), Code::kBackendUnavailable) << status.Text();
  EXPECT_EQ(LiveObjects(), 0);
}

// By number, since headers of CUDA 12 lack some.
TEST_F(FaultTest, AnErrorThatEndsTheContextEndsThisDeviceAndNoOther) {
  constexpr int kEcc = 214, kNvlink = 220, kContained = 226, kIllegalAddress = 700, kTimeout = 702,
                kAssert = 710, kStack = 714, kInstruction = 715, kMisaligned = 716, kSpace = 717,
                kCounter = 718, kLaunch = 719, kTensorMemory = 721, kMps = 810, kExternal = 911;
  for (const int fault :
       {kEcc, kNvlink, kContained, kIllegalAddress, kTimeout, kAssert, kStack, kInstruction,
        kMisaligned, kSpace, kCounter, kLaunch, kTensorMemory, kMps, kExternal}) {
    SCOPED_TRACE(fault);
    emulated_recover();
    Story lost(folder_, 0);
    Story other(folder_, 1);
    ASSERT_TRUE(lost.Open().ok());
    ASSERT_TRUE(other.Open().ok());
    ASSERT_TRUE(lost.Run(3).ok());
    emulated_fail("cuEventSynchronize", fault, 0, 1);
    const Status first = lost.Run(3);
    ASSERT_FALSE(first.ok());
    EXPECT_EQ(first.code(), Code::kBackendUnavailable) << first.Text();
    EXPECT_THAT(std::string(first.sentence()), HasSubstr("lost to this process until it ends"));
    for (int run = 0; run < 3; ++run) EXPECT_EQ(lost.Run(3).code(), Code::kBackendUnavailable);
    EXPECT_EQ(Story(folder_, 0).Open().code(), Code::kBackendUnavailable);
    const Status unharmed = other.Run(5);
    EXPECT_TRUE(unharmed.ok()) << unharmed.Text();
  }
  emulated_recover();
}

TEST_F(FaultTest, WhatTheCompilerSaysIsTold) {
  CompilerApi compiler = *LoadCompilerApi();
  compiler.CompileProgram = [](nvrtcProgram, int, const char* const*) {
    return NVRTC_ERROR_OUT_OF_MEMORY;
  };
  Story story(folder_);
  Status status = story.Open(*LoadApi(), compiler);
  if (status.ok()) status = story.Run(3);
  EXPECT_EQ(status.code(), Code::kNoSystemMemory) << status.Text();
  compiler.CompileProgram = [](nvrtcProgram, int, const char* const*) {
    return NVRTC_ERROR_INTERNAL_ERROR;
  };
  Story second(folder_);
  status = second.Open(*LoadApi(), compiler);
  if (status.ok()) status = second.Run(3);
  EXPECT_EQ(status.code(), Code::kInternalError) << status.Text();
  EXPECT_THAT(std::string(status.sentence()), HasSubstr("NVRTC cannot compile a kernel"));
}

TEST_F(FaultTest, ADeviceOfLowCapabilityIsLeftOutWithTheReason) {
  Api api = *LoadApi();
  static Api real;
  real = api;
  api.DeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice device) {
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
      *value = device == 0 ? 7 : 8;
      return CUDA_SUCCESS;
    }
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) {
      *value = 5;
      return CUDA_SUCCESS;
    }
    return real.DeviceGetAttribute(value, attribute, device);
  };
  const auto found = FindDevices(api);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->fit.size(), 1U);
  EXPECT_EQ(found->fit[0].index, 1);
  ASSERT_EQ(found->left_out.size(), 1U);
  EXPECT_THAT(found->left_out[0], HasSubstr("compute capability 7.5 in place of 8.0"));
  // Nothing of this needs a context.
  EXPECT_EQ(emulated_live("context"), 0);
}

TEST_F(FaultTest, AnArchitectureThatTheCompilerDoesNotKnowGetsPtx) {
  const CompilerApi api = *LoadCompilerApi();
  const auto newer = Compiler::Create(api, 999);
  ASSERT_TRUE(newer.ok());
  EXPECT_THAT(newer->name(), HasSubstr("compute_"));
  const auto known = Compiler::Create(api, 90);
  ASSERT_TRUE(known.ok());
  EXPECT_THAT(known->name(), HasSubstr("sm_90"));
  const auto older = Compiler::Create(api, 10);
  ASSERT_FALSE(older.ok());
  EXPECT_THAT(std::string(older.status().sentence()), HasSubstr("sm_10"));
}

TEST_F(FaultTest, ASecondDeviceCompilesNothingAndDamagedEntriesAreMadeAnew) {
  int64_t compiled = 0;
  {
    Story story(folder_);
    ASSERT_TRUE(story.All().ok());
    compiled = story.device().compiled_count();
    ASSERT_GE(compiled, 2);
    // Other extents.
    ASSERT_TRUE(story.Run(41).ok());
    EXPECT_EQ(story.device().compiled_count(), compiled);
  }
  {
    Story story(folder_);
    ASSERT_TRUE(story.All().ok());
    EXPECT_EQ(story.device().compiled_count(), 0);
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(entry.file_size() / 2));
    file << "damage";
  }
  Story story(folder_);
  ASSERT_TRUE(story.All().ok());
  EXPECT_EQ(story.device().compiled_count(), compiled);
}

TEST_F(FaultTest, MoreThanThereIsIsRefusedWithBothNumbers) {
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  const auto memory = story.device().memory().Allocate(int64_t{1} << 50);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), Code::kNoDeviceMemory);
  EXPECT_THAT(std::string(memory.status().sentence()), HasSubstr("1125899906842624"));
  EXPECT_THAT(std::string(memory.status().sentence()), HasSubstr("4294967296"));
  EXPECT_TRUE(story.Run(3).ok());
}

TEST_F(FaultTest, AForkedProcessIsToldSo) {
  Story story(folder_);
  ASSERT_TRUE(story.Open().ok());
  ASSERT_TRUE(story.Run(3).ok());
  const pid_t child = fork();
  if (child == 0) {
    const Status status = story.Run(3);
    const bool is_told = status.code() == Code::kBackendUnavailable &&
                         status.sentence().find("forked") != std::string_view::npos;
    _exit(is_told ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  EXPECT_TRUE(story.Run(3).ok());
}

// The driver waits for every stream before it frees, also for the one of an event that is not
// complete.
TEST_F(FaultTest, MemoryIsFreedOnlyOnceNoEventIsHeldBack) {
  const Api api = *LoadApi();
  const auto devices = FindDevices(api);
  ASSERT_TRUE(devices.ok());
  const auto runtime = Runtime::Open(api, devices->fit[0]);
  ASSERT_TRUE(runtime.ok());
  const auto gates = std::make_shared<Gates>((*runtime)->context());
  CUdeviceptr memory = 0;
  const auto allocate = [&] { return api.MemAlloc(&memory, 64); };
  ASSERT_TRUE((*runtime)->Do("allocate", allocate).ok());
  const auto first = gates->Make();
  const auto second = gates->Make();
  ASSERT_TRUE(first.ok() && second.ok());
  gates->Free(memory);
  EXPECT_EQ(emulated_live("memory"), 1);
  second->complete();
  EXPECT_EQ(emulated_live("memory"), 1);
  first->complete();
  EXPECT_EQ(emulated_live("memory"), 0);
  for (CUevent event : {first->event, second->event}) {
    static_cast<void>((*runtime)->Do("destroy", [&] { return api.EventDestroy(event); }));
  }
}

}  // namespace
}  // namespace onnxifi::cuda
