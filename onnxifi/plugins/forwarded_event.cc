// SPDX-License-Identifier: Apache-2.0
//
// ForwardedEvent: prefers the plugin's timed wait, which hands over the status of the work with its
// text; a plain ONNXIFI 1.0 plugin has only the plain wait.

#include "onnxifi/plugins/forwarded_event.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "backends/core/abi/value_record.h"

namespace onnxifi::plugins {

using base::Code;
using base::Status;

ForwardedEvent::ForwardedEvent(std::shared_ptr<const PluginBackend> owner, onnxEvent handle)
    : owner_(std::move(owner)), handle_(handle) {}

ForwardedEvent::~ForwardedEvent() { Abandon(); }

void ForwardedEvent::Abandon() {
  if (is_released_.exchange(true)) return;
  static_cast<void>(owner_->calls().functions().release_event(handle_));
}

Status ForwardedEvent::Signal() {
  const PluginCalls& calls = owner_->calls();
  return calls.ToStatus(calls.functions().signal_event(handle_), "onnxSignalEvent");
}

base::Result<bool> ForwardedEvent::IsSignalled() {
  const PluginCalls& calls = owner_->calls();
  onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
  ONNXIFI_RETURN_IF_ERROR(
      calls.ToStatus(calls.functions().get_event_state(handle_, &state), "onnxGetEventState"));
  return state == ONNXIFI_EVENT_STATE_SIGNALLED;
}

Status ForwardedEvent::Wait() {
  const PluginCalls& calls = owner_->calls();
  if (calls.wait_event_for == nullptr) {
    return calls.ToStatus(calls.functions().wait_event(handle_), "onnxWaitEvent");
  }
  // 0 is "no limit", so the answer is there.
  return WaitForPlugin(/*timeout_ms=*/0)
      .value_or(Status(Code::kInternalError,
                       "Plugin '" + calls.plugin_name() +
                           "' returns from a wait without limit before the event is "
                           "signalled."));
}

std::optional<Status> ForwardedEvent::WaitFor(std::chrono::milliseconds timeout) {
  const PluginCalls& calls = owner_->calls();
  if (calls.wait_event_for != nullptr) {
    constexpr int64_t kMax = std::numeric_limits<uint32_t>::max();
    return WaitForPlugin(static_cast<uint32_t>(std::clamp<int64_t>(timeout.count(), 1, kMax)));
  }
  constexpr std::chrono::milliseconds kPollInterval(1);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const auto is_signalled = IsSignalled();
    if (!is_signalled.ok()) return is_signalled.status();
    if (*is_signalled) return Wait();
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(kPollInterval);
  }
}

std::optional<Status> ForwardedEvent::WaitForPlugin(uint32_t timeout_ms) {
  constexpr size_t kMaxMessageBytes = 4096;
  const PluginCalls& calls = owner_->calls();
  onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
  onnxStatus work_status = ONNXIFI_STATUS_SUCCESS;
  // Most runs have nothing to say: not filled.
  std::array<char, kMaxMessageBytes> message;
  message.front() = '\0';
  size_t length = message.size();
  const Status status = calls.ToStatus(
      calls.wait_event_for(handle_, timeout_ms, &state, &work_status, message.data(), &length),
      "onnxWaitEventFor");
  if (!status.ok()) return status;
  if (state != ONNXIFI_EVENT_STATE_SIGNALLED) return std::nullopt;
  if (work_status == ONNXIFI_STATUS_SUCCESS) return base::Ok();
  const size_t text_length = std::min(length > 0 ? length - 1 : 0, kMaxMessageBytes);
  return calls.ToStatus(work_status, "the run",
                        std::string(message.data(), strnlen(message.data(), text_length)));
}

base::Result<std::vector<abi::TensorShape>> ForwardedEvent::OutputShapes() {
  const PluginCalls& calls = owner_->calls();
  Told<abi::TensorShape> shapes;
  if (calls.get_run_output_shapes == nullptr) return std::move(shapes.items);
  const onnxStatus status = calls.get_run_output_shapes(handle_, AppendShape, &shapes);
  ONNXIFI_RETURN_IF_ERROR(shapes.ToStatus(calls, status, "onnxGetRunOutputShapes"));
  return std::move(shapes.items);
}

namespace {

struct Collected {
  std::vector<abi::KeptValue> values;
  Status status;
};

void ONNXIFI_ABI Collect(void* context, const onnxValue* record) {
  auto& collected = *static_cast<Collected*>(context);
  if (!collected.status.ok()) return;
  const std::string name = record->name != nullptr ? record->name : "";
  // Nothing may be thrown through the plugin.
  try {
    auto value = abi::CopyValue(*record, "Output '" + name + "'");
    if (value.ok()) {
      collected.values.push_back({name, *std::move(value)});
    } else {
      collected.status = std::move(value).status();
    }
  } catch (const std::bad_alloc&) {
    collected.status = Status(base::Code::kNoSystemMemory, "There is no memory for an output.");
  }
}

// The plugin's structures are at fault, not the caller's.
Status BlamePlugin(const Status& status) {
  return {
      status.code() == Code::kNoSystemMemory ? Code::kNoSystemMemory : Code::kBackendUnavailable,
      status.Text()};
}

}  // namespace

base::Result<std::vector<abi::KeptValue>> ForwardedEvent::OutputValues() {
  const PluginCalls& calls = owner_->calls();
  Collected collected;
  if (calls.get_run_values == nullptr) return std::move(collected.values);
  ONNXIFI_RETURN_IF_ERROR(
      calls.ToStatus(calls.get_run_values(handle_, Collect, &collected), "onnxGetRunValues"));
  if (!collected.status.ok()) return BlamePlugin(collected.status);
  return std::move(collected.values);
}

namespace {

struct Visitor {
  const std::function<void(const onnxValue&)>& visit;
  Status status;
  std::exception_ptr exception;
};

void ONNXIFI_ABI Visit(void* context, const onnxValue* record) {
  auto& visitor = *static_cast<Visitor*>(context);
  if (!visitor.status.ok() || visitor.exception != nullptr) return;
  // Nothing may be thrown through the plugin.
  try {
    if (abi::IsSound(*record)) {
      visitor.visit(*record);
      return;
    }
    // Says what is wrong, or fills up an older structure.
    const std::string name = record->name != nullptr ? record->name : "";
    const auto value = abi::CopyValue(*record, "Output '" + name + "'");
    if (value.ok()) {
      visitor.visit(abi::ValueRecord(name, **value).get());
    } else {
      visitor.status = value.status();
    }
  } catch (...) {
    visitor.exception = std::current_exception();
  }
}

}  // namespace

Status ForwardedEvent::VisitOutputValues(const std::function<void(const onnxValue&)>& visit) {
  const PluginCalls& calls = owner_->calls();
  if (calls.get_run_values == nullptr) return base::Ok();
  Visitor visitor = {visit, base::Ok(), nullptr};
  const onnxStatus status = calls.get_run_values(handle_, Visit, &visitor);
  if (visitor.exception != nullptr) std::rethrow_exception(visitor.exception);
  ONNXIFI_RETURN_IF_ERROR(calls.ToStatus(status, "onnxGetRunValues"));
  return visitor.status.ok() ? base::Ok() : BlamePlugin(visitor.status);
}

}  // namespace onnxifi::plugins
