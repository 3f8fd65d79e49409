// SPDX-License-Identifier: Apache-2.0
//
// Api: the functions of OpenCL that this backend calls, looked up in the ICD loader when the plugin
// is first used, so that it loads on machines without one; and the one place where their results
// become statuses.

#ifndef ONNXIFI_BACKENDS_OPENCL_API_H_
#define ONNXIFI_BACKENDS_OPENCL_API_H_

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 200
#endif
#ifndef CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#endif
#include <CL/cl.h>

#include <string_view>
#include <utility>

#include "backends/core/base/result.h"

namespace onnxifi::opencl {

#define ONNXIFI_OPENCL_FUNCTIONS(X) \
  X(BuildProgram)                   \
  X(CreateBuffer)                   \
  X(CreateCommandQueue)             \
  X(CreateContext)                  \
  X(CreateKernel)                   \
  X(CreateProgramWithBinary)        \
  X(CreateProgramWithSource)        \
  X(CreateUserEvent)                \
  X(EnqueueCopyBuffer)              \
  X(EnqueueFillBuffer)              \
  X(EnqueueMarkerWithWaitList)      \
  X(EnqueueNDRangeKernel)           \
  X(EnqueueReadBuffer)              \
  X(EnqueueWriteBuffer)             \
  X(Finish)                         \
  X(Flush)                          \
  X(GetCommandQueueInfo)            \
  X(GetContextInfo)                 \
  X(GetDeviceIDs)                   \
  X(GetDeviceInfo)                  \
  X(GetEventInfo)                   \
  X(GetEventProfilingInfo)          \
  X(GetMemObjectInfo)               \
  X(GetPlatformIDs)                 \
  X(GetPlatformInfo)                \
  X(GetProgramBuildInfo)            \
  X(GetProgramInfo)                 \
  X(ReleaseCommandQueue)            \
  X(ReleaseContext)                 \
  X(ReleaseEvent)                   \
  X(ReleaseKernel)                  \
  X(ReleaseMemObject)               \
  X(ReleaseProgram)                 \
  X(RetainCommandQueue)             \
  X(RetainContext)                  \
  X(RetainEvent)                    \
  X(RetainMemObject)                \
  X(SetEventCallback)               \
  X(SetKernelArg)                   \
  X(SetUserEventStatus)             \
  X(WaitForEvents)

// Of later versions than the 1.2 that is needed: null where the loader has none.
#define ONNXIFI_OPENCL_LATER_FUNCTIONS(X) \
  X(SVMAlloc)                             \
  X(SVMFree)

// Plain pointers, so that a test can put a function that fails in a real one's place.
struct Api {
#define ONNXIFI_OPENCL_MEMBER(name) decltype(&::cl##name) name = nullptr;
  ONNXIFI_OPENCL_FUNCTIONS(ONNXIFI_OPENCL_MEMBER)
  ONNXIFI_OPENCL_LATER_FUNCTIONS(ONNXIFI_OPENCL_MEMBER)
#undef ONNXIFI_OPENCL_MEMBER
};

// From the library of this name. BACKEND_UNAVAILABLE if there is none, or if it lacks a function.
// Once opened it stays: drivers run threads of their own.
base::Result<Api> LoadApi(const char* library);
inline constexpr char kLoaderLibrary[] = "libOpenCL.so.1";

// Ok for CL_SUCCESS; else the documented status with what was being done and OpenCL's own name of
// the fault. `doing` reads like "allocate 64 bytes".
base::Status ToStatus(cl_int result, std::string_view doing);

// An owned object of OpenCL.
template <typename T>
class Handle {
 public:
  Handle() = default;
  Handle(T object, cl_int(CL_API_CALL* release)(T)) : object_(object), release_(release) {}
  Handle(Handle&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), release_(other.release_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (object_ != nullptr) release_(object_);
  }
  T get() const { return object_; }
  // The object, for somebody else to release.
  T Take() { return std::exchange(object_, nullptr); }

 private:
  T object_ = nullptr;
  cl_int(CL_API_CALL* release_)(T) = nullptr;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_API_H_
