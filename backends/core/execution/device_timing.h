// SPDX-License-Identifier: Apache-2.0
//
// DeviceTiming: the steps of a profiled run, timed by the device that does them, while nobody waits
// between them. For executor.cc alone.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_DEVICE_TIMING_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_DEVICE_TIMING_H_

#include <chrono>
#include <optional>
#include <vector>

#include "backends/core/device/timed_queue.h"
#include "backends/core/execution/run_profile.h"

namespace onnxifi::execution {

class DeviceTiming {
 public:
  // Both outlive it. Nothing where `queue` is null or tells no times.
  static base::Result<std::optional<DeviceTiming>> Start(RunProfile& profile,
                                                         device::Queue* queue) {
    auto* const timed = dynamic_cast<device::TimedQueue*>(queue);
    if (timed == nullptr) return std::optional<DeviceTiming>();
    ONNXIFI_ASSIGN_OR_RETURN(const bool tells_times, timed->StartTiming());
    if (!tells_times) return std::optional<DeviceTiming>();
    return std::optional(DeviceTiming(profile, *timed));
  }

  // Puts a step into the queue and its place into the profile.
  base::Status Enqueue(const device::BoundKernel& kernel, device::Addresses addresses, int segment,
                       int step) {
    places_.push_back(profile_->steps.size());
    profile_->steps.push_back({segment, step, /*start_ns=*/0, /*duration_ns=*/0});
    queue_->OpenInterval();
    base::Status status = kernel.Enqueue(*queue_, addresses);
    queue_->CloseInterval();
    return status;
  }

  // Waits for the steps and fills in their times.
  base::Status Finish() {
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<device::TimedQueue::Interval> intervals,
                             queue_->TakeIntervals());
    for (size_t k = 0; k < places_.size(); ++k) {
      RunProfile::Step& step = profile_->steps[places_[k]];
      step.start_ns = std::chrono::nanoseconds(intervals[k].start - profile_->start).count();
      step.duration_ns = std::chrono::nanoseconds(intervals[k].duration).count();
    }
    return base::Ok();
  }

 private:
  DeviceTiming(RunProfile& profile, device::TimedQueue& queue)
      : profile_(&profile), queue_(&queue) {}

  RunProfile* profile_;
  device::TimedQueue* queue_;
  std::vector<size_t> places_;  // by interval
};

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_DEVICE_TIMING_H_
