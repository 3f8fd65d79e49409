// SPDX-License-Identifier: Apache-2.0
//
// Stopwatch: what parts of the program's work take.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_STOPWATCH_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_STOPWATCH_H_

#include <chrono>

namespace onnxifi::run {

class Stopwatch {
 public:
  // Milliseconds since the last lap, or since the object was made.
  double Lap() {
    const Clock::time_point now = Clock::now();
    const double milliseconds = std::chrono::duration<double, std::milli>(now - start_).count();
    start_ = now;
    return milliseconds;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point start_ = Clock::now();
};

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_STOPWATCH_H_
