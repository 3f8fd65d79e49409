// SPDX-License-Identifier: Apache-2.0
//
// RunQueue: the runs of one graph, in the order of their calls. Each starts when its input event is
// signalled and the run before it has finished; until then no thread waits for it.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_RUN_QUEUE_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_RUN_QUEUE_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "backends/core/abi/event.h"
#include "backends/core/base/status.h"
#include "backends/core/plugin/task_queue.h"

namespace onnxifi::plugin {

class RunQueue : public std::enable_shared_from_this<RunQueue> {
 public:
  // Does the work of a run and tells of its outputs what their descriptors do not.
  using Work = std::function<base::Status(abi::RunOutputs& outputs)>;

  // Where a run that could start at once is carried out: on the worker, or on a thread that waits
  // for it before the worker has woken up; or, for work that is over by then, on the thread that
  // adds it.
  enum class RunsOn : uint8_t { kWorker, kCaller };

  // `worker` outlives every run.
  explicit RunQueue(const Worker& worker) : tasks_(worker.tasks()) {}

  // `input` may be null for inputs that are ready. The event is signalled with the status of the
  // work, or, without the work being done, with the status of `input` if that is an error.
  std::shared_ptr<abi::LocalEvent> Add(Work work, std::shared_ptr<abi::LocalEvent> input,
                                       RunsOn runs_on = RunsOn::kWorker);
  // Blocks until the queue is empty.
  void Drain();

 private:
  struct Run final : TaskQueue::Task, abi::StealableWork {
    void Carry() noexcept override;
    void Help() override { tasks->Help(*this); }

    std::shared_ptr<TaskQueue> tasks;
    std::shared_ptr<RunQueue> queue;  // while it is in `tasks`
    Work work;
    std::shared_ptr<abi::LocalEvent> input;
    std::shared_ptr<abi::LocalEvent> output;
    bool is_ready = false;
    base::Status input_status;
  };

  // Whether a run that is added now starts now; if so, the queue counts as running.
  bool StartsAtOnce(const std::shared_ptr<abi::LocalEvent>& input);
  void StartNext(std::unique_lock<std::mutex>& lock);
  void Carry(Run& run);

  const std::shared_ptr<TaskQueue> tasks_;
  std::mutex mutex_;
  std::condition_variable emptied_;
  std::deque<std::shared_ptr<Run>> waiting_;
  bool is_running_ = false;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_RUN_QUEUE_H_
