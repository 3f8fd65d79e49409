// SPDX-License-Identifier: Apache-2.0
//
// ForwardedEvent: prefers the plugin's timed wait, which hands over the status of the work with its
// text; a plain ONNXIFI 1.0 plugin has only the plain wait.

#include "onnxifi/plugins/forwarded_event.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>
#include <limits>
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

// What the plugin's callback does with each output. `take` may throw, but not through the plugin.
struct Taking {
  const std::function<Status(const onnxValue& record)>& take;
  Status status;      // the first that is an error
  std::string fault;  // of the plugin, as in Told
  std::exception_ptr exception;
};

void ONNXIFI_ABI Take(void* context, const onnxValue* record) {
  auto& taking = *static_cast<Taking*>(context);
  if (!taking.status.ok() || !taking.fault.empty() || taking.exception != nullptr) return;
  try {
    if (record == nullptr) {
      taking.fault = "gives NULL for a record.";
    } else {
      taking.status = taking.take(*record);
    }
  } catch (...) {
    taking.exception = std::current_exception();
  }
}

// Calls `take` for each output that the run of `event` kept.
Status TakeValues(const PluginCalls& calls, onnxEvent event,
                  const std::function<Status(const onnxValue&)>& take) {
  if (calls.get_run_values == nullptr) return base::Ok();
  Taking taking = {take, base::Ok(), {}, nullptr};
  const onnxStatus status = calls.get_run_values(event, Take, &taking);
  if (taking.exception != nullptr) std::rethrow_exception(taking.exception);
  if (!taking.fault.empty()) {
    return calls.Quarantine("Function onnxGetRunValues of the plugin " + taking.fault);
  }
  ONNXIFI_RETURN_IF_ERROR(calls.ToStatus(status, "onnxGetRunValues"));
  if (taking.status.ok() || taking.status.code() == Code::kNoSystemMemory) return taking.status;
  // The plugin's structures are at fault, not the caller's.
  return {Code::kBackendUnavailable, taking.status.Text()};
}

std::string NameOf(const onnxValue& record) {
  const bool has_name = record.struct_size >= offsetof(onnxValue, name) + sizeof(record.name) &&
                        record.name != nullptr;
  return has_name ? record.name : "";
}

}  // namespace

base::Result<std::vector<abi::KeptValue>> ForwardedEvent::OutputValues() {
  std::vector<abi::KeptValue> values;
  ONNXIFI_RETURN_IF_ERROR(
      TakeValues(owner_->calls(), handle_, [&values](const onnxValue& record) -> Status {
        std::string name = NameOf(record);
        ONNXIFI_ASSIGN_OR_RETURN(tensor::ValueRef value,
                                 abi::CopyValue(record, "Output '" + name + "'"));
        values.push_back({std::move(name), std::move(value)});
        return base::Ok();
      }));
  return values;
}

Status ForwardedEvent::VisitOutputValues(const std::function<void(const onnxValue&)>& visit) {
  return TakeValues(owner_->calls(), handle_, [&visit](const onnxValue& record) -> Status {
    if (abi::IsSound(record)) {
      visit(record);
      return base::Ok();
    }
    // Says what is wrong, or fills up an older structure.
    const std::string name = NameOf(record);
    ONNXIFI_ASSIGN_OR_RETURN(const tensor::ValueRef value,
                             abi::CopyValue(record, "Output '" + name + "'"));
    visit(abi::ValueRecord(name, *value).get());
    return base::Ok();
  });
}

}  // namespace onnxifi::plugins
