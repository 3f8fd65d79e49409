// SPDX-License-Identifier: Apache-2.0
//
// What the tests of callers have in common: a caller who uses CUDA himself, beside what is common
// to callers of all plugins (plugin/testing/digits.h). Runs on whatever libcuda.so.1 comes first:
// the emulated one, with two devices.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_CALLER_FIXTURE_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_CALLER_FIXTURE_H_

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <onnxifi/onnxifi.hpp>
#include <string>
#include <vector>

#include "backends/core/plugin/testing/digits.h"
#include "backends/cuda/api.h"

namespace onnxifi::cuda {

using plugin::BothLibraries;
using plugin::DigitsModel;
using plugin::Expected;
using plugin::Images;
using plugin::ImageTensor;
using plugin::IsCloseTo;
using plugin::kBatch;
using plugin::kClasses;
using plugin::kPixels;
using plugin::LibraryName;
using plugin::ScoreTensor;

// `at` is a CUdeviceptr.
inline Tensor ImageTensor(uint64_t at) {
  return ImageTensor(reinterpret_cast<void*>(static_cast<uintptr_t>(at)),
                     ONNXIFI_MEMORY_TYPE_CUDA_BUFFER);
}
inline Tensor ScoreTensor(uint64_t at) {
  return ScoreTensor(reinterpret_cast<void*>(static_cast<uintptr_t>(at)),
                     ONNXIFI_MEMORY_TYPE_CUDA_BUFFER);
}
inline uint64_t Number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// A caller whose thread has the first device's primary context, and the plugin as `GetParam()`
// names it.
class CallerTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("ONNXIFI_EMULATED_DEVICES", "2", /*replace=*/1);
    // Loaded by this program, whose search path has the emulated ones; the plugin finds them
    // loaded.
    const auto api = LoadApi();
    if (!api.ok()) GTEST_SKIP() << api.status().Text();
    ASSERT_TRUE(LoadCompilerApi().ok());
    for (const char* const name : {"libcublasLt.so.13", "libcudnn.so.9"}) dlopen(name, RTLD_NOW);
    api_ = *api;
    auto library = Library::Open(GetParam());
    ASSERT_TRUE(library.ok()) << library.error().Text();
    library_ = std::make_unique<Library>(*std::move(library));
    ASSERT_EQ(onnxifi_load(ONNXIFI_LOADER_FLAG_VERSION_1_0, GetParam(), &functions_), 1);
    auto device = library_->FindDevice("cuda");
    if (!device.ok()) GTEST_SKIP() << device.error().Text();
    device_ = std::make_unique<Device>(*device);
    ASSERT_EQ(api_.DevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(api_.CtxPushCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(api_.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  void TearDown() override {
    if (context_ == nullptr) return;
    for (const CUdeviceptr memory : memory_) api_.MemFree(memory);
    api_.StreamDestroy(stream_);
    // The caller's own context is what it was.
    CUcontext left = nullptr;
    EXPECT_EQ(api_.CtxPopCurrent(&left), CUDA_SUCCESS);
    EXPECT_EQ(left, context_);
    EXPECT_EQ(api_.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }

  CUdeviceptr Allocate(size_t floats) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(api_.MemAlloc(&memory, floats * sizeof(float)), CUDA_SUCCESS);
    memory_.push_back(memory);
    return memory;
  }
  void Write(CUdeviceptr to, const std::vector<float>& values) const {
    ASSERT_EQ(api_.MemcpyHtoDAsync(to, values.data(), values.size() * sizeof(float), stream_),
              CUDA_SUCCESS);
    ASSERT_EQ(api_.StreamSynchronize(stream_), CUDA_SUCCESS);
  }
  std::vector<float> Read(CUdeviceptr from, size_t floats) const {
    std::vector<float> values(floats);
    EXPECT_EQ(api_.MemcpyDtoHAsync(values.data(), from, floats * sizeof(float), stream_),
              CUDA_SUCCESS);
    EXPECT_EQ(api_.StreamSynchronize(stream_), CUDA_SUCCESS);
    return values;
  }
  // A stream that does nothing more until `*word` is 1.
  uint32_t* Hold(CUstream stream) const {
    void* word = nullptr;
    EXPECT_EQ(api_.MemHostAlloc(&word, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
    CUdeviceptr address = 0;
    EXPECT_EQ(api_.MemHostGetDevicePointer(&address, word, 0), CUDA_SUCCESS);
    *static_cast<uint32_t*>(word) = 0;
    EXPECT_EQ(api_.StreamWaitValue32(stream, address, 1, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
    return static_cast<uint32_t*>(word);
  }
  static void LetGo(uint32_t* word) { std::atomic_ref(*word).store(1); }

  // What the plugin itself has no use for.
  template <typename T>
  static T* Function(const char* symbol) {
    void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return reinterpret_cast<T*>(dlsym(driver, symbol));
  }
  static CUresult BeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    return Function<decltype(cuStreamBeginCapture)>("cuStreamBeginCapture_v2")(stream, mode);
  }
  static CUresult EndCapture(CUstream stream, CUgraph* graph) {
    return Function<decltype(cuStreamEndCapture)>("cuStreamEndCapture")(stream, graph);
  }

  Backend InitBackend() const {
    auto backend = device_->InitBackend();
    EXPECT_TRUE(backend.ok()) << backend.error().Text();
    return *std::move(backend);
  }
  Backend InitBackendOn(CUstream stream) const {
    const uint64_t properties[] = {ONNXIFI_BACKEND_CUDA_STREAM, Number(stream)};
    auto backend = device_->InitBackend(properties);
    EXPECT_TRUE(backend.ok()) << backend.error().Text();
    return *std::move(backend);
  }

  Api api_;
  // For what the wrapper has no words for; the same library, which stays.
  struct onnxifi_library functions_ = {};
  std::unique_ptr<Library> library_;
  std::unique_ptr<Device> device_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<CUdeviceptr> memory_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_CALLER_FIXTURE_H_
