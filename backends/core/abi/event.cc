// SPDX-License-Identifier: Apache-2.0
//
// LocalEvent: one mutex, one condition variable; callbacks run after the mutex is released, so that
// a run which starts in a callback may signal and wait on other events.

#include "backends/core/abi/event.h"

#include <utility>

#include "backends/core/abi/value_record.h"

namespace onnxifi::abi {

using base::Code;
using base::Status;

Status Event::VisitOutputValues(const std::function<void(const onnxValue&)>& visit) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<KeptValue> kept, OutputValues());
  for (const KeptValue& one : kept) {
    const ValueRecord record(one.name, *one.value);
    visit(record.get());
  }
  return base::Ok();
}

Status LocalEvent::Finish(Status status, RunOutputs outputs) {
  std::vector<std::function<void(const Status&)>> callbacks;
  {
    std::lock_guard lock(mutex_);
    if (is_finished_) {
      return Status(Code::kInvalidState, "The event is signalled already.");
    }
    is_finished_ = true;
    status_ = status;
    outputs_ = std::move(outputs);
    callbacks.swap(callbacks_);
  }
  finished_.notify_all();
  if (const std::shared_ptr<StealableWork> work = work_.lock()) work->EndHelp();
  for (const auto& callback : callbacks) callback(status);
  return base::Ok();
}

Status LocalEvent::Signal() { return Finish(base::Ok(), {}); }

void LocalEvent::Complete(Status status, RunOutputs outputs) {
  // A caller who signals an output event by hand keeps that answer.
  Status ignored = Finish(std::move(status), std::move(outputs));
  static_cast<void>(ignored);
}

base::Result<bool> LocalEvent::IsSignalled() {
  std::lock_guard lock(mutex_);
  return is_finished_;
}

Status LocalEvent::Wait() {
  if (const std::shared_ptr<StealableWork> work = work_.lock()) work->Help();
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return is_finished_; });
  return status_;
}

std::optional<Status> LocalEvent::WaitFor(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!finished_.wait_for(lock, timeout, [this] { return is_finished_; })) return std::nullopt;
  return status_;
}

void LocalEvent::Abandon() {
  if (origin_ != Origin::kCaller) return;
  Status ignored =
      Finish(Status(Code::kInvalidEvent, "The event is released before anybody signals it."), {});
  static_cast<void>(ignored);
}

base::Result<std::vector<TensorShape>> LocalEvent::OutputShapes() {
  std::lock_guard lock(mutex_);
  return outputs_.shapes;
}

base::Result<std::vector<KeptValue>> LocalEvent::OutputValues() {
  std::lock_guard lock(mutex_);
  return outputs_.kept;
}

void LocalEvent::OnSignal(std::function<void(const Status&)> callback) {
  {
    std::lock_guard lock(mutex_);
    if (!is_finished_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback(status_);
}

}  // namespace onnxifi::abi
