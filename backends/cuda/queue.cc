// SPDX-License-Identifier: Apache-2.0
//
// Queue: an event at the end is what is waited for. Pageable memory goes by way of the driver's own
// staging.

#include "backends/cuda/queue.h"

#include <algorithm>
#include <string>

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Status;

std::string Amount(const char* verb, int64_t size_bytes) {
  return std::string(verb) + " " + std::to_string(size_bytes) + " bytes";
}

Status NotRecorded(const char* what) {
  return Status(Code::kInternalError, std::string(what) + " has no place in a recording.");
}

CUdeviceptr AddressOf(const std::byte* pointer) {
  return static_cast<CUdeviceptr>(reinterpret_cast<uintptr_t>(pointer));
}

}  // namespace

CUresult LaunchKernel(const Api& api, const CUDA_KERNEL_NODE_PARAMS& launch, CUstream stream) {
  return api.LaunchKernel(launch.func, launch.gridDimX, launch.gridDimY, launch.gridDimZ,
                          launch.blockDimX, launch.blockDimY, launch.blockDimZ,
                          launch.sharedMemBytes, stream, launch.kernelParams, launch.extra);
}

base::Result<std::unique_ptr<Queue>> Queue::Create(const Runtime& runtime) {
  std::unique_ptr<Queue> queue(new Queue(runtime));
  CUevent event = nullptr;
  ONNXIFI_RETURN_IF_ERROR(runtime.Do("create an event", [&] {
    return runtime.api().EventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
  }));
  queue->end_ = {runtime, event, runtime.api().EventDestroy};
  return queue;
}

Queue::~Queue() { static_cast<void>(Finish()); }

Status Queue::Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) {
  if (recorder_ != nullptr) return NotRecorded("An upload");
  return Put(Amount("upload", size_bytes), [&](CUstream stream) {
    return runtime_.api().MemcpyHtoDAsync(AddressOf(to), from_host, static_cast<size_t>(size_bytes),
                                          stream);
  });
}

Status Queue::Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) {
  if (recorder_ != nullptr) return NotRecorded("A download");
  return Put(Amount("download", size_bytes), [&](CUstream stream) {
    return runtime_.api().MemcpyDtoHAsync(to_host, AddressOf(from), static_cast<size_t>(size_bytes),
                                          stream);
  });
}

Status Queue::Copy(const std::byte* from, std::byte* to, int64_t size_bytes) {
  const std::string doing = Amount("copy", size_bytes);
  if (recorder_ != nullptr) return recorder_->AddCopy(doing, from, to, size_bytes);
  return Put(doing, [&](CUstream stream) {
    return runtime_.api().MemcpyDtoDAsync(AddressOf(to), AddressOf(from),
                                          static_cast<size_t>(size_bytes), stream);
  });
}

Status Queue::Start(std::string_view doing, const CUDA_KERNEL_NODE_PARAMS& launch,
                    std::span<const device::MemoryUse> uses) {
  if (recorder_ != nullptr) return recorder_->AddKernel(doing, launch, uses);
  return Launch(doing,
                [&](CUstream stream) { return LaunchKernel(runtime_.api(), launch, stream); });
}

Status Queue::Begin() {
  is_begun_ = true;
  is_under_way_ = true;
  if (!runtime_.has_callers_stream()) return base::Ok();
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  Status status = runtime_.Do(
      "begin a run", [&] { return runtime_.api().StreamIsCapturing(runtime_.stream(), &capture); });
  if (status.ok() && capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    status = Status(Code::kInvalidState,
                    "The CUDA stream of the caller's is being captured; a run cannot become part of"
                    " the caller's graph.");
  }
  if (!status.ok()) {
    is_begun_ = false;
    is_under_way_ = !submitted_.empty();
  }
  return status;
}

Status Queue::RecordEnd() {
  return runtime_.Do("end a run",
                     [&] { return runtime_.api().EventRecord(end_.get(), runtime_.stream()); });
}

Status Queue::Submit() {
  if (recorder_ != nullptr) return NotRecorded("Waiting");
  Status status = std::exchange(first_error_, base::Ok());
  if (!std::exchange(is_begun_, false)) return status;
  // What was submitted before may be done.
  CUresult earlier = CUDA_ERROR_NOT_READY;
  if (!submitted_.empty()) {
    static_cast<void>(runtime_.Do("look at a run", [&] {
      earlier = runtime_.api().EventQuery(end_.get());
      return CUDA_SUCCESS;
    }));
  }
  if (earlier == CUDA_SUCCESS) submitted_.clear();
  for (std::shared_ptr<const void>& object : kept_) {
    if (std::ranges::find(submitted_, object) == submitted_.end()) {
      submitted_.push_back(std::move(object));
    }
  }
  kept_.clear();
  Status recorded = RecordEnd();
  return status.ok() ? std::move(recorded) : std::move(status);
}

Status Queue::Finish() {
  if (recorder_ != nullptr) return NotRecorded("Waiting");
  Status status = std::exchange(first_error_, base::Ok());
  is_begun_ = false;
  if (std::exchange(is_under_way_, false)) {
    Status waited = RecordEnd();
    if (waited.ok()) {
      waited =
          runtime_.Do("finish a run", [&] { return runtime_.api().EventSynchronize(end_.get()); });
    }
    if (status.ok()) status = std::move(waited);
  }
  kept_.clear();
  submitted_.clear();
  return status;
}

base::Result<bool> Queue::StartTiming() {
  intervals_.clear();
  is_timing_ = false;
  return true;
}

void Queue::OpenInterval() {
  is_timing_ = true;
  intervals_.push_back({Clock::now(), {}, {}});
}

base::Result<Handle<CUevent>> Queue::NewTimedEvent() {
  CUevent event = nullptr;
  ONNXIFI_RETURN_IF_ERROR(runtime_.Do(
      "create an event", [&] { return runtime_.api().EventCreate(&event, CU_EVENT_DEFAULT); }));
  return Handle<CUevent>(runtime_, event, runtime_.api().EventDestroy);
}

Status Queue::MarkBegin() {
  TimedStep& step = intervals_.back();
  if (step.begin.get() != nullptr) return base::Ok();
  ONNXIFI_ASSIGN_OR_RETURN(step.begin, NewTimedEvent());
  ONNXIFI_ASSIGN_OR_RETURN(step.end, NewTimedEvent());
  return Put("time a kernel",
             [&](CUstream stream) { return runtime_.api().EventRecord(step.begin.get(), stream); });
}

Status Queue::MarkEnd() {
  return Put("time a kernel", [&](CUstream stream) {
    return runtime_.api().EventRecord(intervals_.back().end.get(), stream);
  });
}

base::Result<std::vector<device::TimedQueue::Interval>> Queue::TakeIntervals() {
  ONNXIFI_RETURN_IF_ERROR(Finish());
  const auto between = [&](const Handle<CUevent>& from,
                           const Handle<CUevent>& to) -> base::Result<Clock::duration> {
    float milliseconds = 0;
    ONNXIFI_RETURN_IF_ERROR(runtime_.Do("tell when a kernel ran", [&] {
      return runtime_.api().EventElapsedTime(&milliseconds, from.get(), to.get());
    }));
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<float, std::milli>(milliseconds));
  };
  std::vector<Interval> intervals;
  // The first kernel starts when its interval was opened; the device's clock tells of the others.
  const TimedStep* first = nullptr;
  for (const TimedStep& step : intervals_) {
    Interval interval{step.opened, {}};
    if (step.begin.get() != nullptr) {
      if (first == nullptr) first = &step;
      ONNXIFI_ASSIGN_OR_RETURN(const Clock::duration since, between(first->begin, step.begin));
      interval.start = first->opened + since;
      ONNXIFI_ASSIGN_OR_RETURN(interval.duration, between(step.begin, step.end));
    }
    intervals.push_back(interval);
  }
  intervals_.clear();
  return intervals;
}

Status Queue::BeginRecording() {
  if (recorder_ != nullptr) return NotRecorded("Another recording");
  ONNXIFI_ASSIGN_OR_RETURN(recorder_, GraphRecorder::Begin(runtime_));
  kept_by_runs_ = std::exchange(kept_, {});
  return base::Ok();
}

base::Result<std::shared_ptr<const device::Recording>> Queue::EndRecording() {
  const std::unique_ptr<GraphRecorder> recorder = std::move(recorder_);
  std::vector<std::shared_ptr<const void>> kept = std::exchange(kept_, {});
  kept_ = std::exchange(kept_by_runs_, {});
  ONNXIFI_ASSIGN_OR_RETURN(Handle<CUgraphExec> graph, recorder->End());
  return std::shared_ptr<const device::Recording>(
      std::make_shared<Recording>(std::move(graph), std::move(kept)));
}

Status Queue::Replay(std::shared_ptr<const device::Recording> recording) {
  if (recorder_ != nullptr) return NotRecorded("A recording");
  // Devices of this backend make no others.
  CUgraphExec graph = static_cast<const Recording&>(*recording).graph();
  kept_.push_back(std::move(recording));
  return Launch("replay a recording",
                [&](CUstream stream) { return runtime_.api().GraphLaunch(graph, stream); });
}

}  // namespace onnxifi::cuda
