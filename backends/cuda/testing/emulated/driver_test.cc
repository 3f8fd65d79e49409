// SPDX-License-Identifier: Apache-2.0
//
// The emulated driver's memory, streams, events and faults, as CUDA's manual has them.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <thread>

#include "backends/cuda/testing/emulated/story.h"

namespace emulated {
namespace {

using testing::HasSubstr;

class DriverTest : public EmulatedTest {};

TEST_F(DriverTest, TheDeviceTellsWhatItIs) {
  int value = 0;
  MUST(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(value, 9);
  char name[32];
  MUST(cuDeviceGetName(name, sizeof(name), 0));
  EXPECT_STREQ(name, "Emulated GPU");
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 7),
            CUDA_ERROR_INVALID_DEVICE);
  const char* text = nullptr;
  MUST(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(DriverTest, MemoryHasALimit) {
  size_t left = 0, total = 0;
  MUST(cuMemGetInfo(&left, &total));
  EXPECT_EQ(left, total);
  CUdeviceptr all = 0, more = 0;
  MUST(cuMemAlloc(&all, total - 1000));
  EXPECT_EQ(cuMemAlloc(&more, 1001), CUDA_ERROR_OUT_OF_MEMORY);
  MUST(cuMemAlloc(&more, 1000));
  MUST(cuMemFree(all));
  MUST(cuMemFree(more));
  MUST(cuMemGetInfo(&left, &total));
  EXPECT_EQ(left, total);
}

TEST_F(DriverTest, CopiesOutsideOfMemoryAreErrors) {
  const CUdeviceptr at = Upload(std::vector<char>(100));
  char bytes[200] = {};
  EXPECT_EQ(cuMemcpyDtoH(bytes, at, 101), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(at + 99, bytes, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(bytes, reinterpret_cast<CUdeviceptr>(bytes), 4), CUDA_ERROR_INVALID_VALUE);
  MUST(cuMemFree(at));
  EXPECT_EQ(cuMemcpyDtoH(bytes, at, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Misuses(), HasSubstr("memory that is freed"));
  EXPECT_EQ(cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, PointersTellWhoseTheyAre) {
  const CUdeviceptr at = Upload(std::vector<char>(100));
  unsigned type = 0;
  MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 7));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  CUdeviceptr base = 0;
  size_t size = 0;
  MUST(cuMemGetAddressRange(&base, &size, at + 7));
  EXPECT_EQ(base, at);
  EXPECT_EQ(size, 100u);
  int on_stack = 0;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  reinterpret_cast<CUdeviceptr>(&on_stack)),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, APinnedCopyIsCarriedOutLate) {
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  void* pinned = nullptr;
  MUST(cuMemAllocHost(&pinned, 4));
  auto* const word = static_cast<uint32_t*>(pinned);
  CUdeviceptr flag = 0, at = Upload(std::vector<uint32_t>{0});
  MUST(cuMemHostGetDevicePointer(&flag, pinned, 0));
  void* flags = nullptr;
  MUST(cuMemAllocHost(&flags, 4));
  *static_cast<uint32_t*>(flags) = 0;
  // Held back by memory, so that the copy cannot have happened.
  MUST(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(flags), 1,
                           CU_STREAM_WAIT_VALUE_GEQ));
  *word = 5;
  MUST(cuMemcpyHtoDAsync(at, pinned, 4, stream));
  *word = 6;
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  std::atomic_ref(*static_cast<uint32_t*>(flags)).store(1);
  MUST(cuStreamSynchronize(stream));
  EXPECT_EQ(Download<uint32_t>(at, 1)[0], 6u);
  EXPECT_EQ(cuStreamQuery(stream), CUDA_SUCCESS);
  MUST(cuStreamWriteValue32(stream, flag, 9, 0));
  MUST(cuStreamSynchronize(stream));
  EXPECT_EQ(*word, 9u);
}

TEST_F(DriverTest, StreamsAreInOrderAndEventsJoinThem) {
  CUstream first = nullptr, second = nullptr;
  CUevent begin = nullptr, end = nullptr;
  MUST(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&begin, 0));
  MUST(cuEventCreate(&end, 0));
  const CUfunction run =
      Load("extern \"C\" __global__ void run(int* at, int factor) { *at = *at * factor + 1; }");
  const CUdeviceptr at = Upload(std::vector<int>{1});
  MUST(cuEventRecord(begin, first));
  MUST(Launch(run, 1, 1, first, at, 3));
  MUST(cuEventRecord(end, first));
  MUST(cuStreamWaitEvent(second, end, 0));
  MUST(Launch(run, 1, 1, second, at, 10));
  MUST(cuStreamSynchronize(second));
  EXPECT_EQ(Download<int>(at, 1)[0], 41);
  float ms = -1;
  MUST(cuEventElapsedTime(&ms, begin, end));
  EXPECT_GE(ms, 0);
  MUST(cuEventDestroy(begin));
  MUST(cuEventDestroy(end));
  MUST(cuStreamDestroy(first));
  MUST(cuStreamDestroy(second));
  EXPECT_EQ(cuStreamSynchronize(first), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverTest, TheLegacyStreamWaitsForBlockingStreams) {
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  const CUfunction run =
      Load("extern \"C\" __global__ void run(int* at, int factor) { *at = *at * factor + 1; }");
  const CUdeviceptr at = Upload(std::vector<int>{1});
  MUST(Launch(run, 1, 1, stream, at, 3));
  MUST(Launch(run, 1, 1, nullptr, at, 10));
  MUST(Launch(run, 1, 1, stream, at, 2));
  MUST(cuStreamSynchronize(stream));
  EXPECT_EQ(Download<int>(at, 1)[0], 83);
}

TEST_F(DriverTest, HostFunctionsRunInOrderWithoutAnybodyWaiting) {
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  static std::atomic<int> called;
  called = 0;
  MUST(cuLaunchHostFunc(
      stream, [](void*) { called = cuCtxSynchronize() == CUDA_ERROR_NOT_PERMITTED ? 2 : 1; },
      nullptr));
  while (called == 0) std::this_thread::yield();
  EXPECT_EQ(called, 2);
  MUST(cuStreamDestroy(stream));
}

TEST_F(DriverTest, AThreadNeedsAContext) {
  std::thread([] {
    CUdeviceptr at = 0;
    EXPECT_EQ(cuMemAlloc(&at, 64), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
}

TEST_F(DriverTest, FaultsAreInjected) {
  CUdeviceptr at = 0;
  emulated_fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, 1, 1);
  MUST(cuMemAlloc(&at, 64));
  MUST(cuMemFree(at));
  EXPECT_EQ(cuMemAlloc(&at, 64), CUDA_ERROR_OUT_OF_MEMORY);
  MUST(cuMemAlloc(&at, 64));
  MUST(cuMemFree(at));
  EXPECT_EQ(emulated_call_count("cuMemAlloc"), 3);
  // Of errors that end the context every later call tells.
  emulated_fail("cuStreamSynchronize", CUDA_ERROR_ECC_UNCORRECTABLE, 0, 1);
  EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(cuMemAlloc(&at, 64), CUDA_ERROR_ECC_UNCORRECTABLE);
  emulated_recover();
  MUST(cuMemAlloc(&at, 64));
  emulated_nvrtc_fail("nvrtcCreateProgram", NVRTC_ERROR_OUT_OF_MEMORY, 0, 1);
  nvrtcProgram program = nullptr;
  EXPECT_EQ(nvrtcCreateProgram(&program, "", nullptr, 0, nullptr, nullptr),
            NVRTC_ERROR_OUT_OF_MEMORY);
  emulated_nvrtc_fail(nullptr, 0, 0, 0);
}

TEST_F(DriverTest, WhatAnotherCompilerMadeIsRefusedWithASentence) {
  CUmodule module = nullptr;
  // The head of what NVRTC makes for a GPU.
  std::vector<unsigned char> cubin(3440);
  const unsigned char head[] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 8,   0,
                                0,    0,   0,   0,   0, 0, 2, 0,    190, 0};
  std::copy(std::begin(head), std::end(head), cubin.begin());
  EXPECT_EQ(cuModuleLoadData(&module, cubin.data()), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_THAT(Misuses(), HasSubstr("machine code of a GPU's; the emulated device runs what"));
  emulated_forget();
  EXPECT_EQ(cuModuleLoadData(&module, ".version 8.8\n.target sm_90\n"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_THAT(Misuses(), HasSubstr("is text, such as PTX"));
  emulated_forget();
}

TEST_F(DriverTest, FunctionsAreFoundByName) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  MUST(cuGetProcAddress("cuMemAlloc", &function, 12000, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  CUdeviceptr at = 0;
  MUST(reinterpret_cast<decltype(&cuMemAlloc)>(function)(&at, 64));
  EXPECT_EQ(cuGetProcAddress("cuNothing", &function, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
  emulated_hide("cuMemAlloc");
  EXPECT_EQ(cuGetProcAddress("cuMemAlloc", &function, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
}

}  // namespace
}  // namespace emulated
