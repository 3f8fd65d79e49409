// SPDX-License-Identifier: Apache-2.0
//
// Runtime: the context is current on a thread only during a call, so that the caller's own stays.

#include "backends/cuda/runtime.h"

#include <unistd.h>

#include <string>

namespace onnxifi::cuda {

using base::Code;
using base::Status;

Context::Context(const Api& api, CUdevice device)
    : api_(api), device_(device), process_(getpid()) {}

base::Result<std::shared_ptr<const Context>> Context::Retain(const Api& api,
                                                             const DeviceInfo& info) {
  std::shared_ptr<Context> context(new Context(api, info.id));
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(api.DevicePrimaryCtxRetain(&context->context_, info.id), "open " + info.name));
  return std::shared_ptr<const Context>(std::move(context));
}

bool Context::is_of_this_process() const { return getpid() == process_; }

Context::~Context() {
  // What a forked process has of the driver cannot be released.
  if (context_ != nullptr && is_of_this_process()) api_.DevicePrimaryCtxRelease(device_);
}

Status Context::Enter(std::string_view doing, CUstreamCaptureMode& mode) const {
  if (!is_of_this_process()) {
    return Status(Code::kBackendUnavailable,
                  "CUDA cannot " + std::string(doing) +
                      ": this process was forked from the one that opened the device.");
  }
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api_.CtxPushCurrent(context_), doing));
  if (api_.ThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS) {
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  }
  return base::Ok();
}

void Context::Leave(CUstreamCaptureMode mode) const {
  static_cast<void>(api_.ThreadExchangeStreamCaptureMode(&mode));
  CUcontext left = nullptr;
  static_cast<void>(api_.CtxPopCurrent(&left));
}

base::Result<Handle<CUevent>> NewEvent(const std::shared_ptr<const Context>& context,
                                       unsigned flags) {
  CUevent event = nullptr;
  ONNXIFI_RETURN_IF_ERROR(
      context->Do("make an event", [&] { return context->api().EventCreate(&event, flags); }));
  return Handle<CUevent>(context, event, context->api().EventDestroy);
}

base::Result<Handle<void*>> NewPinned(const std::shared_ptr<const Context>& context,
                                      int64_t size_bytes) {
  void* memory = nullptr;
  ONNXIFI_RETURN_IF_ERROR(
      context->Do("allocate " + std::to_string(size_bytes) + " bytes of pinned memory", [&] {
        return context->api().MemHostAlloc(&memory, static_cast<size_t>(size_bytes),
                                           CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
      }));
  return Handle<void*>(context, memory, context->api().MemFreeHost);
}

Runtime::Runtime(std::shared_ptr<const Context> context, DeviceInfo info)
    : context_(std::move(context)), api_(context_->api()), info_(std::move(info)) {}

base::Result<std::unique_ptr<Runtime>> Runtime::Open(const Api& api, const DeviceInfo& info,
                                                     std::optional<CUstream> callers_stream) {
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const Context> context, Context::Retain(api, info));
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(context), info));
  if (callers_stream) {
    runtime->has_callers_stream_ = true;
    runtime->stream_ = *callers_stream;
    ONNXIFI_RETURN_IF_ERROR(runtime->CheckCallersStream());
    return runtime;
  }
  ONNXIFI_RETURN_IF_ERROR(runtime->Do("create a stream", [&] {
    return api.StreamCreate(&runtime->stream_, CU_STREAM_NON_BLOCKING);
  }));
  return runtime;
}

Status Runtime::CheckCallersStream() const {
  CUcontext context = nullptr;
  const Status asked =
      Do("ask for a stream's context", [&] { return api_.StreamGetCtx(stream_, &context); });
  // Handles that are none have no fault of the table.
  if (!asked.ok() && asked.code() != Code::kInternalError) return asked;
  if (!asked.ok()) {
    return Status(Code::kInvalidProperty, "The handle to share is no stream of CUDA.");
  }
  if (context != context_->get()) {
    return Status(Code::kInvalidProperty,
                  "The CUDA stream to share is not of the primary context of " + info_.name + ".");
  }
  return base::Ok();
}

Status Runtime::CheckNoCapture(std::string_view doing) const {
  if (!has_callers_stream_) return base::Ok();
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  ONNXIFI_RETURN_IF_ERROR(Do(doing, [&] { return api_.StreamIsCapturing(stream_, &capture); }));
  if (capture == CU_STREAM_CAPTURE_STATUS_NONE) return base::Ok();
  return Status(Code::kInvalidState,
                "CUDA cannot " + std::string(doing) + ": the caller's stream is being captured.");
}

Runtime::~Runtime() {
  if (!context_->is_of_this_process()) return;
  if (!has_callers_stream_ && stream_ == nullptr) return;
  // Whoever captures goes on; the work before it keeps what it needs.
  if (!CheckNoCapture("close a device").ok()) return;
  static_cast<void>(Do("close a device", [&] {
    static_cast<void>(api_.StreamSynchronize(stream_));
    return has_callers_stream_ ? CUDA_SUCCESS : api_.StreamDestroy(stream_);
  }));
}

}  // namespace onnxifi::cuda
