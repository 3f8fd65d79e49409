// SPDX-License-Identifier: Apache-2.0
//
// TaskPool: the threads on which islands are started and waited for. They compute little: each
// plugin has threads of its own.

#ifndef ONNXIFI_ONNXIFI_DISPATCH_TASK_POOL_H_
#define ONNXIFI_ONNXIFI_DISPATCH_TASK_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/core/base/status.h"

namespace onnxifi::dispatch {

// Threads: any.
class TaskPool {
 public:
  TaskPool() = default;
  // Carries out what was submitted before.
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // At least `thread_count` threads from now on. NO_SYSTEM_RESOURCES when one cannot be started.
  base::Status Start(size_t thread_count);
  // Only after Start. There is a thread more where all are at work, so that no task waits for the
  // device of another; unless the system grants none, when tasks follow one another.
  void Submit(std::function<void()> task);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  size_t idle_count_ = 0;
  bool is_stopping_ = false;
};

}  // namespace onnxifi::dispatch

#endif  // ONNXIFI_ONNXIFI_DISPATCH_TASK_POOL_H_
