// SPDX-License-Identifier: Apache-2.0
//
// Every fault that cuBLASLt may have, and the driver where it records the library's calls, at every
// call: a documented status with a sentence or a kernel of ours in the library's place, nothing
// left behind, and everything works once the fault is over. On the emulated device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "backends/cuda/libraries/cublaslt.h"
#include "backends/cuda/testing/story.h"

namespace onnxifi::cuda {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Status;

class LibraryFaultTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ONNXIFI_CUDA_LIBRARIES", "cublaslt", /*replace=*/1);
    emulated_recover();
    emulated_forget();
    emulated_cublaslt_fail(nullptr, 0, 0, 0);
    std::string name = (fs::temp_directory_path() / "cuda_library_fault.XXXXXX").string();
    folder_ = mkdtemp(name.data());
    ExpectNothingLeft();
    // Kernels are compiled once.
    ASSERT_TRUE(Story(folder_).All().ok());
    emulated_recover();
    emulated_cublaslt_fail(nullptr, 0, 0, 0);
  }
  void TearDown() override {
    emulated_recover();
    emulated_cublaslt_fail(nullptr, 0, 0, 0);
    ExpectNothingLeft();
    unsetenv("ONNXIFI_CUDA_LIBRARIES");
    fs::remove_all(folder_);
  }
  static void ExpectNothingLeft() {
    EXPECT_EQ(LiveObjects(), 0);
    EXPECT_EQ(emulated_cublaslt_live(), 0);
  }
  fs::path folder_;
};

void ExpectDocumented(const Status& status) {
  const std::set<Code> documented = {Code::kNoDeviceMemory,     Code::kNoDeviceResources,
                                     Code::kBackendUnavailable, Code::kNoSystemMemory,
                                     Code::kInternalError,      Code::kUnsupportedOperator};
  EXPECT_TRUE(documented.contains(status.code())) << status.Text();
  EXPECT_FALSE(status.sentence().empty());
  EXPECT_EQ(status.Text().find("A sum is wrong"), std::string::npos) << status.Text();
}

TEST_F(LibraryFaultTest, TheLibraryMultipliesAndIsNotMisused) {
  {
    Story story(folder_);
    const Status status = story.All();
    ASSERT_TRUE(status.ok()) << status.Text();
  }
  EXPECT_GT(emulated_cublaslt_call_count("Matmul"), 0);
  EXPECT_EQ(emulated_cublaslt_misuse(), nullptr) << emulated_cublaslt_misuse();
  EXPECT_EQ(emulated_misuse(0), nullptr) << emulated_misuse(0);
}

TEST_F(LibraryFaultTest, EveryCallOfTheLibraryFailsInTurn) {
  ASSERT_TRUE(Story(folder_).All().ok());
  std::vector<std::pair<std::string, int>> functions;
#define ONNXIFI_CUBLASLT_COUNT(name, parameters) \
  functions.emplace_back(#name, emulated_cublaslt_call_count(#name));
  ONNXIFI_CUBLASLT_FUNCTIONS(ONNXIFI_CUBLASLT_COUNT)
#undef ONNXIFI_CUBLASLT_COUNT
  int failed_count = 0;
  for (const auto& [name, count] : functions) {
    EXPECT_GT(count, 0) << name;
    // Nobody can do anything about what cannot be destroyed.
    if (name.ends_with("Destroy")) continue;
    for (int call = 0; call < count; ++call) {
      for (const int fault : {lt::kAllocFailed, lt::kExecutionFailed, lt::kNotSupported}) {
        SCOPED_TRACE(name + ", call " + std::to_string(call) + ", fault " + std::to_string(fault));
        emulated_cublaslt_fail(name.c_str(), fault, call, 1);
        const Status status = Story(folder_).All();
        if (!status.ok()) {
          ++failed_count;
          ExpectDocumented(status);
        }
        ExpectNothingLeft();
        emulated_cublaslt_fail(nullptr, 0, 0, 0);
      }
      const Status healthy = Story(folder_).All();
      ASSERT_TRUE(healthy.ok()) << healthy.Text();
    }
  }
  EXPECT_GT(failed_count, 20);
}

// What keeps the library from being opened, or from having an algorithm, leaves the step to ours.
TEST_F(LibraryFaultTest, WithoutTheLibraryOurKernelsMultiply) {
  for (const char* const function : {"Create", "MatmulAlgoGetHeuristic"}) {
    emulated_cublaslt_fail(function, lt::kNotSupported, 0, -1);
    const Status status = Story(folder_).All();
    EXPECT_TRUE(status.ok()) << status.Text();
    EXPECT_EQ(emulated_cublaslt_call_count("Matmul"), 0);
    emulated_cublaslt_fail(nullptr, 0, 0, 0);
  }
  setenv("ONNXIFI_CUDA_LIBRARIES", "never", /*replace=*/1);
  EXPECT_TRUE(Story(folder_).All().ok());
  EXPECT_EQ(emulated_cublaslt_call_count("Create"), 0);
}

TEST_F(LibraryFaultTest, EveryCallOfARecordingFailsInTurn) {
  const auto run = [&]() -> Status {
    Story story(folder_);
    ONNXIFI_RETURN_IF_ERROR(story.Open());
    for (int round = 0; round < 4; ++round) ONNXIFI_RETURN_IF_ERROR(story.Run(3));
    return base::Ok();
  };
  ASSERT_TRUE(run().ok());
  int failed_count = 0;
  for (const char* const function : {"cuStreamCreate", "cuStreamBeginCapture", "cuStreamEndCapture",
                                     "cuGraphAddChildGraphNode", "cuLaunchHostFunc"}) {
    emulated_recover();
    ASSERT_TRUE(run().ok());
    const int count = emulated_call_count(function);
    EXPECT_GT(count, 0) << function;
    for (int call = 0; call < count; ++call) {
      SCOPED_TRACE(std::string(function) + ", call " + std::to_string(call));
      emulated_recover();
      emulated_fail(function, CUDA_ERROR_OUT_OF_MEMORY, call, 1);
      const Status status = run();
      if (!status.ok()) {
        ++failed_count;
        ExpectDocumented(status);
      }
      ExpectNothingLeft();
      emulated_recover();
      const Status healthy = run();
      ASSERT_TRUE(healthy.ok()) << healthy.Text();
    }
  }
  // A run that cannot be recorded is done without.
  EXPECT_GE(failed_count, 2);
}

}  // namespace
}  // namespace onnxifi::cuda
