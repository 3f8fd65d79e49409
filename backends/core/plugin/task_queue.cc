// SPDX-License-Identifier: Apache-2.0
//
// TaskQueue and Worker.

#include "backends/core/plugin/task_queue.h"

#include <algorithm>
#include <utility>

#include "backends/core/base/start_thread.h"

namespace onnxifi::plugin {

using base::Status;

void TaskQueue::Put(std::shared_ptr<Task> task) {
  std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
}

void TaskQueue::Submit(std::shared_ptr<Task> task) {
  Put(std::move(task));
  Wake();
}

void TaskQueue::Carry(std::shared_ptr<Task> task, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  task->Carry();
  task = nullptr;
  lock.lock();
}

void TaskQueue::CarryNext(std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<Task> task = std::move(tasks_.front());
  tasks_.pop_front();
  is_busy_ = true;
  Carry(std::move(task), lock);
  is_busy_ = false;
}

void TaskQueue::Help(const Task& task) {
  std::unique_lock lock(mutex_);
  if (task.MayGoBeside()) {
    const auto found = std::ranges::find(tasks_, &task, &std::shared_ptr<Task>::get);
    if (found == tasks_.end()) return;
    std::shared_ptr<Task> taken = std::move(*found);
    tasks_.erase(found);
    ++helpers_;
    Carry(std::move(taken), lock);
    --helpers_;
    if (is_stopping_) changed_.notify_one();
    return;
  }
  if (is_busy_ || tasks_.empty() || tasks_.front().get() != &task) return;
  CarryNext(lock);
  if (!tasks_.empty() || is_stopping_) changed_.notify_one();
}

void TaskQueue::CarryAll() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(
        lock, [this] { return !is_busy_ && (!tasks_.empty() || (is_stopping_ && helpers_ == 0)); });
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
  ONNXIFI_ASSIGN_OR_RETURN(
      thread_, base::StartThread("runs graphs", [tasks = tasks_] { tasks->CarryAll(); }));
  return base::Ok();
}

}  // namespace onnxifi::plugin
