// SPDX-License-Identifier: Apache-2.0
//
// Runtime: an opened device: its primary context and the one stream that all work goes into, its
// own or the caller's, so that memory which one piece of work is done with can be given to the next
// at once.

#ifndef ONNXIFI_BACKENDS_CUDA_RUNTIME_H_
#define ONNXIFI_BACKENDS_CUDA_RUNTIME_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "backends/cuda/api.h"
#include "backends/cuda/driver.h"

namespace onnxifi::cuda {

// As the driver has it.
inline CUdeviceptr ToAddress(const std::byte* pointer) {
  return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(pointer));
}

// A device's primary context, held.
class Context {
 public:
  static base::Result<std::shared_ptr<const Context>> Retain(const Api& api,
                                                             const DeviceInfo& info);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Api& api() const { return api_; }
  CUcontext get() const { return context_; }
  bool is_of_this_process() const;

  // As Runtime::Do.
  template <typename Call>
  base::Status Do(std::string_view doing, const Call& call) const {
    // Callers who capture their streams forbid all threads to allocate meanwhile, lest they rely on
    // it; nothing that is captured relies on what is allocated here.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    ONNXIFI_RETURN_IF_ERROR(Enter(doing, mode));
    const CUresult result = call();
    Leave(mode);
    return ToStatus(result, doing);
  }

 private:
  Context(const Api& api, CUdevice device);
  // `mode`: the thread's from now on, and then what it was before.
  base::Status Enter(std::string_view doing, CUstreamCaptureMode& mode) const;
  void Leave(CUstreamCaptureMode mode) const;

  const Api api_;
  const CUdevice device_;
  const pid_t process_;
  CUcontext context_ = nullptr;
};

class Runtime {
 public:
  // `callers_stream`: of the device's primary context, or CU_STREAM_LEGACY (also as 0) or
  // CU_STREAM_PER_THREAD; outlives the runtime. INVALID_PROPERTY if it is none such,
  // BACKEND_UNAVAILABLE or a resource code.
  static base::Result<std::unique_ptr<Runtime>> Open(const Api& api, const DeviceInfo& info,
                                                     std::optional<CUstream> callers_stream = {});
  // Waits for all work.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Api& api() const { return api_; }
  const DeviceInfo& info() const { return info_; }
  CUstream stream() const { return stream_; }
  bool has_callers_stream() const { return has_callers_stream_; }
  // INVALID_STATE if the stream is the caller's and is being captured: it takes no work that is to
  // be done now.
  base::Status CheckNoCapture(std::string_view doing) const;
  // The primary context, which lives as long as the pointer, beyond the runtime.
  std::shared_ptr<const Context> context() const { return context_; }

  // Does `call()`, which gives a CUresult, with the context current on this thread. As ToStatus;
  // BACKEND_UNAVAILABLE in a process that was forked. Any thread.
  template <typename Call>
  base::Status Do(std::string_view doing, const Call& call) const {
    return context_->Do(doing, call);
  }

 private:
  Runtime(std::shared_ptr<const Context> context, DeviceInfo info);
  base::Status CheckCallersStream() const;

  const std::shared_ptr<const Context> context_;
  const Api& api_;
  const DeviceInfo info_;
  bool has_callers_stream_ = false;
  CUstream stream_ = nullptr;
};

// An owned object of a context, which it holds.
template <typename T>
class Handle {
 public:
  using Destroy = CUresult (*)(T);
  Handle() = default;
  Handle(std::shared_ptr<const Context> context, T object, Destroy destroy)
      : context_(std::move(context)), object_(object), destroy_(destroy) {}
  Handle(Handle&& other) noexcept { *this = std::move(other); }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(object_, other.object_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (object_ == T{}) return;
    static_cast<void>(context_->Do("release an object", [&] { return destroy_(object_); }));
  }
  T get() const { return object_; }
  // It is the receiver's to destroy.
  T Take() { return std::exchange(object_, T{}); }

 private:
  std::shared_ptr<const Context> context_;
  T object_{};
  Destroy destroy_ = nullptr;
};

// `flags` as of cuEventCreate. Resource codes.
base::Result<Handle<CUevent>> NewEvent(const std::shared_ptr<const Context>& context,
                                       unsigned flags);
// Memory of the host's that the device sees, too. Resource codes.
base::Result<Handle<void*>> NewPinned(const std::shared_ptr<const Context>& context,
                                      int64_t size_bytes);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_RUNTIME_H_
