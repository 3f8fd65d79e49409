// SPDX-License-Identifier: Apache-2.0
//
// Gates: a gate serves one event after another.

#include "backends/cuda/gates.h"

#include <atomic>
#include <utility>

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr const char* kMaking = "make an event";

}  // namespace

Gates::~Gates() {
  for (const Gate& gate : idle_) Destroy(gate);
}

void Gates::Destroy(const Gate& gate) const {
  const Api& api = context_->api();
  static_cast<void>(context_->Do("release an event", [&] {
    if (gate.stream != nullptr) static_cast<void>(api.StreamDestroy(gate.stream));
    return gate.word != nullptr ? api.MemFreeHost(gate.word) : CUDA_SUCCESS;
  }));
}

Result<Gates::Gate> Gates::TakeGate() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      const Gate gate = idle_.back();
      idle_.pop_back();
      return gate;
    }
  }
  const Api& api = context_->api();
  Gate gate;
  const Status status = context_->Do(kMaking, [&] {
    void* memory = nullptr;
    CUresult result = api.MemHostAlloc(&memory, sizeof(*gate.word),
                                       CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result != CUDA_SUCCESS) return result;
    gate.word = static_cast<uint32_t*>(memory);
    result = api.MemHostGetDevicePointer(&gate.address, memory, 0);
    if (result != CUDA_SUCCESS) return result;
    return api.StreamCreate(&gate.stream, CU_STREAM_NON_BLOCKING);
  });
  if (status.ok()) return gate;
  Destroy(gate);
  return status;
}

Result<Gates::Made> Gates::Make() {
  ONNXIFI_ASSIGN_OR_RETURN(const Gate gate, TakeGate());
  Result<Made> made = Close(gate);
  if (!made.ok()) Destroy(gate);
  return made;
}

Result<Gates::Made> Gates::Close(const Gate& gate) {
  const Api& api = context_->api();
  std::atomic_ref(*gate.word).store(0);
  CUevent event = nullptr;
  ONNXIFI_RETURN_IF_ERROR(
      context_->Do(kMaking, [&] { return api.EventCreate(&event, CU_EVENT_DISABLE_TIMING); }));
  CUresult waited = CUDA_SUCCESS;
  Status status = context_->Do(kMaking, [&] {
    waited = api.StreamWaitValue32(gate.stream, gate.address, 1, CU_STREAM_WAIT_VALUE_GEQ);
    if (waited != CUDA_SUCCESS) return waited;
    const CUresult recorded = api.EventRecord(event, gate.stream);
    // Nothing may be left that waits.
    if (recorded != CUDA_SUCCESS) std::atomic_ref(*gate.word).store(1);
    return recorded;
  });
  if (waited == CUDA_ERROR_NOT_SUPPORTED) {
    status = Status(Code::kUnsupportedFenceType, "The device's streams cannot wait for memory.");
  }
  if (!status.ok()) {
    static_cast<void>(context_->Do("release an event", [&] { return api.EventDestroy(event); }));
    return status;
  }
  {
    const std::lock_guard lock(mutex_);
    ++closed_count_;
  }
  return Made{event, [self = shared_from_this(), gate] { self->Open(gate); }};
}

void Gates::Open(const Gate& gate) {
  const Api& api = context_->api();
  std::atomic_ref(*gate.word).store(1);
  const Status drained =
      context_->Do("complete an event", [&] { return api.StreamSynchronize(gate.stream); });
  std::vector<CUdeviceptr> free_now;
  {
    const std::lock_guard lock(mutex_);
    if (drained.ok()) idle_.push_back(gate);
    if (--closed_count_ == 0) free_now = std::exchange(freed_later_, {});
  }
  if (!drained.ok()) Destroy(gate);
  for (const CUdeviceptr memory : free_now) {
    static_cast<void>(context_->Do("free memory", [&] { return api.MemFree(memory); }));
  }
}

void Gates::Free(CUdeviceptr memory) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_count_ > 0) {
      freed_later_.push_back(memory);
      return;
    }
  }
  static_cast<void>(context_->Do("free memory", [&] { return context_->api().MemFree(memory); }));
}

}  // namespace onnxifi::cuda
