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
    {CUDA_ERROR_ILLEGAL_ADDRESS, Code::kBackendUnavailable, "illegal address"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, Code::kBackendUnavailable, "misaligned address"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, Code::kBackendUnavailable, "illegal instruction"},
    {CUDA_ERROR_LAUNCH_FAILED, Code::kBackendUnavailable, "launch failed"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, Code::kBackendUnavailable, "launch timed out"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, Code::kBackendUnavailable, "uncorrectable memory error"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, Code::kBackendUnavailable, "hardware stack error"},
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
    if (fault.result == result) return Status(fault.code, attempt + fault.name + ".");
  }
  return Status(Code::kInternalError,
                attempt + "error " + std::to_string(static_cast<int>(result)) + ".");
}

}  // namespace onnxifi::cuda
