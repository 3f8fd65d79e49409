// SPDX-License-Identifier: Apache-2.0
//
// EventWaiter: looks every sixteenth of the time that was waited already, every millisecond at
// most.

#include "backends/cuda/event_waiter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/core/base/start_thread.h"

namespace onnxifi::cuda {

using base::Code;
using base::Status;

EventWaiter::~EventWaiter() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const Awaited& awaited : awaited_) {
    awaited.done(Status(Code::kBackendUnavailable,
                        "The backend was released before the CUDA event was complete."));
  }
}

Status EventWaiter::WhenComplete(CUevent event, OnDone done) {
  constexpr std::string_view kDoing = "wait for an event";
  if (event == nullptr) return Status(Code::kInvalidEvent, "The CUDA event is NULL.");
  const Api& api = runtime_.api();
  CUresult found = CUDA_SUCCESS;
  ONNXIFI_RETURN_IF_ERROR(runtime_.Do(kDoing, [&] {
    found = api.EventQuery(event);
    return CUDA_SUCCESS;
  }));
  if (found == CUDA_ERROR_CAPTURED_EVENT) {
    return Status(Code::kInvalidEvent, "The CUDA event was recorded while a stream was captured.");
  }
  if (found == CUDA_ERROR_INVALID_HANDLE || found == CUDA_ERROR_INVALID_VALUE ||
      found == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    return Status(Code::kInvalidEvent, "The handle is no event of CUDA.");
  }
  if (found != CUDA_ERROR_NOT_READY) ONNXIFI_RETURN_IF_ERROR(ToStatus(found, kDoing));
  CUstream stream = nullptr;
  ONNXIFI_RETURN_IF_ERROR(
      runtime_.Do(kDoing, [&] { return api.StreamCreate(&stream, CU_STREAM_NON_BLOCKING); }));
  Handle<CUstream> owned(runtime_.context(), stream, api.StreamDestroy);
  ONNXIFI_RETURN_IF_ERROR(
      runtime_.Do(kDoing, [&] { return api.StreamWaitEvent(stream, event, 0); }));
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
      ONNXIFI_ASSIGN_OR_RETURN(thread_, base::StartThread("waits for events", [this] { Loop(); }));
    }
    awaited_.push_back({std::move(owned), Clock::now(), std::move(done)});
  }
  changed_.notify_all();
  return base::Ok();
}

void EventWaiter::Loop() {
  while (true) {
    const Clock::duration pause = TellComplete();
    std::unique_lock lock(mutex_);
    if (is_ending_) return;
    if (awaited_.empty()) {
      changed_.wait(lock, [this] { return is_ending_ || !awaited_.empty(); });
    } else {
      changed_.wait_for(lock, pause);
    }
    if (is_ending_) return;
  }
}

EventWaiter::Clock::duration EventWaiter::TellComplete() {
  constexpr Clock::duration kMin = std::chrono::microseconds(20);
  constexpr Clock::duration kMax = std::chrono::milliseconds(1);
  Clock::duration pause = kMax;
  std::vector<std::pair<Awaited, Status>> told;
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    std::vector<Awaited> left;
    for (Awaited& awaited : awaited_) {
      CUresult result = CUDA_SUCCESS;
      Status status = runtime_.Do("wait for an event", [&] {
        result = runtime_.api().StreamQuery(awaited.stream.get());
        return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
      });
      if (status.ok() && result == CUDA_ERROR_NOT_READY) {
        pause = std::min(pause, std::max(kMin, (now - awaited.since) / 16));
        left.push_back(std::move(awaited));
        continue;
      }
      if (!status.ok()) {
        status = Status(Code::kBackendUnavailable, std::string(status.sentence()));
      }
      told.emplace_back(std::move(awaited), std::move(status));
    }
    awaited_ = std::move(left);
  }
  for (const auto& [awaited, status] : told) awaited.done(status);
  return pause;
}

}  // namespace onnxifi::cuda
