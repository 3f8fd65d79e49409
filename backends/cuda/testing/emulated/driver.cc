// SPDX-License-Identifier: Apache-2.0
//
// The emulated driver's heart: what every call does first, and who carries out what streams hold.
// Whoever waits carries out operations himself; a thread of the driver does so where nobody waits,
// and starts late, so that a program that forgets to wait finds its results missing.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "backends/cuda/testing/emulated/control.h"
#include "backends/cuda/testing/emulated/objects.h"

namespace emulated {
namespace {

constexpr auto kPoll = std::chrono::microseconds(100);
constexpr auto kGrace = std::chrono::microseconds(300);

thread_local std::vector<Context*> the_contexts;
thread_local bool is_in_operation = false;

struct Ready {
  std::shared_ptr<Stream> stream;
  Operation* operation = nullptr;
};

bool IsReady(const Operation& operation) {
  for (const auto& completion : operation.after) {
    if (!completion->is_done) return false;
  }
  return operation.action.is_ready == nullptr || operation.action.is_ready();
}

std::vector<std::shared_ptr<Stream>> AllStreams() {
  Driver& d = D();
  std::vector<std::shared_ptr<Stream>> streams = d.ending_streams;
  for (const auto& [handle, stream] : d.streams) streams.push_back(stream);
  for (const auto& [context, stream] : d.legacy_streams) streams.push_back(stream);
  return streams;
}

// The oldest operation that nothing holds back.
Ready FindReady() {
  Ready ready;
  for (const std::shared_ptr<Stream>& stream : AllStreams()) {
    if (stream->is_busy || stream->operations.empty()) continue;
    Operation& operation = stream->operations.front();
    if (ready.operation != nullptr && ready.operation->number < operation.number) continue;
    if (IsReady(operation)) ready = {stream, &operation};
  }
  return ready;
}

bool RunNext(std::unique_lock<std::mutex>& lock) {
  Driver& d = D();
  const Ready ready = FindReady();
  if (ready.operation == nullptr) return false;
  Stream& stream = *ready.stream;
  stream.is_busy = true;
  Context* const context = stream.context;
  std::string fault;
  if (ready.operation->action.run != nullptr && context->lost == CUDA_SUCCESS) {
    lock.unlock();
    {
      const std::lock_guard execution(d.execution);
      is_in_operation = true;
      fault = ready.operation->action.run();
      is_in_operation = false;
    }
    lock.lock();
  }
  if (!fault.empty()) context->lost = Misuse(CUDA_ERROR_ILLEGAL_ADDRESS, fault);
  stream.is_busy = false;
  stream.operations.front().completion->is_done = true;
  stream.operations.front().completion->time = d.has_clock() ? d.clock : Clock::now();
  stream.operations.pop_front();
  std::erase_if(d.ending_streams, [](const auto& ending) { return ending->operations.empty(); });
  d.changed.notify_all();
  return true;
}

bool IsIdle() {
  const std::vector<std::shared_ptr<Stream>> streams = AllStreams();
  return std::all_of(streams.begin(), streams.end(),
                     [](const auto& stream) { return stream->operations.empty(); });
}

void Work() {
  Driver& d = D();
  std::unique_lock lock(d.mutex);
  for (;;) {
    if (IsIdle()) {
      d.changed.wait(lock);
      continue;
    }
    lock.unlock();
    std::this_thread::sleep_for(kGrace);
    lock.lock();
    while (RunNext(lock)) {
    }
  }
}

std::string BaseName(std::string name) {
  const size_t end = name.rfind("_v");
  if (end != std::string::npos && end + 3 == name.size()) name.erase(end);
  return name;
}

// cuda.h says of these that the process has to end, or the context.
bool EndsContext(CUresult result) {
  switch (static_cast<int>(result)) {
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case 226:  // CUDA_ERROR_CONTAINED
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case 721:  // CUDA_ERROR_TENSOR_MEMORY_LEAK
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case 911:  // CUDA_ERROR_EXTERNAL_DEVICE
      return true;
    default:
      return false;
  }
}

}  // namespace

Driver& D() {
  // Never destroyed: its thread may outlive what the process destroys at its end.
  static auto* const driver = new Driver;
  return *driver;
}

Call::Call(const char* function, Kind kind) : lock_(D().mutex) {
  Driver& d = D();
  const std::string name = BaseName(function);
  ++d.calls[name];
  if (is_in_operation && kind != kAnytime) {
    result_ = Misuse(CUDA_ERROR_NOT_PERMITTED, name + " is called by a host function of a stream.");
    return;
  }
  const auto found = d.faults.find(name);
  if (found != d.faults.end()) {
    Fault& fault = found->second;
    if (fault.calls_before > 0) {
      --fault.calls_before;
    } else if (fault.count != 0) {
      if (fault.count > 0) --fault.count;
      Context* const current = Current();
      if (current != nullptr && EndsContext(fault.result)) current->lost = fault.result;
      result_ = fault.result;
      return;
    }
  }
  if (kind == kAnytime) return;
  // The driver does not survive fork().
  if (!d.is_initialized || d.process != getpid()) {
    result_ = CUDA_ERROR_NOT_INITIALIZED;
    return;
  }
  Context* const current = Current();
  if (kind != kWithContext) return;
  if (current == nullptr) {
    result_ = Misuse(CUDA_ERROR_INVALID_CONTEXT, name + " is called without a context.");
  } else {
    result_ = current->lost;
  }
}

CUresult Misuse(CUresult result, std::string sentence) {
  std::fprintf(stderr, "Emulated GPU: %s\n", sentence.c_str());
  D().misuses.push_back(std::move(sentence));
  return result;
}

std::vector<Context*>& ContextStack() { return the_contexts; }

Context* Current() {
  if (the_contexts.empty() || the_contexts.back() == nullptr) return nullptr;
  return Find(D().contexts, the_contexts.back());
}

void SetCurrent(Context* context) {
  if (the_contexts.empty()) {
    the_contexts.push_back(context);
  } else {
    the_contexts.back() = context;
  }
}

CUresult Enqueue(Stream* stream, Action action, std::shared_ptr<Completion> awaited,
                 std::shared_ptr<Completion> completion) {
  Driver& d = D();
  if (stream->capture != nullptr) {
    if (stream->capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    auto node = std::make_shared<Node>();
    node->action = std::move(action);
    node->after = stream->capture_after;
    stream->capture_after = {node.get()};
    stream->capture->graph->nodes.push_back(std::move(node));
    return CUDA_SUCCESS;
  }
  Operation operation;
  operation.action = std::move(action);
  if (awaited != nullptr) operation.after.push_back(std::move(awaited));
  operation.completion =
      completion != nullptr ? std::move(completion) : std::make_shared<Completion>();
  operation.number = d.next_number++;
  // The legacy stream and the blocking ones of its context wait for each other.
  if (stream->is_legacy) {
    for (const auto& [handle, other] : d.streams) {
      if (other->context != stream->context || (other->flags & CU_STREAM_NON_BLOCKING) != 0)
        continue;
      if (other->capture != nullptr) {
        other->capture->is_invalid = true;
        return Misuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                      "Work of the legacy stream would wait for a stream that is captured.");
      }
      if (other->last != nullptr) operation.after.push_back(other->last);
    }
  } else if ((stream->flags & CU_STREAM_NON_BLOCKING) == 0) {
    const auto legacy = d.legacy_streams.find(stream->context);
    if (legacy != d.legacy_streams.end() && legacy->second->last != nullptr) {
      operation.after.push_back(legacy->second->last);
    }
  }
  stream->last = operation.completion;
  stream->operations.push_back(std::move(operation));
  if (!d.has_worker) {
    d.has_worker = true;
    std::thread(Work).detach();
  }
  d.changed.notify_all();
  return CUDA_SUCCESS;
}

void WaitUntil(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_done) {
  while (!is_done()) {
    if (!RunNext(lock)) D().changed.wait_for(lock, kPoll);
  }
}

void WaitForAll(std::unique_lock<std::mutex>& lock, const Context* context) {
  WaitUntil(lock, [context] {
    for (const std::shared_ptr<Stream>& stream : AllStreams()) {
      if (context != nullptr && stream->context != context) continue;
      if (!stream->operations.empty()) return false;
    }
    return true;
  });
}

CUstreamCaptureMode& ThreadCaptureMode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

UserObject::~UserObject() {
  std::thread([destroy = destroy, data = data] {
    is_in_operation = true;
    destroy(data);
  }).detach();
}

CUresult CheckNoCapture() {
  const CUstreamCaptureMode own = ThreadCaptureMode();
  if (own == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  for (const auto& [handle, stream] : D().streams) {
    if (stream->capture == nullptr) continue;
    const CUstreamCaptureMode mode = stream->capture->mode;
    if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool is_local = stream->capture->thread == std::this_thread::get_id();
    if (!is_local && (mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
                      own == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)) {
      continue;
    }
    stream->capture->is_invalid = true;
    return Misuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                  "A call that no graph can hold is made while a stream is captured.");
  }
  return CUDA_SUCCESS;
}

}  // namespace emulated

using emulated::D;

#define EMULATED_EXPORT extern "C" __attribute__((visibility("default")))

EMULATED_EXPORT const char* emulated_function(int number) {
  const std::lock_guard lock(D().mutex);
  for (const auto& [name, count] : D().calls) {
    if (number-- == 0) return name.c_str();
  }
  return nullptr;
}

EMULATED_EXPORT void emulated_fail(const char* function, int result, int call, int count) {
  const std::lock_guard lock(D().mutex);
  D().faults[function] = {static_cast<CUresult>(result), call, count};
}

EMULATED_EXPORT void emulated_hide(const char* function) {
  const std::lock_guard lock(D().mutex);
  D().hidden.insert(function);
}

EMULATED_EXPORT void emulated_recover(void) {
  const std::lock_guard lock(D().mutex);
  D().faults.clear();
  D().hidden.clear();
  for (auto& [name, count] : D().calls) count = 0;
  for (const auto& [handle, context] : D().contexts) context->lost = CUDA_SUCCESS;
}

EMULATED_EXPORT int emulated_call_count(const char* function) {
  const std::lock_guard lock(D().mutex);
  const auto found = D().calls.find(function);
  return found == D().calls.end() ? 0 : found->second;
}

EMULATED_EXPORT const char* emulated_misuse(int number) {
  const std::lock_guard lock(D().mutex);
  const auto index = static_cast<size_t>(number);
  return index < D().misuses.size() ? D().misuses[index].c_str() : nullptr;
}

EMULATED_EXPORT void emulated_forget(void) {
  const std::lock_guard lock(D().mutex);
  D().misuses.clear();
}

EMULATED_EXPORT int emulated_live(const char* kind) {
  const emulated::Driver& d = D();
  const std::lock_guard lock(D().mutex);
  const std::string name(kind);
  if (name == "memory" || name == "pinned") {
    return static_cast<int>(std::count_if(d.memory.begin(), d.memory.end(), [&](const auto& entry) {
      return entry.second.is_host == (name == "pinned");
    }));
  }
  const size_t count = name == "stream"        ? d.streams.size()
                       : name == "event"       ? d.events.size()
                       : name == "module"      ? d.modules.size()
                       : name == "graph"       ? d.graphs.size()
                       : name == "executable"  ? d.executables.size()
                       : name == "user object" ? d.user_objects.size()
                                               : d.contexts.size();
  return static_cast<int>(count);
}

EMULATED_EXPORT long long emulated_launch_count(void) {
  const std::lock_guard lock(D().mutex);
  return D().launch_count;
}

EMULATED_EXPORT void emulated_set_clock(int kernel_us, int function_us) {
  const std::lock_guard lock(D().mutex);
  D().kernel_time = std::chrono::microseconds(kernel_us);
  D().function_time = std::chrono::microseconds(function_us);
}

EMULATED_EXPORT void emulated_run_twice(int is_on) {
  const std::lock_guard lock(D().mutex);
  D().runs_twice = is_on != 0;
}
