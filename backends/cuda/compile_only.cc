// SPDX-License-Identifier: Apache-2.0
//
// Every function succeeds and gives what its caller looks at. Limits are those that CUDA
// states for all architectures from 8.0 on.

#include "backends/cuda/compile_only.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
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

// In the place of any function. What it would tell stays 0, as its callers have it.
template <typename... A>
CUresult Succeed(A...) {
  return CUDA_SUCCESS;
}

template <typename... A>
CUresult Refuse(A...) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Of any that makes an object. Handles are never looked into.
template <typename T, typename... A>
CUresult GiveHandle(T* handle, A...) {
  static int something = 0;
  *handle = reinterpret_cast<T>(&something);
  return CUDA_SUCCESS;
}

// Of the architecture's largest GPU: how sums are shared out, and so which kernels there are, hangs
// on it.
int MultiprocessorsOf(int architecture) {
  if (architecture == 80) return 108;
  if (architecture == 86) return 84;
  if (architecture == 89) return 128;
  if (architecture == 90) return 132;
  return 148;
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
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = MultiprocessorsOf(compiled_architecture);
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult GetName(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<size_t>(length), "no GPU: compiles for sm_%d",
                compiled_architecture.load());
  return CUDA_SUCCESS;
}

CUresult Allocate(CUdeviceptr* address, size_t size_bytes) {
  if (size_bytes > kMemoryBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = next_address.fetch_add((size_bytes + kAlignment) / kAlignment * kAlignment);
  return CUDA_SUCCESS;
}

void SetDevice(Api& api) {
  api.DeviceGetCount = [](int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  };
  api.DeviceGetName = GetName;
  api.DeviceGetAttribute = GetAttribute;
  api.DeviceTotalMem = [](size_t* size_bytes, CUdevice) {
    *size_bytes = kMemoryBytes;
    return CUDA_SUCCESS;
  };
}

void SetMemory(Api& api) {
  api.MemAlloc = Allocate;
  api.MemHostAlloc = Refuse;
  api.MemHostGetDevicePointer = Refuse;
  api.PointerGetAttribute = Refuse;
  api.MemcpyDtoHAsync = [](void* to, CUdeviceptr, size_t size_bytes, CUstream) {
    std::memset(to, 0, size_bytes);
    return CUDA_SUCCESS;
  };
}

void SetObjects(Api& api) {
  api.DevicePrimaryCtxRetain = GiveHandle;
  api.CtxPopCurrent = GiveHandle;
  api.StreamCreate = GiveHandle;
  api.StreamGetCtx = [](CUstream, CUcontext* context) { return GiveHandle(context); };
  api.StreamWaitValue32 = Refuse;
  api.GraphCreate = GiveHandle;
  api.GraphAddKernelNode = GiveHandle;
  api.GraphAddMemcpyNode = GiveHandle;
  api.GraphInstantiateWithFlags = GiveHandle;
  api.EventCreate = GiveHandle;
  api.ModuleLoadData = GiveHandle;
  api.ModuleGetFunction = GiveHandle;
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
#define ONNXIFI_CUDA_SUCCEED(name, symbol) api.name = Succeed;
  ONNXIFI_CUDA_DRIVER_FUNCTIONS(ONNXIFI_CUDA_SUCCEED)
#undef ONNXIFI_CUDA_SUCCEED
  SetDevice(api);
  SetMemory(api);
  SetObjects(api);
  return api;
}

}  // namespace onnxifi::cuda
