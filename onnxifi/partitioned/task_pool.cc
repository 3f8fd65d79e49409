// SPDX-License-Identifier: Apache-2.0
//
// TaskPool: one queue for all threads.

#include "onnxifi/partitioned/task_pool.h"

#include <exception>
#include <string>
#include <system_error>

namespace onnxifi::partitioned {

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

void TaskPool::Submit(Task& task) noexcept {
  {
    std::lock_guard lock(mutex_);
    task.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &task;
    last_ = &task;
    ++task_count_;
    if (task_count_ > idle_count_ && !is_stopping_) {
      try {
        threads_.emplace_back([this] { Loop(); });
      } catch (const std::exception&) {
        // No thread, or no memory for one: those that there are take it when they are free.
      }
    }
  }
  changed_.notify_one();
}

void TaskPool::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_count_;
    changed_.wait(lock, [this] { return is_stopping_ || first_ != nullptr; });
    --idle_count_;
    if (first_ == nullptr) return;
    Task& task = *first_;
    first_ = task.next_;
    --task_count_;
    lock.unlock();
    task.Perform();
    lock.lock();
  }
}

}  // namespace onnxifi::partitioned
