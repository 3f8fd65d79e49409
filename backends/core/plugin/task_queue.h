// SPDX-License-Identifier: Apache-2.0
//
// TaskQueue: tasks that are carried out in order by a thread of their own, or by threads that would
// wait for them, and side by side where a task says that it may be.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_TASK_QUEUE_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_TASK_QUEUE_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "backends/core/base/status.h"

namespace onnxifi::plugin {

// Tasks that are carried out by whoever has a thread for them: in order and one at a time, but for
// those that may go beside others, which a thread that waits for one begins at any time. Threads:
// any.
class TaskQueue {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    virtual void Carry() noexcept = 0;
    // Never changes.
    virtual bool MayGoBeside() const { return false; }
  };

  void Submit(std::shared_ptr<Task> task);
  // The two halves of Submit. Without the second, a thread that is about to call Help carries out
  // the task.
  void Put(std::shared_ptr<Task> task);
  void Wake() { changed_.notify_one(); }
  // Carries out `task` on the calling thread if nobody has begun it and it may go beside others, or
  // is the next one and none is under way.
  void Help(const Task& task);
  // Carries out tasks until Stop was called and none is left.
  void CarryAll();
  void Stop();

 private:
  // Carries out a task that was taken from the list; `lock` is held before and after.
  static void Carry(std::shared_ptr<Task> task, std::unique_lock<std::mutex>& lock);
  // The same with the first task, as the one that is under way.
  void CarryNext(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> tasks_;
  bool is_busy_ = false;
  int helpers_ = 0;  // who carry out tasks beside that
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

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_TASK_QUEUE_H_
