// SPDX-License-Identifier: Apache-2.0
//
// TaskPool: one queue for all threads.

#include "onnxifi/dispatch/task_pool.h"

#include <string>
#include <system_error>
#include <utility>

namespace onnxifi::dispatch {

TaskPool::~TaskPool() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

base::Status TaskPool::Start(size_t thread_count) {
  std::lock_guard lock(mutex_);
  try {
    while (threads_.size() < thread_count) threads_.emplace_back([this] { Loop(); });
  } catch (const std::system_error& error) {
    return {base::Code::kNoSystemResources,
            std::string("A thread for runs over several devices cannot be started: ") +
                error.what() + "."};
  }
  return base::Ok();
}

void TaskPool::Submit(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() > idle_count_ && !is_stopping_) {
      try {
        threads_.emplace_back([this] { Loop(); });
      } catch (const std::system_error&) {
        // Those that there are take it when they are free.
      }
    }
  }
  changed_.notify_one();
}

void TaskPool::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_count_;
    changed_.wait(lock, [this] { return is_stopping_ || !tasks_.empty(); });
    --idle_count_;
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

}  // namespace onnxifi::dispatch
