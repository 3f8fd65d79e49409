// SPDX-License-Identifier: Apache-2.0
//
// Queue: commands without events; a marker at the end is what is waited for.

#include "backends/opencl/queue.h"

#include <chrono>
#include <optional>
#include <string>

namespace onnxifi::opencl {
namespace {

std::string Amount(const char* verb, int64_t size_bytes) {
  return std::string(verb) + " " + std::to_string(size_bytes) + " bytes";
}

}  // namespace

base::Status StartKernel(Runtime& runtime, cl_kernel kernel, size_t items, size_t group_size,
                         cl_event* event) {
  return ToStatus(runtime.api().EnqueueNDRangeKernel(runtime.queue().get(), kernel, 1, nullptr,
                                                     &items, &group_size, 0, nullptr, event),
                  "start a kernel of " + std::to_string(items) + " items");
}

Queue::~Queue() { static_cast<void>(Finish()); }

base::Status Queue::Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(const Memory::Location place, memory_.Find(to));
  MarkUsed();
  return ToStatus(runtime_.api().EnqueueWriteBuffer(runtime_.queue().get(), place.handle, CL_FALSE,
                                                    static_cast<size_t>(place.offset_bytes),
                                                    static_cast<size_t>(size_bytes), from_host, 0,
                                                    nullptr, nullptr),
                  Amount("upload", size_bytes));
}

// A pattern is copied by the call that puts it in; the bytes of a write are read later.
base::Status Queue::UploadCopy(std::span<const std::byte> from_host, std::byte* to) {
  ONNXIFI_ASSIGN_OR_RETURN(const Memory::Location place, memory_.Find(to));
  MarkUsed();
  return ToStatus(
      runtime_.api().EnqueueFillBuffer(runtime_.queue().get(), place.handle, from_host.data(),
                                       from_host.size(), static_cast<size_t>(place.offset_bytes),
                                       from_host.size(), 0, nullptr, nullptr),
      Amount("upload", std::ssize(from_host)));
}

base::Status Queue::Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(const Memory::Location place, memory_.Find(from));
  MarkUsed();
  return ToStatus(runtime_.api().EnqueueReadBuffer(runtime_.queue().get(), place.handle, CL_FALSE,
                                                   static_cast<size_t>(place.offset_bytes),
                                                   static_cast<size_t>(size_bytes), to_host, 0,
                                                   nullptr, nullptr),
                  Amount("download", size_bytes));
}

base::Status Queue::Copy(const std::byte* from, std::byte* to, int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(const Memory::Location source, memory_.Find(from));
  ONNXIFI_ASSIGN_OR_RETURN(const Memory::Location target, memory_.Find(to));
  MarkUsed();
  return ToStatus(
      runtime_.api().EnqueueCopyBuffer(runtime_.queue().get(), source.handle, target.handle,
                                       static_cast<size_t>(source.offset_bytes),
                                       static_cast<size_t>(target.offset_bytes),
                                       static_cast<size_t>(size_bytes), 0, nullptr, nullptr),
      Amount("copy", size_bytes));
}

base::Status Queue::Finish() {
  if (!is_used_) return base::Ok();
  is_used_ = false;
  cl_event marker = nullptr;
  ONNXIFI_RETURN_IF_ERROR(ToStatus(
      runtime_.api().EnqueueMarkerWithWaitList(runtime_.queue().get(), 0, nullptr, &marker),
      "mark the end of a run"));
  const Handle<cl_event> owned(marker, runtime_.api().ReleaseEvent);
  return ToStatus(runtime_.api().WaitForEvents(1, &marker), "finish a run");
}

base::Result<bool> Queue::StartTiming() {
  intervals_.clear();
  is_timing_ = false;
  return runtime_.EnableTiming();
}

void Queue::OpenInterval() {
  is_timing_ = true;
  intervals_.push_back({Clock::now(), {}});
}

void Queue::CloseInterval() { is_timing_ = false; }

base::Status Queue::Start(cl_kernel kernel, size_t items, size_t group_size) {
  MarkUsed();
  cl_event event = nullptr;
  base::Status status =
      StartKernel(runtime_, kernel, items, group_size, is_timing_ ? &event : nullptr);
  if (event != nullptr) {
    intervals_.back().kernels.emplace_back(event, runtime_.api().ReleaseEvent);
  }
  return status;
}

base::Result<std::vector<device::TimedQueue::Interval>> Queue::TakeIntervals() {
  ONNXIFI_RETURN_IF_ERROR(Finish());
  const auto time_of = [&](const Handle<cl_event>& event,
                           cl_profiling_info query) -> base::Result<std::chrono::nanoseconds> {
    cl_ulong nanoseconds = 0;
    ONNXIFI_RETURN_IF_ERROR(
        ToStatus(runtime_.api().GetEventProfilingInfo(event.get(), query, sizeof(nanoseconds),
                                                      &nanoseconds, nullptr),
                 "tell when a kernel ran"));
    return std::chrono::nanoseconds(nanoseconds);
  };
  std::vector<Interval> intervals;
  // The device's clock counts from a time of its own: the first kernel was put in at a time that
  // both clocks tell.
  std::optional<Clock::time_point> start_of_device;
  for (const TimedStep& step : intervals_) {
    Interval interval{step.opened, {}};
    for (size_t k = 0; k < step.kernels.size(); ++k) {
      ONNXIFI_ASSIGN_OR_RETURN(const std::chrono::nanoseconds start,
                               time_of(step.kernels[k], CL_PROFILING_COMMAND_START));
      ONNXIFI_ASSIGN_OR_RETURN(const std::chrono::nanoseconds end,
                               time_of(step.kernels[k], CL_PROFILING_COMMAND_END));
      if (!start_of_device) {
        ONNXIFI_ASSIGN_OR_RETURN(const std::chrono::nanoseconds queued,
                                 time_of(step.kernels[k], CL_PROFILING_COMMAND_QUEUED));
        start_of_device = step.opened - queued;
      }
      if (k == 0) interval.start = *start_of_device + start;
      interval.duration += end - start;
    }
    intervals.push_back(interval);
  }
  intervals_.clear();
  return intervals;
}

}  // namespace onnxifi::opencl
