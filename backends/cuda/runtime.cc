// SPDX-License-Identifier: Apache-2.0
//
// Runtime: the context is current on a thread only during a call, so that the caller's own stays.

#include "backends/cuda/runtime.h"

#include <unistd.h>

#include <string>

namespace onnxifi::cuda {

using base::Status;

Runtime::Runtime(const Api& api, DeviceInfo info)
    : api_(api), info_(std::move(info)), process_(getpid()) {}

base::Result<std::unique_ptr<Runtime>> Runtime::Open(const Api& api, const DeviceInfo& info) {
  std::unique_ptr<Runtime> runtime(new Runtime(api, info));
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(api.DevicePrimaryCtxRetain(&runtime->context_, info.id), "open " + info.name));
  ONNXIFI_RETURN_IF_ERROR(runtime->Do("create a stream", [&] {
    return api.StreamCreate(&runtime->stream_, CU_STREAM_NON_BLOCKING);
  }));
  return runtime;
}

Runtime::~Runtime() {
  // What a forked process has of the driver cannot be released.
  if (context_ == nullptr || getpid() != process_) return;
  if (stream_ != nullptr) {
    static_cast<void>(Do("close a device", [&] {
      static_cast<void>(api_.StreamSynchronize(stream_));
      return api_.StreamDestroy(stream_);
    }));
  }
  api_.DevicePrimaryCtxRelease(info_.id);
}

Status Runtime::Enter(std::string_view doing) const {
  if (getpid() != process_) {
    return Status(base::Code::kBackendUnavailable,
                  "CUDA cannot " + std::string(doing) +
                      ": this process was forked from the one that opened the device.");
  }
  return ToStatus(api_.CtxPushCurrent(context_), doing);
}

void Runtime::Leave() const {
  CUcontext left = nullptr;
  static_cast<void>(api_.CtxPopCurrent(&left));
}

}  // namespace onnxifi::cuda
