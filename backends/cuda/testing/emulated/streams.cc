// SPDX-License-Identifier: Apache-2.0
//
// Functions of the emulated driver: streams, events, waits on memory, and host
// functions.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "backends/cuda/testing/emulated/objects.h"

namespace emulated {
namespace {

Stream* SpecialStream(Context* context, bool is_of_thread) {
  Driver& d = D();
  if (is_of_thread) {
    thread_local std::map<Context*, std::weak_ptr<Stream>> streams;
    if (const std::shared_ptr<Stream> stream = streams[context].lock()) return stream.get();
    auto stream = std::make_shared<Stream>();
    stream->context = context;
    stream->number = d.next_number++;
    streams[context] = stream;
    d.streams[stream.get()] = stream;
    return stream.get();
  }
  std::shared_ptr<Stream>& stream = d.legacy_streams[context];
  if (stream == nullptr) {
    stream = std::make_shared<Stream>();
    stream->context = context;
    stream->is_legacy = true;
    stream->number = d.next_number++;
  }
  return stream.get();
}

// What memory holds, as a device reads it: at once and never from a register.
uint64_t Read(uintptr_t address, size_t unit_bytes) {
  if (unit_bytes == 4) {
    return std::atomic_ref(*reinterpret_cast<uint32_t*>(address)).load(std::memory_order_acquire);
  }
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(address)).load(std::memory_order_acquire);
}

bool IsMet(uint64_t held, uint64_t value, unsigned flags, size_t unit_bytes) {
  switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return unit_bytes == 4 ? static_cast<int32_t>(held - value) >= 0
                             : static_cast<int64_t>(held - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return held == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (held & value) != 0;
    default:
      return (~(held | value) & (unit_bytes == 4 ? UINT32_MAX : UINT64_MAX)) != 0;
  }
}

CUresult WaitValue(CUstream handle, CUdeviceptr address, uint64_t value, unsigned flags,
                   size_t unit_bytes) {
  EMULATED_STREAM(stream, handle);
  if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if ((flags & ~3u) != 0 || address % unit_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  std::string fault = CheckRange(address, unit_bytes, "A wait on memory");
  if (!fault.empty()) return Misuse(CUDA_ERROR_INVALID_VALUE, std::move(fault));
  Action action;
  action.is_ready = [=] {
    // Memory that was freed is waited for no more.
    return FindMemory(address) == nullptr ||
           IsMet(Read(address, unit_bytes), value, flags, unit_bytes);
  };
  return Enqueue(stream, std::move(action));
}

CUresult WriteValue(CUstream handle, CUdeviceptr address, uint64_t value, unsigned flags,
                    size_t unit_bytes) {
  EMULATED_STREAM(stream, handle);
  if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if ((flags & ~1u) != 0 || address % unit_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  std::string fault = CheckRange(address, unit_bytes, "A write of one value");
  if (!fault.empty()) return Misuse(CUDA_ERROR_INVALID_VALUE, std::move(fault));
  Action action;
  action.run = [=]() -> std::string {
    if (unit_bytes == 4) {
      std::atomic_ref(*reinterpret_cast<uint32_t*>(address)).store(static_cast<uint32_t>(value));
    } else {
      std::atomic_ref(*reinterpret_cast<uint64_t*>(address)).store(value);
    }
    return std::string();
  };
  return Enqueue(stream, std::move(action));
}

}  // namespace

Stream* FindStream(CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return SpecialStream(Current(), false);
  if (handle == CU_STREAM_PER_THREAD) return SpecialStream(Current(), true);
  return Find(D().streams, handle);
}

}  // namespace emulated

using namespace emulated;

namespace {
#define EMULATED_EVENT(name, handle)            \
  Event* const name = Find(D().events, handle); \
  if (name == nullptr) return Misuse(CUDA_ERROR_INVALID_HANDLE, "An event is none.")

CUresult MakeStream(CUstream* made, unsigned flags, int priority) {
  if (made == nullptr || (flags & ~1u) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto stream = std::make_shared<Stream>();
  stream->context = Current();
  stream->flags = flags;
  stream->priority = priority;
  stream->number = D().next_number++;
  *made = reinterpret_cast<CUstream>(stream.get());
  D().streams[stream.get()] = std::move(stream);
  return CUDA_SUCCESS;
}
}  // namespace

CUresult CUDAAPI cuStreamCreate(CUstream* made, unsigned int flags) {
  EMULATED_CALL(cuStreamCreate, kWithContext);
  return MakeStream(made, flags, 0);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* made, unsigned int flags, int priority) {
  EMULATED_CALL(cuStreamCreateWithPriority, kWithContext);
  return MakeStream(made, flags, priority);
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream handle) {
  EMULATED_CALL(cuStreamDestroy_v2, kWithContext);
  const auto found = D().streams.find(handle);
  if (found == D().streams.end()) return Misuse(CUDA_ERROR_INVALID_HANDLE, "A stream is none.");
  if (found->second->capture != nullptr) found->second->capture->is_invalid = true;
  // What it holds is carried out all the same.
  if (!found->second->operations.empty()) D().ending_streams.push_back(found->second);
  D().streams.erase(found);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  EMULATED_CALL(cuStreamSynchronize, kWithContext);
  EMULATED_STREAM(stream, handle);
  if (stream->capture != nullptr) {
    stream->capture->is_invalid = true;
    return Misuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                  "A stream that is captured is waited for.");
  }
  const std::shared_ptr<Completion> last = stream->last;
  Context* const context = stream->context;
  if (stream->is_legacy) {
    WaitForAll(call.lock(), context);
  } else if (last != nullptr) {
    WaitUntil(call.lock(), [last] { return last->is_done; });
  }
  return context->lost;
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  EMULATED_CALL(cuStreamQuery, kWithContext);
  EMULATED_STREAM(stream, handle);
  if (stream->capture != nullptr) {
    stream->capture->is_invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return stream->operations.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  EMULATED_CALL(cuStreamGetFlags, kWithContext);
  EMULATED_STREAM(stream, handle);
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int* priority) {
  EMULATED_CALL(cuStreamGetPriority, kWithContext);
  EMULATED_STREAM(stream, handle);
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetId(CUstream handle, unsigned long long* id) {
  EMULATED_CALL(cuStreamGetId, kWithContext);
  EMULATED_STREAM(stream, handle);
  *id = stream->number;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* context) {
  EMULATED_CALL(cuStreamGetCtx, kWithContext);
  EMULATED_STREAM(stream, handle);
  *context = reinterpret_cast<CUcontext>(stream->context);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetDevice(CUstream handle, CUdevice* device) {
  EMULATED_CALL(cuStreamGetDevice, kWithContext);
  EMULATED_STREAM(stream, handle);
  *device = stream->context->device;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  EMULATED_CALL(cuLaunchHostFunc, kWithContext);
  EMULATED_STREAM(stream, handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Action action;
  action.type = CU_GRAPH_NODE_TYPE_HOST;
  action.run = [=]() -> std::string {
    function(data);
    const std::lock_guard lock(D().mutex);
    D().clock += D().function_time;
    return std::string();
  };
  return Enqueue(stream, std::move(action));
}

CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                        unsigned int flags) {
  EMULATED_CALL(cuStreamWaitValue32_v2, kWithContext);
  return WaitValue(stream, address, value, flags, 4);
}
CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                        unsigned int flags) {
  EMULATED_CALL(cuStreamWaitValue64_v2, kWithContext);
  return WaitValue(stream, address, value, flags, 8);
}
CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                         unsigned int flags) {
  EMULATED_CALL(cuStreamWriteValue32_v2, kWithContext);
  return WriteValue(stream, address, value, flags, 4);
}
CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                         unsigned int flags) {
  EMULATED_CALL(cuStreamWriteValue64_v2, kWithContext);
  return WriteValue(stream, address, value, flags, 8);
}

// ---- events

CUresult CUDAAPI cuEventCreate(CUevent* made, unsigned int flags) {
  EMULATED_CALL(cuEventCreate, kWithContext);
  if (made == nullptr || (flags & ~7u) != 0) return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_shared<Event>();
  event->context = Current();
  event->flags = flags;
  *made = reinterpret_cast<CUevent>(event.get());
  D().events[event.get()] = std::move(event);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent handle) {
  EMULATED_CALL(cuEventDestroy_v2, kWithContext);
  EMULATED_EVENT(event, handle);
  (void)event;
  D().events.erase(handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent handle, CUstream stream_handle) {
  EMULATED_CALL(cuEventRecord, kWithContext);
  EMULATED_EVENT(event, handle);
  EMULATED_STREAM(stream, stream_handle);
  if (event->context != stream->context) {
    return Misuse(CUDA_ERROR_INVALID_HANDLE,
                  "An event is recorded in a stream of another context.");
  }
  if (stream->capture != nullptr) {
    if (stream->capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture = stream->capture;
    event->capture_after = stream->capture_after;
    return CUDA_SUCCESS;
  }
  auto completion = std::make_shared<Completion>();
  const CUresult result = Enqueue(stream, Action(), nullptr, completion);
  if (result != CUDA_SUCCESS) return result;
  event->capture = nullptr;
  event->recorded = std::move(completion);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
  EMULATED_CALL(cuEventQuery, kWithContext);
  EMULATED_EVENT(event, handle);
  if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  return event->recorded == nullptr || event->recorded->is_done ? CUDA_SUCCESS
                                                                : CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  EMULATED_CALL(cuEventSynchronize, kWithContext);
  EMULATED_EVENT(event, handle);
  if (event->capture != nullptr) return CUDA_ERROR_CAPTURED_EVENT;
  Context* const context = event->context;
  const std::shared_ptr<Completion> recorded = event->recorded;
  if (recorded != nullptr) WaitUntil(call.lock(), [recorded] { return recorded->is_done; });
  return context->lost;
}

CUresult CUDAAPI cuEventElapsedTime_v2(float* ms, CUevent first, CUevent second) {
  EMULATED_CALL(cuEventElapsedTime_v2, kWithContext);
  EMULATED_EVENT(begin, first);
  EMULATED_EVENT(end, second);
  if (ms == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const Event* const event : {begin, end}) {
    if ((event->flags & CU_EVENT_DISABLE_TIMING) != 0 || event->recorded == nullptr) {
      return Misuse(CUDA_ERROR_INVALID_HANDLE, "The time of an event without a time is asked for.");
    }
  }
  if (!begin->recorded->is_done || !end->recorded->is_done) return CUDA_ERROR_NOT_READY;
  *ms =
      std::chrono::duration<float, std::milli>(end->recorded->time - begin->recorded->time).count();
  return CUDA_SUCCESS;
}

// The older function, which drivers before 12.8 have alone.
#undef cuEventElapsedTime
extern "C" CUresult CUDAAPI cuEventElapsedTime(float* ms, CUevent first, CUevent second) {
  return cuEventElapsedTime_v2(ms, first, second);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags) {
  EMULATED_CALL(cuStreamWaitEvent, kWithContext);
  EMULATED_STREAM(stream, stream_handle);
  EMULATED_EVENT(event, handle);
  if ((flags & ~1u) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (event->capture == nullptr) {
    if (stream->capture != nullptr) {
      if (event->recorded == nullptr) return CUDA_SUCCESS;
      stream->capture->is_invalid = true;
      return Misuse(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                    "A stream that is captured waits for an event that is not.");
    }
    if (event->recorded == nullptr) return CUDA_SUCCESS;
    return Enqueue(stream, Action(), event->recorded);
  }
  if (event->capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (event->capture->origin == nullptr) {
    return Misuse(CUDA_ERROR_CAPTURED_EVENT,
                  "A stream waits for an event of a capture that has ended.");
  }
  if (stream->is_legacy) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  if (stream->capture != nullptr && stream->capture != event->capture) {
    stream->capture->is_invalid = event->capture->is_invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  stream->capture = event->capture;
  for (Node* const node : event->capture_after) {
    if (std::find(stream->capture_after.begin(), stream->capture_after.end(), node) ==
        stream->capture_after.end()) {
      stream->capture_after.push_back(node);
    }
  }
  return CUDA_SUCCESS;
}
