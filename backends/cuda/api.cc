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
  const char* name;
  Code code = Code::kBackendUnavailable;
};

// What is not here, or below, is a fault of this backend's own.
constexpr Fault kFaults[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, "out of memory", Code::kNoDeviceMemory},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "out of resources", Code::kNoDeviceResources},
    {CUDA_ERROR_NO_DEVICE, "no device"},
    {CUDA_ERROR_NOT_INITIALIZED, "the driver is not initialised"},
    {CUDA_ERROR_DEINITIALIZED, "the driver is shut down"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "driver versions differ"},
    {CUDA_ERROR_SYSTEM_NOT_READY, "the system is not ready"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "the device is unavailable"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed"},
    {CUDA_ERROR_UNKNOWN, "unknown error"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     "a stream is being captured, which the call does not allow", Code::kInvalidState},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
     "a stream that the legacy stream waits for is being captured", Code::kInvalidState},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture of the stream was invalidated",
     Code::kInvalidState},
    {CUDA_ERROR_LOSSY_QUERY, "the captured work that comes before has a programmatic dependence",
     Code::kInvalidState},
    {CUDA_ERROR_INVALID_IMAGE, "the machine code is none of this driver's", Code::kInternalError},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "the machine code is of another architecture",
     Code::kInternalError},
};

// Of which cuda.h says that the process has to end before CUDA can be used again, or the context,
// of which a process has one per device; and errors of memory and of its links.
constexpr Fault kLosses[] = {
    {CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable memory error"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, "uncorrectable NVLink error"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "illegal address"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "launch timed out"},
    {CUDA_ERROR_ASSERT, "an assertion of a kernel failed"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, "illegal instruction"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, "invalid address space"},
    {CUDA_ERROR_INVALID_PC, "invalid program counter"},
    {CUDA_ERROR_LAUNCH_FAILED, "launch failed"},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, "the MPS server ended this client"},
    // CONTAINED, TENSOR_MEMORY_LEAK and EXTERNAL_DEVICE, which some headers of CUDA 12 lack.
    {static_cast<CUresult>(226), "hardware error that the GPU has contained"},
    {static_cast<CUresult>(721), "tensor memory was not released"},
    {static_cast<CUresult>(911), "error of another device that shares data"},
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
  for (const Fault& loss : kLosses) {
    if (loss.result != result) continue;
    return Status(loss.code,
                  attempt + loss.name + ". The device is lost to this process until it ends.");
  }
  return Status(Code::kInternalError,
                attempt + "error " + std::to_string(static_cast<int>(result)) + ".");
}

}  // namespace onnxifi::cuda
