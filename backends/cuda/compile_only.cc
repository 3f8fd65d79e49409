// SPDX-License-Identifier: Apache-2.0
//
// Every function succeeds and does nothing but what its caller looks at. Limits are those that CUDA
// states for all architectures from 8.0 on.

#include "backends/cuda/compile_only.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <string>

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Status;

constexpr size_t kMemoryBytes = size_t{80} << 30;
constexpr uint64_t kAlignment = 512;

std::atomic<int> compiled_architecture{0};
// Addresses are given once. They begin where no page of the host's lies.
std::atomic<uint64_t> next_address{uint64_t{1} << 52};

// Handles are never looked into.
template <typename T>
CUresult GiveHandle(T* handle) {
  static int something = 0;
  *handle = reinterpret_cast<T>(&something);
  return CUDA_SUCCESS;
}

CUresult GetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = compiled_architecture / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = compiled_architecture % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = 48 << 10;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

void SetDevice(Api& api) {
  api.Init = [](unsigned) { return CUDA_SUCCESS; };
  api.DriverGetVersion = [](int* version) {
    *version = 0;
    return CUDA_SUCCESS;
  };
  api.DeviceGetCount = [](int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  };
  api.DeviceGet = [](CUdevice* device, int) {
    *device = 0;
    return CUDA_SUCCESS;
  };
  api.DeviceGetName = [](char* name, int length, CUdevice) {
    const std::string text =
        "no GPU: compiles for sm_" + std::to_string(compiled_architecture.load());
    const size_t count = std::min(text.size(), static_cast<size_t>(length) - 1);
    std::memcpy(name, text.data(), count);
    name[count] = '\0';
    return CUDA_SUCCESS;
  };
  api.DeviceGetUuid = [](CUuuid* uuid, CUdevice) {
    *uuid = {};
    return CUDA_SUCCESS;
  };
  api.DeviceGetAttribute = GetAttribute;
  api.DeviceTotalMem = [](size_t* size_bytes, CUdevice) {
    *size_bytes = kMemoryBytes;
    return CUDA_SUCCESS;
  };
  api.DevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) { return GiveHandle(context); };
  api.DevicePrimaryCtxRelease = [](CUdevice) { return CUDA_SUCCESS; };
  api.CtxPushCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  api.CtxPopCurrent = [](CUcontext* context) { return GiveHandle(context); };
}

void SetMemory(Api& api) {
  api.MemAlloc = [](CUdeviceptr* address, size_t size_bytes) {
    if (size_bytes > kMemoryBytes) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = next_address.fetch_add((size_bytes + kAlignment) / kAlignment * kAlignment);
    return CUDA_SUCCESS;
  };
  api.MemFree = [](CUdeviceptr) { return CUDA_SUCCESS; };
  api.MemHostAlloc = [](void**, size_t, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; };
  api.MemFreeHost = [](void*) { return CUDA_SUCCESS; };
  api.MemHostGetDevicePointer = [](CUdeviceptr*, void*, unsigned) {
    return CUDA_ERROR_NOT_SUPPORTED;
  };
  api.PointerGetAttribute = [](void*, CUpointer_attribute, CUdeviceptr) {
    return CUDA_ERROR_INVALID_VALUE;
  };
  api.MemcpyHtoDAsync = [](CUdeviceptr, const void*, size_t, CUstream) { return CUDA_SUCCESS; };
  api.MemcpyDtoHAsync = [](void* to, CUdeviceptr, size_t size_bytes, CUstream) {
    std::memset(to, 0, size_bytes);
    return CUDA_SUCCESS;
  };
  api.MemcpyDtoDAsync = [](CUdeviceptr, CUdeviceptr, size_t, CUstream) { return CUDA_SUCCESS; };
}

void SetStreams(Api& api) {
  api.StreamCreate = [](CUstream* stream, unsigned) { return GiveHandle(stream); };
  api.StreamDestroy = [](CUstream) { return CUDA_SUCCESS; };
  api.StreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
  api.StreamQuery = [](CUstream) { return CUDA_SUCCESS; };
  api.StreamGetCtx = [](CUstream, CUcontext* context) { return GiveHandle(context); };
  api.StreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  api.StreamWaitEvent = [](CUstream, CUevent, unsigned) { return CUDA_SUCCESS; };
  api.StreamWaitValue32 = [](CUstream, CUdeviceptr, cuuint32_t, unsigned) {
    return CUDA_ERROR_NOT_SUPPORTED;
  };
  api.GraphCreate = [](CUgraph* graph, unsigned) { return GiveHandle(graph); };
  api.GraphAddKernelNode = [](CUgraphNode* node, CUgraph, const CUgraphNode*, size_t,
                              const CUDA_KERNEL_NODE_PARAMS*) { return GiveHandle(node); };
  api.GraphAddMemcpyNode = [](CUgraphNode* node, CUgraph, const CUgraphNode*, size_t,
                              const CUDA_MEMCPY3D*, CUcontext) { return GiveHandle(node); };
  api.GraphInstantiateWithFlags = [](CUgraphExec* graph, CUgraph, unsigned long long) {
    return GiveHandle(graph);
  };
  api.GraphLaunch = [](CUgraphExec, CUstream) { return CUDA_SUCCESS; };
  api.GraphExecDestroy = [](CUgraphExec) { return CUDA_SUCCESS; };
  api.GraphDestroy = [](CUgraph) { return CUDA_SUCCESS; };
  api.EventCreate = [](CUevent* event, unsigned) { return GiveHandle(event); };
  api.EventDestroy = [](CUevent) { return CUDA_SUCCESS; };
  api.EventRecord = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  api.EventQuery = [](CUevent) { return CUDA_SUCCESS; };
  api.EventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
  api.EventElapsedTime = [](float* milliseconds, CUevent, CUevent) {
    *milliseconds = 0;
    return CUDA_SUCCESS;
  };
}

void SetModules(Api& api) {
  api.ModuleLoadData = [](CUmodule* module, const void*) { return GiveHandle(module); };
  api.ModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  api.ModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
    return GiveHandle(function);
  };
  api.LaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void**, void**) { return CUDA_SUCCESS; };
}

}  // namespace

base::Result<int> ParseArchitecture(std::string_view name) {
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  const std::string_view digits = name.substr(std::min(name.size(), kPrefix.size()));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (!name.starts_with(kPrefix) || error != std::errc() || end != digits.data() + digits.size() ||
      number < 80 || number > 999) {
    return Status(Code::kInvalidName,
                  "'" + std::string(name) + "' is no architecture from sm_80 on, such as sm_90.");
  }
  return number;
}

Api CompileOnlyApi(int architecture) {
  compiled_architecture = architecture;
  Api api;
  SetDevice(api);
  SetMemory(api);
  SetStreams(api);
  SetModules(api);
  return api;
}

}  // namespace onnxifi::cuda
