// SPDX-License-Identifier: Apache-2.0
//
// Every fault that cuDNN may have, at every call: a documented status with a sentence or a kernel
// of ours in the library's place, nothing left behind, and everything works once the fault is over.
// On the emulated device.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/tiled_fixture.h"
#include "backends/cuda/device.h"
#include "backends/cuda/libraries/cudnn.h"
#include "backends/cuda/testing/emulated/control.h"
#include "backends/cuda/testing/story.h"

namespace onnxifi::cuda {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Result;
using base::Status;

class ConvolutionFaultTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ONNXIFI_CUDA_LIBRARIES", "cudnn", /*replace=*/1);
    emulated_recover();
    emulated_forget();
    emulated_cudnn_fail(nullptr, 0, 0, 0);
    std::string name = (fs::temp_directory_path() / "cuda_convolution_fault.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override {
    emulated_cudnn_fail(nullptr, 0, 0, 0);
    emulated_recover();
    unsetenv("ONNXIFI_CUDA_LIBRARIES");
    fs::remove_all(folder_);
    ExpectNothingLeft();
  }
  static void ExpectNothingLeft() {
    EXPECT_EQ(LiveObjects(), 0);
    EXPECT_EQ(emulated_cudnn_live(), 0);
    EXPECT_EQ(emulated_cudnn_misuse(), nullptr) << emulated_cudnn_misuse();
  }

  static reference::RandomStep Step() {
    return codegen::MakeConvolution(2, 1, 4, 5, {{7, 3, 1, 1, 1, 1}}, codegen::kFloat, 1);
  }
  Result<std::unique_ptr<Device>> Open() const {
    ONNXIFI_ASSIGN_OR_RETURN(const Api api, LoadApi());
    ONNXIFI_ASSIGN_OR_RETURN(const CompilerApi compiler_api, LoadCompilerApi());
    ONNXIFI_ASSIGN_OR_RETURN(const FoundDevices devices, FindDevices(api));
    return Device::Open(api, compiler_api, devices.fit.front(), folder_);
  }
  // Opens the device, and runs a convolution with a kernel of ours behind it.
  Status Run() const {
    ONNXIFI_ASSIGN_OR_RETURN(const auto device, Open());
    const reference::RandomStep step = Step();
    reference::Device reference;
    ONNXIFI_ASSIGN_OR_RETURN(const auto expected, RunStep(reference, step));
    ONNXIFI_ASSIGN_OR_RETURN(const auto actual, RunStep(*device, step));
    const auto difference = FindDifference(step, expected, actual);
    return difference ? Status(Code::kInvalidState, *difference) : base::Ok();
  }

  fs::path folder_;
};

TEST_F(ConvolutionFaultTest, EveryCallOfTheLibraryFailsInTurn) {
  emulated_cudnn_fail(nullptr, 0, 0, 0);
  const Status whole = Run();
  ASSERT_TRUE(whole.ok()) << whole.Text();
  EXPECT_EQ(emulated_cudnn_misuse(), nullptr) << emulated_cudnn_misuse();
  std::vector<std::pair<std::string, int>> functions;
#define ONNXIFI_CUDNN_COUNT(name, parameters) \
  functions.emplace_back(#name, emulated_cudnn_call_count(#name));
  ONNXIFI_CUDNN_FUNCTIONS(ONNXIFI_CUDNN_COUNT)
#undef ONNXIFI_CUDNN_COUNT
  const std::set<Code> documented = {Code::kNoDeviceMemory, Code::kBackendUnavailable,
                                     Code::kNoSystemMemory, Code::kInternalError,
                                     Code::kUnsupportedOperator};
  int failed_count = 0;
  for (const auto& [name, count] : functions) {
    EXPECT_GT(count, 0) << name;
    // Nobody can do anything about what cannot be destroyed.
    if (name.find("Destroy") != std::string::npos) continue;
    for (int call = 0; call < count; ++call) {
      for (const int fault :
           {dnn::kDeviceAllocationFailed, dnn::kExecutionFailed, dnn::kNotSupported}) {
        SCOPED_TRACE(name + ", call " + std::to_string(call) + ", fault " + std::to_string(fault));
        emulated_cudnn_fail(name.c_str(), fault, call, 1);
        const Status status = Run();
        if (!status.ok()) {
          ++failed_count;
          EXPECT_TRUE(documented.contains(status.code())) << status.Text();
        }
        ExpectNothingLeft();
      }
    }
    emulated_cudnn_fail(nullptr, 0, 0, 0);
    const Status healthy = Run();
    ASSERT_TRUE(healthy.ok()) << healthy.Text();
  }
  EXPECT_GT(failed_count, 20);
}

// Of a library that is not whole, an engine that cannot be compiled, and memory that only the
// library wants; the last descriptor that is made final is that of the run's memory.
TEST_F(ConvolutionFaultTest, WhatKeepsTheLibraryFromBeingBoundLeavesTheStepToOurs) {
  ASSERT_TRUE(Run().ok());
  const int finalized = emulated_cudnn_call_count("BackendFinalize");
  const int told = emulated_cudnn_call_count("BackendGetAttribute");
  ASSERT_GT(finalized, 3);
  for (const int fault :
       {dnn::kPartNotLoaded, dnn::kCompilationFailed, dnn::kDeviceAllocationFailed}) {
    for (const auto& [function, count] : {std::pair{"Create", 1},
                                          {"BackendFinalize", finalized - 1},
                                          {"BackendGetAttribute", told}}) {
      for (int call = 0; call < count; ++call) {
        SCOPED_TRACE(std::string(function) + ", call " + std::to_string(call) + ", fault " +
                     std::to_string(fault));
        emulated_cudnn_fail(function, fault, call, 1);
        const Status status = Run();
        EXPECT_TRUE(status.ok()) << status.Text();
      }
    }
  }
}

TEST_F(ConvolutionFaultTest, WhereOneEngineFailsTheNextConvolves) {
  ASSERT_TRUE(Run().ok());
  // The last of the table, before the run's memory.
  const int plan = emulated_cudnn_call_count("BackendFinalize") - 2;
  for (const int fault : {dnn::kInternalError, dnn::kCompilationFailed, dnn::kNotSupported}) {
    for (const int call : {plan - 1, plan}) {
      SCOPED_TRACE(testing::Message() << "fault " << fault << ", call " << call);
      emulated_cudnn_fail("BackendFinalize", fault, call, 1);
      const Status status = Run();
      EXPECT_TRUE(status.ok()) << status.Text();
      EXPECT_GT(emulated_cudnn_call_count("BackendExecute"), 0);
    }
    // Without the table what works, however slowly.
    emulated_cudnn_fail("BackendGetAttribute", fault, 0, 1);
    const Status status = Run();
    EXPECT_TRUE(status.ok()) << status.Text();
    EXPECT_GT(emulated_cudnn_call_count("BackendExecute"), 0);
  }
}

TEST_F(ConvolutionFaultTest, WithoutTheLibraryOurKernelsConvolve) {
  for (const char* const function : {"Create", "BackendFinalize"}) {
    emulated_cudnn_fail(function, dnn::kNotSupported, 0, -1);
    const Status status = Run();
    EXPECT_TRUE(status.ok()) << status.Text();
    EXPECT_EQ(emulated_cudnn_call_count("BackendExecute"), 0);
  }
  setenv("ONNXIFI_CUDA_LIBRARIES", "never", /*replace=*/1);
  emulated_cudnn_fail(nullptr, 0, 0, 0);
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(emulated_cudnn_call_count("Create"), 0);
}

TEST_F(ConvolutionFaultTest, TheLibraryIsOpenedAgainAfterALackOfMemory) {
  const auto device = Open();
  ASSERT_TRUE(device.ok());
  const reference::RandomStep step = Step();
  const auto implementation = [&] {
    const auto selection = (*device)->Select({step.program, step.program.steps[0]});
    return std::string(selection->recipe->implementation());
  };
  emulated_cudnn_fail("Create", dnn::kDeviceAllocationFailed, 0, 1);
  EXPECT_NE(implementation(), "cuDNN");
  EXPECT_EQ(implementation(), "cuDNN");
  EXPECT_EQ(implementation(), "cuDNN");
  EXPECT_EQ(emulated_cudnn_call_count("Create"), 2);
}

// What is not installed as a whole is not asked for again.
TEST_F(ConvolutionFaultTest, AnAbsentLibraryIsAskedForOnce) {
  const auto device = Open();
  ASSERT_TRUE(device.ok());
  const reference::RandomStep step = Step();
  emulated_cudnn_fail("Create", dnn::kPartNotLoaded, 0, 1);
  for (int round = 0; round < 2; ++round) {
    const auto selection = (*device)->Select({step.program, step.program.steps[0]});
    EXPECT_NE(selection->recipe->implementation(), "cuDNN");
  }
  EXPECT_EQ(emulated_cudnn_call_count("Create"), 1);
}

}  // namespace
}  // namespace onnxifi::cuda
