// SPDX-License-Identifier: Apache-2.0
//
// Runtime: an opened device: its primary context and the one stream that all work goes into, so
// that memory which one piece of work is done with can be given to the next at once.

#ifndef ONNXIFI_BACKENDS_CUDA_RUNTIME_H_
#define ONNXIFI_BACKENDS_CUDA_RUNTIME_H_

#include <sys/types.h>

#include <memory>
#include <string_view>
#include <utility>

#include "backends/cuda/api.h"
#include "backends/cuda/driver.h"

namespace onnxifi::cuda {

class Runtime {
 public:
  // BACKEND_UNAVAILABLE or a resource code.
  static base::Result<std::unique_ptr<Runtime>> Open(const Api& api, const DeviceInfo& info);
  // Waits for all work.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const Api& api() const { return api_; }
  const DeviceInfo& info() const { return info_; }
  CUstream stream() const { return stream_; }

  // Does `call()`, which gives a CUresult, with the context current on this thread. As ToStatus;
  // BACKEND_UNAVAILABLE in a process that was forked. Any thread.
  template <typename Call>
  base::Status Do(std::string_view doing, const Call& call) const {
    ONNXIFI_RETURN_IF_ERROR(Enter(doing));
    const CUresult result = call();
    Leave();
    return ToStatus(result, doing);
  }

 private:
  Runtime(const Api& api, DeviceInfo info);
  base::Status Enter(std::string_view doing) const;
  void Leave() const;

  const Api api_;
  const DeviceInfo info_;
  const pid_t process_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
};

// An owned object of a runtime's context.
template <typename T>
class Handle {
 public:
  using Destroy = CUresult (*)(T);
  Handle() = default;
  // `runtime` outlives it.
  Handle(const Runtime& runtime, T object, Destroy destroy)
      : runtime_(&runtime), object_(object), destroy_(destroy) {}
  Handle(Handle&& other) noexcept
      : runtime_(other.runtime_),
        object_(std::exchange(other.object_, T{})),
        destroy_(other.destroy_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(object_, other.object_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (object_ == T{}) return;
    static_cast<void>(runtime_->Do("release an object", [&] { return destroy_(object_); }));
  }
  T get() const { return object_; }

 private:
  const Runtime* runtime_ = nullptr;
  T object_{};
  Destroy destroy_ = nullptr;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_RUNTIME_H_
