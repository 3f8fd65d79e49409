// SPDX-License-Identifier: Apache-2.0
//
// Queue: intervals from marks. The device's clock counts from a time of its own: its first mark is
// taken for the time at which the first interval with a kernel was opened.

#include "backends/vulkan/queue.h"

#include <chrono>
#include <optional>

namespace onnxifi::vulkan {

base::Result<bool> Queue::StartTiming() {
  if (runtime_.info().timestamp_bits == 0) return false;
  ONNXIFI_RETURN_IF_ERROR(Finish());
  intervals_.clear();
  timestamps_.Clear();
  is_timing_ = false;
  return true;
}

void Queue::OpenInterval() {
  is_timing_ = true;
  intervals_.push_back({Clock::now(), timestamps_.count(), timestamps_.count()});
}

base::Status Queue::Start(const Dispatch& dispatch) {
  if (!is_timing_) return stream_.Start(dispatch);
  ONNXIFI_RETURN_IF_ERROR(stream_.Start(dispatch, &timestamps_));
  intervals_.back().end_mark = timestamps_.count();
  return base::Ok();
}

base::Result<std::vector<device::TimedQueue::Interval>> Queue::TakeIntervals() {
  ONNXIFI_RETURN_IF_ERROR(Finish());
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<std::chrono::nanoseconds> marks, timestamps_.Read());
  std::vector<Interval> intervals;
  std::optional<Clock::time_point> start_of_device;
  for (const TimedStep& step : intervals_) {
    Interval interval{step.opened, {}};
    for (uint32_t mark = step.first_mark; mark < step.end_mark; mark += 2) {
      const std::chrono::nanoseconds start = marks[mark];
      if (!start_of_device) start_of_device = step.opened - start;
      if (mark == step.first_mark) interval.start = *start_of_device + start;
      interval.duration += marks[mark + 1] - start;
    }
    intervals.push_back(interval);
  }
  intervals_.clear();
  timestamps_.Clear();
  return intervals;
}

}  // namespace onnxifi::vulkan
