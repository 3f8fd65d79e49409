// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the emulated device begin with: a context, and kernels from text.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_STORY_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_STORY_H_

#include <cuda.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvrtc.h>

#include <string>
#include <vector>

#include "backends/cuda/testing/emulated/control.h"

namespace emulated {

#define MUST(call) ASSERT_EQ(call, CUDA_SUCCESS)

// The program's cubin; empty with its log if it has mistakes.
inline std::string Compile(const std::string& source, std::string* log = nullptr,
                           std::vector<const char*> options = {"--gpu-architecture=sm_90",
                                                               "--fmad=false"},
                           nvrtcResult* result = nullptr) {
  nvrtcProgram program = nullptr;
  EXPECT_EQ(nvrtcCreateProgram(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr),
            NVRTC_SUCCESS);
  const nvrtcResult compiled =
      nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  size_t size = 0;
  EXPECT_EQ(nvrtcGetProgramLogSize(program, &size), NVRTC_SUCCESS);
  std::string text(size, '\0');
  EXPECT_EQ(nvrtcGetProgramLog(program, text.data()), NVRTC_SUCCESS);
  if (log != nullptr) {
    *log = text;
  } else {
    EXPECT_EQ(compiled, NVRTC_SUCCESS) << text;
  }
  if (result != nullptr) *result = compiled;
  std::string cubin;
  if (compiled == NVRTC_SUCCESS) {
    EXPECT_EQ(nvrtcGetCUBINSize(program, &size), NVRTC_SUCCESS);
    cubin.resize(size);
    if (size > 0) {
      EXPECT_EQ(nvrtcGetCUBIN(program, cubin.data()), NVRTC_SUCCESS);
    }
  }
  EXPECT_EQ(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  return cubin;
}

class EmulatedTest : public testing::Test {
 protected:
  void SetUp() override {
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context_, 0));
    MUST(cuCtxSetCurrent(context_));
    emulated_recover();
    emulated_forget();
    emulated_run_twice(0);
  }
  void TearDown() override {
    emulated_recover();
    emulated_run_twice(0);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    EXPECT_EQ(emulated_live("context"), 0);
  }

  CUfunction Load(const std::string& source, const char* name = "run") {
    const std::string cubin = Compile(source);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, cubin.data()), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return function;
  }

  template <typename T>
  CUdeviceptr Upload(const std::vector<T>& values) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAlloc(&address, values.size() * sizeof(T)), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(address, values.data(), values.size() * sizeof(T)), CUDA_SUCCESS);
    return address;
  }
  template <typename T>
  std::vector<T> Download(CUdeviceptr address, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(cuMemcpyDtoH(values.data(), address, count * sizeof(T)), CUDA_SUCCESS);
    return values;
  }

  template <typename... A>
  CUresult Launch(CUfunction function, unsigned blocks, unsigned items, CUstream stream,
                  A... arguments) {
    void* pointers[] = {&arguments..., nullptr};
    return cuLaunchKernel(function, blocks, 1, 1, items, 1, 1, dynamic_bytes_, stream, pointers,
                          nullptr);
  }

  std::string Misuses() {
    std::string all;
    for (int n = 0; emulated_misuse(n) != nullptr; ++n)
      all += std::string(emulated_misuse(n)) + "\n";
    return all;
  }

  CUcontext context_ = nullptr;
  unsigned dynamic_bytes_ = 0;
};

}  // namespace emulated

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_STORY_H_
