// SPDX-License-Identifier: Apache-2.0
//
// RunQueue.

#include "backends/core/plugin/run_queue.h"

#include <new>

namespace onnxifi::plugin {

using base::Code;
using base::Status;

bool RunQueue::StartsAtOnce(const std::shared_ptr<abi::LocalEvent>& input) {
  if (input != nullptr) {
    const base::Result<bool> is_signalled = input->IsSignalled();
    if (!is_signalled.ok() || !*is_signalled) return false;
  }
  const std::lock_guard lock(mutex_);
  if (is_running_ || !waiting_.empty()) return false;
  is_running_ = true;
  return true;
}

std::shared_ptr<abi::LocalEvent> RunQueue::Add(Work work, std::shared_ptr<abi::LocalEvent> input,
                                               RunsOn runs_on) {
  auto run = std::make_shared<Run>();
  run->tasks = tasks_;
  run->work = std::move(work);
  run->input = std::move(input);
  run->output = std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kRun);
  std::shared_ptr<abi::LocalEvent> output = run->output;
  if (runs_on == RunsOn::kCaller && StartsAtOnce(run->input)) {
    if (run->input) run->input_status = run->input->Wait();
    Carry(*run);
    return output;
  }
  output->LetWaitersHelp(run);
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(run);
  }
  // Weak, so that a caller's event that is never signalled keeps no run alive beyond the graph's
  // queue.
  auto become_ready = [self = shared_from_this(),
                       weak = std::weak_ptr<Run>(run)](const Status& status) {
    std::shared_ptr<Run> ready = weak.lock();
    if (!ready) return;
    std::unique_lock lock(self->mutex_);
    ready->is_ready = true;
    ready->input_status = status;
    self->StartNext(lock);
  };
  if (run->input) {
    run->input->OnSignal(become_ready);
  } else {
    become_ready(base::Ok());
  }
  return output;
}

void RunQueue::StartNext(std::unique_lock<std::mutex>&) {
  if (is_running_ || waiting_.empty() || !waiting_.front()->is_ready) return;
  is_running_ = true;
  std::shared_ptr<Run> run = std::move(waiting_.front());
  waiting_.pop_front();
  run->queue = shared_from_this();
  tasks_->Submit(std::move(run));
}

void RunQueue::Run::Carry() noexcept {
  const std::shared_ptr<RunQueue> in = std::move(queue);
  in->Carry(*this);
}

void RunQueue::Carry(Run& run) {
  Status status = run.input_status;
  abi::RunOutputs outputs;
  if (status.ok()) {
    try {
      status = run.work(outputs);
    } catch (const std::bad_alloc&) {
      status = Status(Code::kNoSystemMemory, "The run needs more memory than there is.");
    } catch (const std::exception& error) {
      status = Status(Code::kInternalError,
                      std::string("The run ended in an exception: ") + error.what() + ".");
    }
  }
  run.work = nullptr;
  run.output->Complete(std::move(status), std::move(outputs));
  std::unique_lock lock(mutex_);
  is_running_ = false;
  StartNext(lock);
  if (!is_running_ && waiting_.empty()) emptied_.notify_all();
}

void RunQueue::Drain() {
  std::unique_lock lock(mutex_);
  emptied_.wait(lock, [this] { return !is_running_ && waiting_.empty(); });
}

}  // namespace onnxifi::plugin
