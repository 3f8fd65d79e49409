// SPDX-License-Identifier: Apache-2.0
//
// Event: the single-shot object behind an onnxEvent. Input events are made by the caller and start
// runs; output events are made by runs and carry their result. The handle table of core/abi holds
// one reference, runs and waiters others.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_EVENT_H_
#define ONNXIFI_BACKENDS_CORE_ABI_EVENT_H_

#include <onnxifi/sdk.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backends/core/abi/tensor_descriptor.h"
#include "backends/core/base/result.h"
#include "backends/core/base/status.h"

namespace onnxifi::abi {

// Threads: every function may be called from any thread.
class Event {
 public:
  virtual ~Event() = default;

  // Signals on behalf of the caller. INVALID_STATE when it is signalled already.
  virtual base::Status Signal() = 0;
  // An error only when the device behind it is gone.
  virtual base::Result<bool> IsSignalled() = 0;
  // Blocks until signalled; answers the status of the work. INVALID_EVENT when the event was
  // abandoned meanwhile.
  virtual base::Status Wait() = 0;
  // Blocks until signalled or the time is over. The status of the work, or nothing on time-out.
  virtual std::optional<base::Status> WaitFor(std::chrono::milliseconds timeout) = 0;
  // The last handle is released. An event of the caller's that is not signalled can never be
  // signalled now: its waiters and the runs that wait for it finish with INVALID_EVENT. An event
  // made by a run lives on until that run signals it.
  virtual void Abandon() = 0;
  // Actual shapes of the outputs of the run that made this event, once signalled; empty when they
  // are those of the binding.
  virtual base::Result<std::vector<TensorShape>> OutputShapes() = 0;
  // The outputs that the run kept, once signalled.
  virtual base::Result<std::vector<KeptValue>> OutputValues() = 0;
  // Calls `visit` for each of them, in the model's order, with a structure that lives until it
  // returns. Here those of OutputValues.
  virtual base::Status VisitOutputValues(const std::function<void(const onnxValue&)>& visit);
};

// What an event waits for, where a thread that waits may do it itself.
class StealableWork {
 public:
  virtual ~StealableWork() = default;
  // Does what is left to do if nobody has begun it, and it is its turn. Called with no lock held.
  virtual void Help() = 0;
  // The event is signalled, by the work or by hand: who waits in Help for a turn returns. Called
  // with no lock held.
  virtual void EndHelp() {}
};

// The event of a library that does its own waiting; what every plugin uses.
class LocalEvent final : public Event {
 public:
  // kDriver: it is signalled with an event of a driver's.
  enum class Origin { kCaller, kRun, kDriver };

  explicit LocalEvent(Origin origin) : origin_(origin) {}

  base::Status Signal() override;
  base::Result<bool> IsSignalled() override;
  base::Status Wait() override;
  std::optional<base::Status> WaitFor(std::chrono::milliseconds timeout) override;
  void Abandon() override;
  base::Result<std::vector<TensorShape>> OutputShapes() override;
  base::Result<std::vector<KeptValue>> OutputValues() override;

  // Signals on behalf of a run or a driver, once, with the run's result. A second completion, or
  // one after a caller signalled the event by hand, has no effect.
  void Complete(base::Status status, RunOutputs outputs = {});

  // From now on Wait, which has no limit of time, helps before it blocks. To be called before
  // anybody else has the event.
  void LetWaitersHelp(std::weak_ptr<StealableWork> work) { work_ = std::move(work); }

  // Calls `callback` once with the status of the work: now if signalled, else on the thread that
  // signals or abandons the event, with no lock held. The callback must be short and not block.
  void OnSignal(std::function<void(const base::Status&)> callback);

 private:
  base::Status Finish(base::Status status, RunOutputs outputs);

  const Origin origin_;
  std::weak_ptr<StealableWork> work_;
  std::mutex mutex_;
  std::condition_variable finished_;
  // Signalled, or abandoned before anybody could signal it. What follows is constant afterwards.
  bool is_finished_ = false;
  base::Status status_;
  RunOutputs outputs_;
  std::vector<std::function<void(const base::Status&)>> callbacks_;
};

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_EVENT_H_
