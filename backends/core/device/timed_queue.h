// SPDX-License-Identifier: Apache-2.0
//
// TimedQueue: a queue that can tell when its device did what was put into it. Executors ask for it
// where a run is profiled, and wait after each step where a device has none.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_TIMED_QUEUE_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_TIMED_QUEUE_H_

#include <chrono>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::device {

class TimedQueue : public Queue {
 public:
  using Clock = std::chrono::steady_clock;
  // From the start of the first kernel that was put in during it; what all of them took. One
  // without kernels starts when it was opened and takes nothing.
  struct Interval {
    Clock::time_point start;
    Clock::duration duration;
  };

  // Forgets all intervals. False: this queue tells no times, and the rest is not to be called.
  virtual base::Result<bool> StartTiming() = 0;
  // Kernels between the two belong to a new interval; those outside are not timed.
  virtual void OpenInterval() = 0;
  virtual void CloseInterval() = 0;
  // As Finish, and then the intervals since StartTiming, in the order in which they were opened.
  virtual base::Result<std::vector<Interval>> TakeIntervals() = 0;
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_TIMED_QUEUE_H_
