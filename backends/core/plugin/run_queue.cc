// SPDX-License-Identifier: Apache-2.0
//
// RunQueue.

#include "backends/core/plugin/run_queue.h"

#include <algorithm>
#include <new>

namespace onnxifi::plugin {

using base::Code;
using base::Status;

namespace {

// Runs that wait and are looked at when one has finished: as many as there may be callers, and few
// enough for a thread that queues thousands.
constexpr size_t kMaxLookedAt = 64;

// A number for each thread that adds runs. Those of the system come again.
uint64_t ThisCaller() {
  static std::atomic<uint64_t> callers = 0;
  static thread_local const uint64_t number = ++callers;
  return number;
}

}  // namespace

bool RunQueue::Run::IsApartFrom(const Run& other) const {
  return caller != other.caller && footprint != nullptr && other.footprint != nullptr &&
         footprint->IsApartFrom(*other.footprint);
}

bool RunQueue::HasRoom(const Run& run, Waiting::const_iterator end) const {
  if (running_.size() < limits_.at_once) return true;
  // One that waits for room would wait for ever if smaller ones passed it.
  return running_.size() < limits_.small_at_once &&
         running_bytes_ + run.own_bytes <= limits_.small_bytes &&
         std::all_of(waiting_.begin(), end,
                     [](const auto& other) { return other->progress == Progress::kBlocked; });
}

bool RunQueue::IsFree(const Run& run, Waiting::const_iterator end) const {
  const auto is_apart = [&](const auto& other) { return run.IsApartFrom(*other); };
  return HasRoom(run, end) && std::ranges::all_of(running_, is_apart) &&
         std::all_of(waiting_.begin(), end, is_apart);
}

bool RunQueue::StartsAtOnce(const Run& run) {
  if (run.input != nullptr) {
    const base::Result<bool> is_signalled = run.input->IsSignalled();
    if (!is_signalled.ok() || !*is_signalled) return false;
  }
  const std::lock_guard lock(mutex_);
  if (waiting_.size() > kMaxLookedAt || !IsFree(run, waiting_.end())) return false;
  NoteStart(run);
  return true;
}

void RunQueue::NoteStart(const Run& run) {
  running_.push_back(&run);
  running_bytes_ += run.own_bytes;
}

std::shared_ptr<abi::LocalEvent> RunQueue::Add(Work work, std::shared_ptr<abi::LocalEvent> input,
                                               RunsOn runs_on, const Footprint* footprint) {
  auto run = std::make_shared<Run>();
  run->tasks = tasks_;
  run->work = std::move(work);
  run->input = std::move(input);
  run->output = std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kRun);
  const bool may_go_beside = limits_.at_once > 1;
  if (may_go_beside && footprint != nullptr) {
    run->footprint = footprint;
    run->own_bytes = footprint->own_bytes();
  }
  run->caller = ThisCaller();
  run->may_go_beside = may_go_beside;
  run->has_footprint = run->footprint != nullptr;
  std::shared_ptr<abi::LocalEvent> output = run->output;
  if (runs_on == RunsOn::kCaller && StartsAtOnce(*run)) {
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
    ready->progress = Progress::kWaiting;
    ready->input_status = status;
    self->StartWaiting(lock);
    // Who signalled the event by hand found nobody to free before.
    const base::Result<bool> is_signalled = ready->output->IsSignalled();
    if (is_signalled.ok() && *is_signalled) ready->EndHelp();
  };
  if (run->input) {
    run->input->OnSignal(become_ready);
  } else {
    become_ready(base::Ok());
  }
  return output;
}

void RunQueue::StartWaiting(std::unique_lock<std::mutex>&) {
  size_t looked_at = 0;
  for (auto next = waiting_.begin(); next != waiting_.end() && looked_at < kMaxLookedAt;) {
    if (running_.size() >= std::max(limits_.at_once, limits_.small_at_once)) return;
    ++looked_at;
    if ((*next)->progress == Progress::kBlocked || !IsFree(**next, next)) {
      ++next;
      continue;
    }
    const std::shared_ptr<Run> run = std::move(*next);
    next = waiting_.erase(next);
    NoteStart(*run);
    run->queue = shared_from_this();
    tasks_->Put(run);
    run->progress = Progress::kSubmitted;
    // A thread that waits wakes up anyway, and needs no other one; who comes later finds the run.
    if (run->helpers > 0) {
      run->progress.notify_all();
    } else {
      tasks_->Wake();
    }
  }
}

void RunQueue::Run::Carry() noexcept {
  const std::shared_ptr<RunQueue> in = std::move(queue);
  in->Carry(*this);
}

void RunQueue::Run::Help() {
  // The turn of a run with a footprint comes on any thread, that of others where the worker is.
  if (has_footprint) {
    ++helpers;
    progress.wait(Progress::kWaiting);
    --helpers;
  }
  tasks->Help(*this);
}

void RunQueue::Run::EndHelp() {
  Progress waiting = Progress::kWaiting;
  if (progress.compare_exchange_strong(waiting, Progress::kForsaken)) progress.notify_all();
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
  if (run.has_footprint) {
    // The work keeps what it points to.
    const std::lock_guard lock(mutex_);
    run.footprint = nullptr;
  }
  run.work = nullptr;
  run.output->Complete(std::move(status), std::move(outputs));
  std::unique_lock lock(mutex_);
  std::erase(running_, &run);
  running_bytes_ -= run.own_bytes;
  StartWaiting(lock);
  if (running_.empty() && waiting_.empty()) emptied_.notify_all();
}

void RunQueue::Drain() {
  std::unique_lock lock(mutex_);
  emptied_.wait(lock, [this] { return running_.empty() && waiting_.empty(); });
}

}  // namespace onnxifi::plugin
