// SPDX-License-Identifier: Apache-2.0
//
// Queue: an event at the end is what is waited for.

#include "backends/cuda/queue.h"

#include <algorithm>
#include <string>
#include <thread>

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Status;

Status NotRecorded(const char* what) {
  return Status(Code::kInternalError, std::string(what) + " has no place in a recording.");
}

}  // namespace

CUresult LaunchKernel(const Api& api, const CUDA_KERNEL_NODE_PARAMS& launch, CUstream stream) {
  return api.LaunchKernel(launch.func, launch.gridDimX, launch.gridDimY, launch.gridDimZ,
                          launch.blockDimX, launch.blockDimY, launch.blockDimZ,
                          launch.sharedMemBytes, stream, launch.kernelParams, launch.extra);
}

base::Result<std::unique_ptr<Queue>> Queue::Create(const Runtime& runtime,
                                                   device::StagingPool& pool, Captures& captures) {
  std::unique_ptr<Queue> queue(new Queue(runtime, pool, captures));
  ONNXIFI_ASSIGN_OR_RETURN(
      queue->end_, NewEvent(runtime.context(), CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
  return queue;
}

Queue::~Queue() { static_cast<void>(Finish()); }

Status Queue::BeginHostCopy() {
  if (recorder_ != nullptr) return NotRecorded("A copy from or to the host");
  if (is_captured_) {
    return Status(Code::kInvalidState,
                  "The caller's stream is being captured, where a copy from or to the host has no "
                  "place.");
  }
  return is_begun_ ? base::Ok() : Begin();
}

Status Queue::Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) {
  ONNXIFI_RETURN_IF_ERROR(BeginHostCopy());
  return Noted(copies_.ToDevice(from_host, to, size_bytes));
}

Status Queue::Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) {
  ONNXIFI_RETURN_IF_ERROR(BeginHostCopy());
  return Noted(copies_.ToHost(from, to_host, size_bytes));
}

Status Queue::Copy(const std::byte* from, std::byte* to, int64_t size_bytes) {
  const std::string doing = "copy " + std::to_string(size_bytes) + " bytes";
  if (recorder_ != nullptr) return recorder_->AddCopy(doing, from, to, size_bytes);
  return Put(doing, [&](CUstream stream) {
    return runtime_.api().MemcpyDtoDAsync(ToAddress(to), ToAddress(from),
                                          static_cast<size_t>(size_bytes), stream);
  });
}

Status Queue::Start(std::string_view doing, const CUDA_KERNEL_NODE_PARAMS& launch,
                    std::span<const device::MemoryUse> uses) {
  if (recorder_ != nullptr) return recorder_->AddKernel(doing, launch, uses);
  return Launch(doing,
                [&](CUstream stream) { return LaunchKernel(runtime_.api(), launch, stream); });
}

Status Queue::Call(std::string_view doing, std::span<const device::MemoryUse> uses,
                   const std::function<CUresult(CUstream)>& put) {
  return recorder_ != nullptr ? recorder_->AddCaptured(doing, uses, put) : Launch(doing, put);
}

Status Queue::Begin() {
  captures_.Sweep();
  if (!is_captured_) ONNXIFI_RETURN_IF_ERROR(runtime_.CheckNoCapture("begin a run"));
  is_begun_ = true;
  is_under_way_ = is_under_way_ || !is_captured_;
  return base::Ok();
}

bool Queue::FindCapture() {
  is_captured_ = false;
  if (!runtime_.has_callers_stream()) return false;
  // Of what goes wrong here, and of captures that were invalidated, Begin tells.
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const Status asked = runtime_.Do(
      "begin a run", [&] { return runtime_.api().StreamIsCapturing(runtime_.stream(), &capture); });
  is_captured_ = asked.ok() && capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return is_captured_;
}

CUresult Queue::AddToCapture(const Recording& recording) const {
  const Api& api = runtime_.api();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  const CUgraphNode* last = nullptr;
  size_t last_count = 0;
  CUresult result =
      api.StreamGetCapture(runtime_.stream(), &status, nullptr, &graph, &last, &last_count);
  if (result != CUDA_SUCCESS) return result;
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUgraphNode node = nullptr;
  result = api.GraphAddChildGraphNode(&node, graph, last, last_count, recording.graph());
  if (result != CUDA_SUCCESS) return result;
  return api.StreamSetCapture(runtime_.stream(), &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

void Queue::EndCaptured() {
  is_captured_ = false;
  is_begun_ = false;
  if (kept_.empty()) return;
  static_cast<void>(runtime_.Do("end a captured run", [&] {
    const Api& api = runtime_.api();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = nullptr;
    const CUresult result =
        api.StreamGetCapture(runtime_.stream(), &status, nullptr, &graph, nullptr, nullptr);
    // What was invalidated is never started.
    if (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return result;
    captures_.Keep(api, graph, std::exchange(kept_, {}));
    return CUDA_SUCCESS;
  }));
  kept_.clear();
}

Status Queue::RecordEnd() {
  return runtime_.Do("end a run",
                     [&] { return runtime_.api().EventRecord(end_.get(), runtime_.stream()); });
}

Status Queue::Submit() {
  if (recorder_ != nullptr) return NotRecorded("Waiting");
  Status status = std::exchange(first_error_, base::Ok());
  if (is_captured_) EndCaptured();
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
  // Nobody is going to finish the run: the host's memory is filled now.
  if (recorded.ok()) recorded = copies_.staging().CopyOut();
  return status.ok() ? std::move(recorded) : std::move(status);
}

Status Queue::Finish() {
  if (recorder_ != nullptr) return NotRecorded("Waiting");
  Status status = std::exchange(first_error_, base::Ok());
  if (is_captured_) {
    EndCaptured();
    return status;
  }
  const bool is_begun = std::exchange(is_begun_, false);
  if (std::exchange(is_under_way_, false)) {
    // Where all is submitted the end is recorded, and the stream may be captured meanwhile.
    Status waited = is_begun ? RecordEnd() : base::Ok();
    if (waited.ok()) waited = copies_.staging().CopyOut();
    if (waited.ok()) {
      waited = WaitForEnd();
    }
    copies_.staging().Clear(/*is_done=*/waited.ok());
    if (status.ok()) status = std::move(waited);
  }
  kept_.clear();
  submitted_.clear();
  return status;
}

// A thread that sleeps is woken late, by as much as a small run takes.
Status Queue::WaitForEnd() {
  constexpr std::string_view kDoing = "finish a run";
  constexpr Clock::duration kLongestLook = std::chrono::milliseconds(2);
  const Clock::time_point end = Clock::now() + kLongestLook;
  CUresult found = CUDA_ERROR_NOT_READY;
  while (found == CUDA_ERROR_NOT_READY && Clock::now() < end) {
    ONNXIFI_RETURN_IF_ERROR(runtime_.Do(kDoing, [&] {
      found = runtime_.api().EventQuery(end_.get());
      return found == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : found;
    }));
    // Those that start runs use the driver, too.
    if (found == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  }
  if (found == CUDA_SUCCESS) return base::Ok();
  return runtime_.Do(kDoing, [&] { return runtime_.api().EventSynchronize(end_.get()); });
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

Status Queue::MarkBegin() {
  TimedStep& step = intervals_.back();
  if (step.begin.get() != nullptr) return base::Ok();
  ONNXIFI_ASSIGN_OR_RETURN(step.begin, NewEvent(runtime_.context(), CU_EVENT_DEFAULT));
  ONNXIFI_ASSIGN_OR_RETURN(step.end, NewEvent(runtime_.context(), CU_EVENT_DEFAULT));
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
  ONNXIFI_ASSIGN_OR_RETURN(GraphRecorder::Recorded recorded, recorder->End());
  return std::shared_ptr<const device::Recording>(
      std::make_shared<Recording>(std::move(recorded), std::move(kept)));
}

Status Queue::Replay(std::shared_ptr<const device::Recording> recording) {
  if (recorder_ != nullptr) return NotRecorded("A recording");
  // Devices of this backend make no others.
  const auto& recorded = static_cast<const Recording&>(*recording);
  kept_.push_back(std::move(recording));
  return Launch("replay a recording", [&](CUstream stream) {
    return is_captured_ ? AddToCapture(recorded)
                        : runtime_.api().GraphLaunch(recorded.executable(), stream);
  });
}

}  // namespace onnxifi::cuda
