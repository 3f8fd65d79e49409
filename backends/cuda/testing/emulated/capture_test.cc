// SPDX-License-Identifier: Apache-2.0
//
// Graphs of the emulated driver, made by capture and by hand.

#include <atomic>
#include <cstring>
#include <thread>

#include "backends/cuda/testing/emulated/story.h"

namespace emulated {
namespace {

using testing::HasSubstr;

class CaptureTest : public EmulatedTest {
 protected:
  void SetUp() override {
    EmulatedTest::SetUp();
    MUST(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&fork_, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&join_, CU_EVENT_DISABLE_TIMING));
    run_ =
        Load("extern \"C\" __global__ void run(int* at, int factor) { *at = *at * factor + 1; }");
  }
  CUstream stream_ = nullptr, other_ = nullptr;
  CUevent fork_ = nullptr, join_ = nullptr;
  CUfunction run_ = nullptr;
};

TEST_F(CaptureTest, WhatIsCapturedRunsWhenItIsLaunched) {
  const CUdeviceptr a = Upload(std::vector<int>{1});
  const CUdeviceptr b = Upload(std::vector<int>{1});
  MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  MUST(Launch(run_, 1, 1, stream_, a, 2));
  MUST(cuEventRecord(fork_, stream_));
  MUST(cuStreamWaitEvent(other_, fork_, 0));
  MUST(Launch(run_, 1, 1, other_, b, 3));
  MUST(Launch(run_, 1, 1, stream_, a, 5));
  MUST(cuEventRecord(join_, other_));
  MUST(cuStreamWaitEvent(stream_, join_, 0));
  MUST(cuMemcpyDtoDAsync(b, a, 4, stream_));
  CUgraph graph = nullptr;
  MUST(cuStreamEndCapture(stream_, &graph));
  size_t count = 0;
  MUST(cuGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(count, 4u);
  CUgraphExec executable = nullptr;
  MUST(cuGraphInstantiate(&executable, graph, 0));
  MUST(cuGraphDestroy(graph));
  EXPECT_EQ(Download<int>(a, 1)[0], 1);
  for (const int twice : {0, 1}) {
    emulated_run_twice(twice);
    MUST(cuMemsetD32(a, 1, 1));
    MUST(cuGraphLaunch(executable, stream_));
    MUST(cuStreamSynchronize(stream_));
    EXPECT_EQ(Download<int>(a, 1)[0], 16);
    EXPECT_EQ(Download<int>(b, 1)[0], 16);
  }
  MUST(cuGraphExecDestroy(executable));
  EXPECT_EQ(emulated_live("graph") + emulated_live("executable"), 0);
  EXPECT_EQ(Misuses(), "");
}

TEST_F(CaptureTest, WhatNoGraphCanHoldEndsACapture) {
  CUgraph graph = nullptr;
  MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUdeviceptr at = 0;
  EXPECT_EQ(cuMemAlloc(&at, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUstreamCaptureStatus status;
  MUST(cuStreamIsCapturing(stream_, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  MUST(cuMemAlloc(&at, 64));
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CaptureTest, ForksJoinBeforeTheEnd) {
  const CUdeviceptr a = Upload(std::vector<int>{1});
  CUgraph graph = nullptr;
  MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  MUST(cuEventRecord(fork_, stream_));
  MUST(cuStreamWaitEvent(other_, fork_, 0));
  MUST(Launch(run_, 1, 1, other_, a, 3));
  EXPECT_EQ(cuStreamEndCapture(other_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED));
  MUST(cuEventRecord(fork_, stream_));
  MUST(cuStreamWaitEvent(other_, fork_, 0));
  MUST(Launch(run_, 1, 1, other_, a, 3));
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(CaptureTest, AThreadMayAllocateBesideCapturesIfItsModeIsRelaxed) {
  CUgraph graph = nullptr;
  CUdeviceptr at = 0;
  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
    MUST(cuStreamBeginCapture(stream_, mode));
    CUstreamCaptureMode thread = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(cuThreadExchangeStreamCaptureMode(&thread));
    EXPECT_EQ(thread, CU_STREAM_CAPTURE_MODE_GLOBAL);
    MUST(cuMemAlloc(&at, 64));
    MUST(cuMemFree(at));
    MUST(cuThreadExchangeStreamCaptureMode(&thread));
    EXPECT_EQ(thread, CU_STREAM_CAPTURE_MODE_RELAXED);
    // Of other threads' captures only those of the mode GLOBAL count.
    std::thread([&, mode] {
      CUdeviceptr of_thread = 0;
      EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
      if (mode == CU_STREAM_CAPTURE_MODE_GLOBAL) return;
      EXPECT_EQ(cuMemAlloc(&of_thread, 64), CUDA_SUCCESS);
      EXPECT_EQ(cuMemFree(of_thread), CUDA_SUCCESS);
    }).join();
    MUST(cuStreamEndCapture(stream_, &graph));
    MUST(cuGraphDestroy(graph));
  }
  EXPECT_EQ(Misuses(), "");
}

TEST_F(CaptureTest, AGraphIsCopiedIntoACaptureAndKeepsWhatItRefersTo) {
  const CUdeviceptr a = Upload(std::vector<int>{1});
  CUgraph child = nullptr;
  MUST(cuGraphCreate(&child, 0));
  CUdeviceptr address = a;
  int factor = 3;
  void* values[] = {&address, &factor};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = run_;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = values;
  CUgraphNode node = nullptr;
  MUST(cuGraphAddKernelNode(&node, child, nullptr, 0, &kernel));

  static std::atomic<int> ended;
  ended = 0;
  CUuserObject object = nullptr;
  MUST(cuUserObjectCreate(
      &object, nullptr,
      [](void*) {
        size_t left = 0;
        ended = cuMemGetInfo(&left, &left) == CUDA_ERROR_NOT_PERMITTED ? 2 : 1;
      },
      1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));

  MUST(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  MUST(Launch(run_, 1, 1, stream_, a, 2));
  CUstreamCaptureStatus status;
  CUgraph graph = nullptr;
  const CUgraphNode* last = nullptr;
  size_t count = 0;
  MUST(cuStreamGetCaptureInfo(stream_, &status, nullptr, &graph, &last, nullptr, &count));
  EXPECT_EQ(count, 1u);
  MUST(cuGraphAddChildGraphNode(&node, graph, last, count, child));
  MUST(cuStreamUpdateCaptureDependencies(stream_, &node, nullptr, 1,
                                         CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  MUST(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_EQ(emulated_live("user object"), 0);
  MUST(Launch(run_, 1, 1, stream_, a, 5));
  CUgraph captured = nullptr;
  MUST(cuStreamEndCapture(stream_, &captured));
  EXPECT_EQ(captured, graph);
  MUST(cuGraphDestroy(child));
  CUgraphExec executable = nullptr;
  MUST(cuGraphInstantiate(&executable, captured, 0));
  MUST(cuGraphDestroy(captured));
  for (const int twice : {0, 1}) {
    emulated_run_twice(twice);
    MUST(cuMemsetD32(a, 1, 1));
    MUST(cuGraphLaunch(executable, stream_));
    MUST(cuStreamSynchronize(stream_));
    EXPECT_EQ(Download<int>(a, 1)[0], 51);
  }
  EXPECT_EQ(ended, 0);
  EXPECT_EQ(Misuses(), "");
  MUST(cuGraphExecDestroy(executable));
  while (ended == 0) std::this_thread::yield();
  EXPECT_EQ(ended, 2);
}

TEST_F(CaptureTest, NodesByHandAndNewParameters) {
  const CUdeviceptr a = Upload(std::vector<int>{1});
  CUgraph graph = nullptr;
  MUST(cuGraphCreate(&graph, 0));
  CUdeviceptr address = a;
  int factor = 2;
  void* values[] = {&address, &factor};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = run_;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = values;
  CUgraphNode first = nullptr, second = nullptr;
  MUST(cuGraphAddKernelNode(&first, graph, nullptr, 0, &kernel));
  factor = 10;
  MUST(cuGraphAddKernelNode(&second, graph, &first, 1, &kernel));
  CUgraphExec executable = nullptr;
  MUST(cuGraphInstantiate(&executable, graph, 0));
  emulated_run_twice(1);
  MUST(cuGraphLaunch(executable, stream_));
  factor = 100;
  MUST(cuGraphExecKernelNodeSetParams(executable, second, &kernel));
  MUST(cuStreamSynchronize(stream_));
  EXPECT_EQ(Download<int>(a, 1)[0], 31);
  MUST(cuGraphLaunch(executable, stream_));
  MUST(cuStreamSynchronize(stream_));
  EXPECT_EQ(Download<int>(a, 1)[0], 6301);
  MUST(cuGraphExecDestroy(executable));
  MUST(cuGraphDestroy(graph));
}

TEST_F(CaptureTest, AMissingDependenceShows) {
  const CUdeviceptr a = Upload(std::vector<int>{1});
  CUgraph graph = nullptr;
  MUST(cuGraphCreate(&graph, 0));
  CUdeviceptr address = a;
  int factor = 2;
  void* values[] = {&address, &factor};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = run_;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = values;
  CUgraphNode first = nullptr, second = nullptr;
  MUST(cuGraphAddKernelNode(&first, graph, nullptr, 0, &kernel));
  factor = 10;
  MUST(cuGraphAddKernelNode(&second, graph, nullptr, 0, &kernel));
  CUgraphExec executable = nullptr;
  MUST(cuGraphInstantiate(&executable, graph, 0));
  emulated_run_twice(1);
  MUST(cuGraphLaunch(executable, stream_));
  MUST(cuStreamSynchronize(stream_));
  EXPECT_EQ(Download<int>(a, 1)[0], 23);
  MUST(cuGraphExecDestroy(executable));
  MUST(cuGraphDestroy(graph));
}

}  // namespace
}  // namespace emulated
