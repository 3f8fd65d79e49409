// SPDX-License-Identifier: Apache-2.0
//
// TaskPool: the threads on which islands are started and waited for. They compute little: each
// plugin has threads of its own.

#ifndef ONNXIFI_ONNXIFI_PARTITIONED_TASK_POOL_H_
#define ONNXIFI_ONNXIFI_PARTITIONED_TASK_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/core/base/status.h"

namespace onnxifi::partitioned {

// Threads: any.
class TaskPool {
 public:
  // What is to be done. Whoever submits it owns it; it is in one list at a time.
  class Task {
   public:
    virtual ~Task() = default;
    // Called once for each time that it is submitted, on a thread of the pool. It may be destroyed
    // in there. Throws nothing.
    virtual void Perform() = 0;

   private:
    friend class TaskPool;
    Task* next_ = nullptr;
  };

  TaskPool() = default;
  // Carries out what was submitted before.
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // At least `thread_count` threads from now on. NO_SYSTEM_RESOURCES when one cannot be started.
  base::Status Start(size_t thread_count);
  // Only after Start. There is a thread more where all are at work, so that no task waits for the
  // device of another; unless the system grants none, when tasks follow one another. Takes no
  // memory for the task itself, so that it cannot fail.
  void Submit(Task& task) noexcept;

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_. Tasks in the order in which they were submitted, linked.
  Task* first_ = nullptr;
  Task* last_ = nullptr;
  size_t task_count_ = 0;
  std::vector<std::thread> threads_;
  size_t idle_count_ = 0;
  bool is_stopping_ = false;
};

}  // namespace onnxifi::partitioned

#endif  // ONNXIFI_ONNXIFI_PARTITIONED_TASK_POOL_H_
