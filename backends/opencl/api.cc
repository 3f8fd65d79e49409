// SPDX-License-Identifier: Apache-2.0
//
// Api: dlopen, the table of symbols, and the table of faults.

#include "backends/opencl/api.h"

#include <dlfcn.h>

#include <string>

#include "backends/opencl/signal_keeper.h"

namespace onnxifi::opencl {
namespace {

using base::Code;
using base::Result;
using base::Status;

struct Fault {
  cl_int result;
  Code code;
  const char* name;
};

// What is not here is a fault of this backend's own.
constexpr Fault kFaults[] = {
    {CL_DEVICE_NOT_FOUND, Code::kBackendUnavailable, "device not found"},
    {CL_DEVICE_NOT_AVAILABLE, Code::kBackendUnavailable, "device not available"},
    {CL_COMPILER_NOT_AVAILABLE, Code::kBackendUnavailable, "compiler not available"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, Code::kNoDeviceMemory, "memory object allocation failure"},
    {CL_OUT_OF_RESOURCES, Code::kNoDeviceResources, "out of resources"},
    {CL_OUT_OF_HOST_MEMORY, Code::kNoSystemMemory, "out of host memory"},
    {CL_INVALID_BUFFER_SIZE, Code::kNoDeviceMemory, "invalid buffer size"},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, Code::kBackendUnavailable,
     "a command before it failed"},
    // What drivers answer for whatever belonged to a device that is gone.
    {CL_INVALID_COMMAND_QUEUE, Code::kBackendUnavailable, "invalid command queue"},
    {CL_INVALID_CONTEXT, Code::kBackendUnavailable, "invalid context"},
    {CL_INVALID_DEVICE, Code::kBackendUnavailable, "invalid device"},
    {CL_INVALID_PLATFORM, Code::kBackendUnavailable, "invalid platform"},
    // cl_khr_icd: a loader without drivers.
    {-1001, Code::kBackendUnavailable, "no platform"},
    {CL_BUILD_PROGRAM_FAILURE, Code::kInternalError, "build program failure"},
};

}  // namespace

Result<Api> LoadApi(const char* library) {
  SignalKeeper::RememberLibraries();
  void* loader = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr) {
    return Status(Code::kBackendUnavailable, std::string("The OpenCL loader ") + library +
                                                 " cannot be opened: " + dlerror() + ".");
  }
  Api api;
#define ONNXIFI_OPENCL_LOOK_UP(name)                                                              \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(loader, "cl" #name));                     \
  if (api.name == nullptr) {                                                                      \
    return Status(Code::kBackendUnavailable,                                                      \
                  std::string("The OpenCL loader ") + library + " has no function cl" #name "."); \
  }
  ONNXIFI_OPENCL_FUNCTIONS(ONNXIFI_OPENCL_LOOK_UP)
#undef ONNXIFI_OPENCL_LOOK_UP
#define ONNXIFI_OPENCL_LOOK_UP(name) \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(loader, "cl" #name));
  ONNXIFI_OPENCL_LATER_FUNCTIONS(ONNXIFI_OPENCL_LOOK_UP)
#undef ONNXIFI_OPENCL_LOOK_UP
  return api;
}

Status ToStatus(cl_int result, std::string_view doing) {
  if (result == CL_SUCCESS) return base::Ok();
  const std::string attempt = "OpenCL cannot " + std::string(doing) + ": ";
  for (const Fault& fault : kFaults) {
    if (fault.result == result) return Status(fault.code, attempt + fault.name + ".");
  }
  return Status(Code::kInternalError, attempt + "error " + std::to_string(result) + ".");
}

}  // namespace onnxifi::opencl
