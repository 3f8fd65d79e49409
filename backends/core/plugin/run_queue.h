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
#include <thread>

#include "backends/core/abi/event.h"
#include "backends/core/base/result.h"

namespace onnxifi::plugin {

// Tasks that are carried out in order, one at a time, by whoever has a thread for them. Threads:
// any.
class TaskQueue {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    virtual void Carry() noexcept = 0;
  };

  void Submit(std::shared_ptr<Task> task);
  // Carries out `task` on the calling thread if it is the next one and none is under way.
  void Help(const Task& task);
  // Carries out tasks until Stop was called and none is left.
  void CarryAll();
  void Stop();

 private:
  // Carries out the first task; `lock` is held before and after.
  void CarryNext(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> tasks_;
  bool is_busy_ = false;
  bool is_stopping_ = false;
};

// A thread for tasks; started with the first.
class Worker {
 public:
  Worker() = default;
  // Returns when all tasks that were submitted are carried out.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // NO_SYSTEM_RESOURCES when the thread cannot be started.
  base::Status Start();
  // To be submitted to only after Start. Shared with threads that wait for a task, and help.
  const std::shared_ptr<TaskQueue>& tasks() const { return tasks_; }

 private:
  const std::shared_ptr<TaskQueue> tasks_ = std::make_shared<TaskQueue>();
  std::mutex mutex_;
  std::thread thread_;
};

class RunQueue : public std::enable_shared_from_this<RunQueue> {
 public:
  // Does the work of a run and tells of its outputs what their descriptors do not.
  using Work = std::function<base::Status(abi::RunOutputs& outputs)>;

  // Where a run that could start at once is carried out: on the worker, or on a thread that waits
  // for it before the worker has woken up; or, for work that is over by then, on the thread that
  // adds it.
  enum class Place : uint8_t { kWorker, kCaller };

  // `worker` outlives every run.
  explicit RunQueue(const Worker& worker) : tasks_(worker.tasks()) {}

  // `input` may be null for inputs that are ready. The event is signalled with the status of the
  // work, or, without the work being done, with the status of `input` if that is an error.
  std::shared_ptr<abi::LocalEvent> Add(Work work, std::shared_ptr<abi::LocalEvent> input,
                                       Place place = Place::kWorker);
  // Blocks until the queue is empty.
  void Drain();

 private:
  struct Run final : TaskQueue::Task, abi::Helpable {
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
