// SPDX-License-Identifier: Apache-2.0
//
// Api: dlopen, the tables of functions, and the table of faults.

#include "backends/cuda/api.h"

#include <dlfcn.h>

#include <string>

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;

struct Fault {
  CUresult result;
  Code code;
  const char* name;
  // The context is of no use any more, and a process has one per device.
  bool loses_device = false;
};

// What is not here is a fault of this backend's own.
constexpr Fault kFaults[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, Code::kNoDeviceMemory, "out of memory"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, Code::kNoDeviceResources, "out of resources"},
    {CUDA_ERROR_NO_DEVICE, Code::kBackendUnavailable, "no device"},
    {CUDA_ERROR_NOT_INITIALIZED, Code::kBackendUnavailable, "the driver is not initialised"},
    {CUDA_ERROR_DEINITIALIZED, Code::kBackendUnavailable, "the driver is shut down"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, Code::kBackendUnavailable, "driver versions differ"},
    {CUDA_ERROR_SYSTEM_NOT_READY, Code::kBackendUnavailable, "the system is not ready"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, Code::kBackendUnavailable, "the device is unavailable"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, Code::kBackendUnavailable, "illegal address", true},
    {CUDA_ERROR_MISALIGNED_ADDRESS, Code::kBackendUnavailable, "misaligned address", true},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, Code::kBackendUnavailable, "illegal instruction", true},
    {CUDA_ERROR_LAUNCH_FAILED, Code::kBackendUnavailable, "launch failed", true},
    {CUDA_ERROR_LAUNCH_TIMEOUT, Code::kBackendUnavailable, "launch timed out", true},
    {CUDA_ERROR_ECC_UNCORRECTABLE, Code::kBackendUnavailable, "uncorrectable memory error", true},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, Code::kBackendUnavailable, "hardware stack error", true},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, Code::kBackendUnavailable, "the context is destroyed"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, Code::kInvalidState,
     "a stream is being captured, which the call does not allow"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, Code::kInvalidState,
     "a stream that the legacy stream waits for is being captured"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, Code::kInvalidState,
     "the capture of the stream was invalidated"},
    {CUDA_ERROR_LOSSY_QUERY, Code::kInvalidState,
     "the captured work that comes before has a programmatic dependence"},
    {CUDA_ERROR_INVALID_IMAGE, Code::kInternalError, "the machine code is none of this driver's"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, Code::kInternalError,
     "the machine code is of another architecture"},
    {CUDA_ERROR_UNKNOWN, Code::kBackendUnavailable, "unknown error"},
};

Status MissingFunction(const std::string& library, const char* name) {
  return Status(Code::kBackendUnavailable, library + " has no function " + name + ".");
}

}  // namespace

Result<Api> LoadApi() {
  constexpr const char* kLibrary = "libcuda.so.1";
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Status(Code::kBackendUnavailable, std::string("The CUDA driver ") + kLibrary +
                                                 " cannot be opened: " + dlerror() + ".");
  }
  Api table;
#define ONNXIFI_CUDA_REQUIRE(name, symbol)                                    \
  table.name = reinterpret_cast<decltype(&cu##name)>(dlsym(library, symbol)); \
  if (table.name == nullptr) return MissingFunction("The CUDA driver", symbol);
  ONNXIFI_CUDA_DRIVER_FUNCTIONS(ONNXIFI_CUDA_REQUIRE)
#undef ONNXIFI_CUDA_REQUIRE
  return table;
}

Result<CompilerApi> LoadCompilerApi() {
  void* library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen("libnvrtc.so.12", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Status(Code::kBackendUnavailable,
                  std::string("The CUDA compiler NVRTC, version 13 or 12, cannot be opened: ") +
                      dlerror() + ".");
  }
  CompilerApi table;
#define ONNXIFI_CUDA_REQUIRE(name)                                                      \
  table.name = reinterpret_cast<decltype(&nvrtc##name)>(dlsym(library, "nvrtc" #name)); \
  if (table.name == nullptr) return MissingFunction("NVRTC", "nvrtc" #name);
  ONNXIFI_CUDA_COMPILER_FUNCTIONS(ONNXIFI_CUDA_REQUIRE)
#undef ONNXIFI_CUDA_REQUIRE
  return table;
}

Status ToStatus(CUresult result, std::string_view doing) {
  if (result == CUDA_SUCCESS) return base::Ok();
  const std::string attempt = "CUDA cannot " + std::string(doing) + ": ";
  for (const Fault& fault : kFaults) {
    if (fault.result != result) continue;
    return Status(
        fault.code,
        attempt + fault.name +
            (fault.loses_device ? ". The device is lost to this process until it ends." : "."));
  }
  return Status(Code::kInternalError,
                attempt + "error " + std::to_string(static_cast<int>(result)) + ".");
}

}  // namespace onnxifi::cuda
