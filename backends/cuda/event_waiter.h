// SPDX-License-Identifier: Apache-2.0
//
// EventWaiter: a thread that looks whether the caller's events are complete. CUDA calls back only
// where no error came before, and a run must not wait for ever.

#ifndef ONNXIFI_BACKENDS_CUDA_EVENT_WAITER_H_
#define ONNXIFI_BACKENDS_CUDA_EVENT_WAITER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/cuda/runtime.h"

namespace onnxifi::cuda {

// Any thread.
class EventWaiter {
 public:
  using OnDone = std::function<void(const base::Status&)>;

  // `runtime` outlives it.
  explicit EventWaiter(const Runtime& runtime) : runtime_(runtime) {}
  // What is still waited for is done with BACKEND_UNAVAILABLE.
  ~EventWaiter();
  EventWaiter(const EventWaiter&) = delete;
  EventWaiter& operator=(const EventWaiter&) = delete;

  // Calls `done` once, on the thread, when the work that `event` was recorded behind by now is
  // done, with BACKEND_UNAVAILABLE if the device is lost before. The event may be recorded anew or
  // destroyed when this returns. INVALID_EVENT, or a resource code, and no call.
  base::Status WhenComplete(CUevent event, OnDone done);

 private:
  using Clock = std::chrono::steady_clock;
  struct Awaited {
    Handle<CUstream> stream;  // in which only the wait is
    Clock::time_point since;
    OnDone done;
  };

  void Loop();
  // Takes out what is complete; how long to sleep until the next look.
  Clock::duration TellComplete();

  const Runtime& runtime_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::vector<Awaited> awaited_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_EVENT_WAITER_H_
