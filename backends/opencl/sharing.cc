// SPDX-License-Identifier: Apache-2.0
//
// Sharing: callbacks of events, and user events.

#include "backends/opencl/sharing.h"

#include <dlfcn.h>

#include <memory>
#include <string>
#include <utility>

namespace onnxifi::opencl {
namespace {

using base::Code;
using base::Result;
using base::Status;

template <typename T>
T FromHandle(uint64_t handle) {
  return reinterpret_cast<T>(static_cast<uintptr_t>(handle));
}

// Whoever waits for an event of the driver's; goes with the one call.
struct Waiter {
  Handle<cl_event> event;
  device::Sharing::OnDone done;
};

void CL_CALLBACK Tell(cl_event, cl_int state, void* data) {
  const std::unique_ptr<Waiter> waiter(static_cast<Waiter*>(data));
  waiter->done(state >= 0 ? base::Ok()
                          : Status(Code::kBackendUnavailable,
                                   "The OpenCL event to wait for ended in error " +
                                       std::to_string(state) + "."));
}

// The driver calls back at a time of its own; by then this library must still be there.
void StayLoaded() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(&Tell), &info) == 0) return;
  // A program that is its own image needs nothing of this, and gets null.
  static_cast<void>(dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
}

}  // namespace

Result<std::unique_ptr<device::Allocation>> Sharing::ImportMemory(uint64_t handle,
                                                                  int64_t size_bytes,
                                                                  Access access) {
  return memory_.Import(FromHandle<cl_mem>(handle), size_bytes,
                        access == Access::kWrite ? CL_MEM_READ_ONLY : CL_MEM_WRITE_ONLY);
}

Result<device::Sharing::SharedMemory> Sharing::AllocateShared(int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(Memory::Shared made, memory_.AllocateShared(size_bytes));
  return SharedMemory{made.address, reinterpret_cast<uintptr_t>(made.buffer),
                      std::move(made.owner)};
}

Status Sharing::WhenComplete(const NativeEvent& native, OnDone done) {
  const Api& api = runtime_.api();
  auto* event = FromHandle<cl_event>(native.handle);
  if (event == nullptr) return Status(Code::kInvalidEvent, "The OpenCL event is NULL.");
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  if (api.GetEventInfo(event, CL_EVENT_CONTEXT, sizeof(context), static_cast<void*>(&context),
                       nullptr) != CL_SUCCESS ||
      api.GetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(queue), static_cast<void*>(&queue),
                       nullptr) != CL_SUCCESS) {
    return Status(Code::kInvalidEvent, "The handle is no event of OpenCL.");
  }
  if (context != runtime_.context()) {
    return Status(Code::kInvalidEvent,
                  "The OpenCL event belongs to another context than the backend's.");
  }
  StayLoaded();
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api.RetainEvent(event), "share an event"));
  auto waiter =
      std::make_unique<Waiter>(Waiter{Handle<cl_event>(event, api.ReleaseEvent), std::move(done)});
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(api.SetEventCallback(event, CL_COMPLETE, Tell, static_cast<void*>(waiter.get())),
               "wait for an event"));
  static_cast<void>(waiter.release());  // Tell has it
  // An event of the caller's own making is in no queue.
  if (queue == nullptr) return base::Ok();
  return ToStatus(api.Flush(queue), "flush a queue");
}

Result<device::Sharing::NewEvent> Sharing::MakeEvent() {
  const Api& api = runtime_.api();
  cl_int result = CL_SUCCESS;
  cl_event event = api.CreateUserEvent(runtime_.context(), &result);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "make an event"));
  Handle<cl_event> callers(event, api.ReleaseEvent);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api.RetainEvent(event), "share an event"));
  // Functions are copied: the backend may be gone when the event is signalled.
  const auto set = api.SetUserEventStatus;
  const auto release = api.ReleaseEvent;
  NewEvent made{{static_cast<uint64_t>(reinterpret_cast<uintptr_t>(event))},
                [event, set, release](const Status& status) {
                  // Any negative number is an error.
                  set(event, status.ok() ? CL_COMPLETE : CL_INVALID_OPERATION);
                  release(event);
                }};
  static_cast<void>(callers.Take());
  return made;
}

}  // namespace onnxifi::opencl
