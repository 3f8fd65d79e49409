// SPDX-License-Identifier: Apache-2.0
//
// TaskQueue and Worker.

#include "backends/core/plugin/task_queue.h"

#include <string>
#include <system_error>
#include <utility>

namespace onnxifi::plugin {

using base::Code;
using base::Status;

void TaskQueue::Submit(std::shared_ptr<Task> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void TaskQueue::CarryNext(std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<Task> task = std::move(tasks_.front());
  tasks_.pop_front();
  is_busy_ = true;
  lock.unlock();
  task->Carry();
  task = nullptr;
  lock.lock();
  is_busy_ = false;
}

void TaskQueue::Help(const Task& task) {
  std::unique_lock lock(mutex_);
  if (is_busy_ || tasks_.empty() || tasks_.front().get() != &task) return;
  CarryNext(lock);
  if (!tasks_.empty() || is_stopping_) changed_.notify_one();
}

void TaskQueue::CarryAll() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !is_busy_ && (is_stopping_ || !tasks_.empty()); });
    if (tasks_.empty()) return;
    CarryNext(lock);
  }
}

void TaskQueue::Stop() {
  std::lock_guard lock(mutex_);
  is_stopping_ = true;
  changed_.notify_one();
}

Worker::~Worker() {
  tasks_->Stop();
  if (thread_.joinable()) thread_.join();
}

Status Worker::Start() {
  std::lock_guard lock(mutex_);
  if (thread_.joinable()) return base::Ok();
  try {
    thread_ = std::thread([tasks = tasks_] { tasks->CarryAll(); });
  } catch (const std::system_error& error) {
    return Status(
        Code::kNoSystemResources,
        std::string("The thread that runs graphs cannot be started: ") + error.what() + ".");
  }
  return base::Ok();
}

}  // namespace onnxifi::plugin
