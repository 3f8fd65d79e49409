// SPDX-License-Identifier: Apache-2.0
//
// Queue: commands without events; a marker at the end is what is waited for.

#include "backends/opencl/queue.h"

#include <string>

namespace onnxifi::opencl {
namespace {

std::string Amount(const char* verb, int64_t size_bytes) {
  return std::string(verb) + " " + std::to_string(size_bytes) + " bytes";
}

}  // namespace

Queue::~Queue() { static_cast<void>(Finish()); }

base::Status Queue::Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(const Memory::Place place, memory_.Find(to));
  MarkUsed();
  return ToStatus(runtime_.api().EnqueueWriteBuffer(runtime_.queue(), place.handle, CL_FALSE,
                                                    static_cast<size_t>(place.offset_bytes),
                                                    static_cast<size_t>(size_bytes), from_host, 0,
                                                    nullptr, nullptr),
                  Amount("upload", size_bytes));
}

base::Status Queue::Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(const Memory::Place place, memory_.Find(from));
  MarkUsed();
  return ToStatus(runtime_.api().EnqueueReadBuffer(runtime_.queue(), place.handle, CL_FALSE,
                                                   static_cast<size_t>(place.offset_bytes),
                                                   static_cast<size_t>(size_bytes), to_host, 0,
                                                   nullptr, nullptr),
                  Amount("download", size_bytes));
}

base::Status Queue::Copy(const std::byte* from, std::byte* to, int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(const Memory::Place source, memory_.Find(from));
  ONNXIFI_ASSIGN_OR_RETURN(const Memory::Place target, memory_.Find(to));
  MarkUsed();
  return ToStatus(
      runtime_.api().EnqueueCopyBuffer(runtime_.queue(), source.handle, target.handle,
                                       static_cast<size_t>(source.offset_bytes),
                                       static_cast<size_t>(target.offset_bytes),
                                       static_cast<size_t>(size_bytes), 0, nullptr, nullptr),
      Amount("copy", size_bytes));
}

base::Status Queue::Finish() {
  if (!is_used_) return base::Ok();
  is_used_ = false;
  cl_event marker = nullptr;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(runtime_.api().EnqueueMarkerWithWaitList(runtime_.queue(), 0, nullptr, &marker),
               "mark the end of a run"));
  const Handle<cl_event> owned(marker, runtime_.api().ReleaseEvent);
  return ToStatus(runtime_.api().WaitForEvents(1, &marker), "finish a run");
}

}  // namespace onnxifi::opencl
