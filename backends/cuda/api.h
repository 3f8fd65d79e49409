// SPDX-License-Identifier: Apache-2.0
//
// Api: the functions of the CUDA driver and of NVRTC that this backend calls, looked up when the
// plugin is first used, so that it loads on machines without them; and the one place where their
// results become statuses.

#ifndef ONNXIFI_BACKENDS_CUDA_API_H_
#define ONNXIFI_BACKENDS_CUDA_API_H_

#include <cuda.h>
#include <nvrtc.h>

#include <string_view>

#include "backends/core/base/result.h"

namespace onnxifi::cuda {

// What cuda.h 13 knows by newer versions alone. Never defined: they tell the types of the functions
// below.
CUresult CUDAAPI cuStreamGetCapture(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                    CUgraph* graph, const CUgraphNode** last, size_t* last_count);
CUresult CUDAAPI cuStreamSetCapture(CUstream stream, CUgraphNode* last, size_t last_count,
                                    unsigned flags);

// The name here, and the driver's symbol, with the version whose signature cuda.h 12 and 13 have.
#define ONNXIFI_CUDA_DRIVER_FUNCTIONS(X)                                  \
  X(Init, "cuInit")                                                       \
  X(DriverGetVersion, "cuDriverGetVersion")                               \
  X(DeviceGetCount, "cuDeviceGetCount")                                   \
  X(DeviceGet, "cuDeviceGet")                                             \
  X(DeviceGetName, "cuDeviceGetName")                                     \
  X(DeviceGetUuid, "cuDeviceGetUuid_v2")                                  \
  X(DeviceGetAttribute, "cuDeviceGetAttribute")                           \
  X(DeviceTotalMem, "cuDeviceTotalMem_v2")                                \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")                   \
  X(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2")              \
  X(CtxPushCurrent, "cuCtxPushCurrent_v2")                                \
  X(CtxPopCurrent, "cuCtxPopCurrent_v2")                                  \
  X(MemAlloc, "cuMemAlloc_v2")                                            \
  X(MemFree, "cuMemFree_v2")                                              \
  X(MemHostAlloc, "cuMemHostAlloc")                                       \
  X(MemFreeHost, "cuMemFreeHost")                                         \
  X(MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2")              \
  X(PointerGetAttribute, "cuPointerGetAttribute")                         \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2")                              \
  X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2")                              \
  X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2")                              \
  X(StreamCreate, "cuStreamCreate")                                       \
  X(StreamDestroy, "cuStreamDestroy_v2")                                  \
  X(StreamSynchronize, "cuStreamSynchronize")                             \
  X(StreamQuery, "cuStreamQuery")                                         \
  X(StreamGetCtx, "cuStreamGetCtx")                                       \
  X(StreamIsCapturing, "cuStreamIsCapturing")                             \
  X(StreamGetCapture, "cuStreamGetCaptureInfo_v2")                        \
  X(StreamSetCapture, "cuStreamUpdateCaptureDependencies")                \
  X(StreamBeginCapture, "cuStreamBeginCapture_v2")                        \
  X(StreamEndCapture, "cuStreamEndCapture")                               \
  X(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode") \
  X(StreamWaitEvent, "cuStreamWaitEvent")                                 \
  X(StreamWaitValue32, "cuStreamWaitValue32_v2")                          \
  X(GraphCreate, "cuGraphCreate")                                         \
  X(GraphAddKernelNode, "cuGraphAddKernelNode_v2")                        \
  X(GraphAddMemcpyNode, "cuGraphAddMemcpyNode")                           \
  X(GraphAddChildGraphNode, "cuGraphAddChildGraphNode")                   \
  X(GraphRetainUserObject, "cuGraphRetainUserObject")                     \
  X(UserObjectCreate, "cuUserObjectCreate")                               \
  X(UserObjectRelease, "cuUserObjectRelease")                             \
  X(GraphInstantiateWithFlags, "cuGraphInstantiateWithFlags")             \
  X(GraphLaunch, "cuGraphLaunch")                                         \
  X(GraphExecDestroy, "cuGraphExecDestroy")                               \
  X(GraphDestroy, "cuGraphDestroy")                                       \
  X(EventCreate, "cuEventCreate")                                         \
  X(EventDestroy, "cuEventDestroy_v2")                                    \
  X(EventRecord, "cuEventRecord")                                         \
  X(EventQuery, "cuEventQuery")                                           \
  X(EventSynchronize, "cuEventSynchronize")                               \
  X(EventElapsedTime, "cuEventElapsedTime")                               \
  X(ModuleLoadData, "cuModuleLoadData")                                   \
  X(ModuleUnload, "cuModuleUnload")                                       \
  X(ModuleGetFunction, "cuModuleGetFunction")                             \
  X(LaunchKernel, "cuLaunchKernel")

#define ONNXIFI_CUDA_COMPILER_FUNCTIONS(X) \
  X(Version)                               \
  X(GetErrorString)                        \
  X(GetNumSupportedArchs)                  \
  X(GetSupportedArchs)                     \
  X(CreateProgram)                         \
  X(DestroyProgram)                        \
  X(CompileProgram)                        \
  X(GetProgramLogSize)                     \
  X(GetProgramLog)                         \
  X(GetCUBINSize)                          \
  X(GetCUBIN)                              \
  X(GetPTXSize)                            \
  X(GetPTX)

// Plain pointers, so that a test can put a function that fails in a real one's place.
struct Api {
#define ONNXIFI_CUDA_MEMBER(name, symbol) decltype(&cu##name) name = nullptr;
  ONNXIFI_CUDA_DRIVER_FUNCTIONS(ONNXIFI_CUDA_MEMBER)
#undef ONNXIFI_CUDA_MEMBER
};
struct CompilerApi {
#define ONNXIFI_CUDA_MEMBER(name) decltype(&nvrtc##name) name = nullptr;
  ONNXIFI_CUDA_COMPILER_FUNCTIONS(ONNXIFI_CUDA_MEMBER)
#undef ONNXIFI_CUDA_MEMBER
  // Where NVRTC is missing: the version of the one whose kernels a cache folder has
  // (kept_kernels.h). The functions are null then.
  int kept_major = 0;
  int kept_minor = 0;
};

// BACKEND_UNAVAILABLE with what is missing. Once opened a library stays: drivers run threads of
// their own.
base::Result<Api> LoadApi();
// NVRTC 13, else 12.
base::Result<CompilerApi> LoadCompilerApi();

// Ok for CUDA_SUCCESS; else the documented status with what was being done and the fault's name.
// `doing` reads like "allocate 64 bytes". Faults that CUDA ends a context with are
// BACKEND_UNAVAILABLE, and stay until the process ends.
base::Status ToStatus(CUresult result, std::string_view doing);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_API_H_
