// SPDX-License-Identifier: Apache-2.0
//
// RunProfile: when each step of a run started and how long it took. Filled by the executor where it
// is asked for; without one, a step costs one comparison.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_RUN_PROFILE_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_RUN_PROFILE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/core/plan/plan.h"

namespace onnxifi::execution {

struct RunProfile {
  using Clock = std::chrono::steady_clock;
  struct Step {
    int segment;
    int step;  // of the program
    int64_t start_ns;
    int64_t duration_ns;
  };
  Clock::time_point start = Clock::now();
  std::vector<Step> steps;  // in the order of their start
  // By segment: the numbers with which its steps ran.
  std::vector<std::shared_ptr<const plan::SegmentBinding>> bindings;
};

// Adds the time between its construction and its end to a profile; nothing to a null one.
class StepTimer {
 public:
  StepTimer(RunProfile* profile, int segment, int step) : profile_(profile) {
    if (profile_ == nullptr) return;
    step_ = {segment, step, Now(), 0};
  }
  ~StepTimer() {
    if (profile_ == nullptr) return;
    step_.duration_ns = Now() - step_.start_ns;
    profile_->steps.push_back(step_);
  }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;

 private:
  int64_t Now() const {
    return std::chrono::nanoseconds(RunProfile::Clock::now() - profile_->start).count();
  }

  RunProfile* const profile_;
  RunProfile::Step step_{};
};

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_RUN_PROFILE_H_
