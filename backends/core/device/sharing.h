// SPDX-License-Identifier: Apache-2.0
//
// Sharing: what a device has in common with callers who use its driver themselves: memory that they
// made, events that either side waits for, and a queue that both put work into. Handles are the
// driver's own, as the interface carries them (a cl_mem, a cl_event).

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_SHARING_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_SHARING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::device {

class Sharing {
 public:
  virtual ~Sharing() = default;

  // What a run does with memory.
  enum class Access : uint8_t { kRead, kWrite };
  // Memory of the caller's as memory of the device, for at least `size_bytes` > 0.
  // INVALID_MEMORY_LOCATION if it is too small, not of this device, or not made for such access.
  // The caller's memory stays as long as the allocation.
  virtual base::Result<std::unique_ptr<Allocation>> ImportMemory(uint64_t handle,
                                                                 int64_t size_bytes,
                                                                 Access access) = 0;

  // The same for memory that another device or process made, behind an opaque file descriptor:
  // `handle` is the address of an onnxOpaqueFd. UNSUPPORTED_MEMORY_TYPE where there is none such.
  virtual base::Result<std::unique_ptr<Allocation>> ImportOpaqueFd(uint64_t /*handle*/,
                                                                   int64_t /*size_bytes*/) {
    return base::Status(base::Code::kUnsupportedMemoryType,
                        "The device takes no memory of opaque file descriptors.");
  }

  // Memory of the host's as memory of the device, for `size_bytes` > 0, to be read or written where
  // it lies. Null where that does not pay or the driver does not take it: what lies there is
  // copied. Any thread. The host's memory stays as long as the allocation.
  virtual std::unique_ptr<Allocation> ImportHostMemory(std::byte* /*memory*/,
                                                       int64_t /*size_bytes*/) {
    return nullptr;
  }

  // Memory on which host and device both work where it lies, the device by way of `handle`, which
  // ImportMemory takes. UNSUPPORTED_MEMORY_TYPE where there is none such, resource codes. The owner
  // may go once nothing that was imported from it is left, and goes before the device.
  struct SharedMemory {
    std::byte* address = nullptr;
    uint64_t handle = 0;
    std::shared_ptr<const void> owner;
  };
  virtual base::Result<SharedMemory> AllocateShared(int64_t size_bytes) = 0;

  // An event of the driver's: its handle, and the value of one that counts.
  struct NativeEvent {
    uint64_t handle = 0;
    uint64_t value = 0;
  };
  using OnDone = std::function<void(const base::Status&)>;
  // Calls `done` once, on any thread, when the driver's event is complete, with
  // BACKEND_UNAVAILABLE if that ended in an error. INVALID_EVENT, and no call, for an event that is
  // not of this device.
  virtual base::Status WhenComplete(const NativeEvent& event, OnDone done) = 0;
  // No event whose owner is the caller alone is looked at any more when this returns: what waits
  // for one is done with BACKEND_UNAVAILABLE. Events that the driver counts references to are their
  // own affair.
  virtual void EndWaits() {}
  // A new event of the driver's, and the function that completes it, to be called once, on any
  // thread, be the device gone by then. The reference behind the handle is the receiver's to
  // release.
  struct NewEvent {
    NativeEvent event;
    OnDone complete;
  };
  virtual base::Result<NewEvent> MakeEvent() = 0;

  // Whether the device's queues put their work into a queue of the caller's.
  virtual bool has_callers_queue() const = 0;
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_SHARING_H_
