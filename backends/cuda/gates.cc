// SPDX-License-Identifier: Apache-2.0
//
// Gates: a gate serves one event after another.

#include "backends/cuda/gates.h"

#include <utility>

namespace onnxifi::cuda {

using base::Code;
using base::Result;
using base::Status;

Result<std::shared_ptr<const Gates::Gate>> Gates::TakeGate() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::shared_ptr<const Gate> gate = std::move(idle_.back());
      idle_.pop_back();
      return gate;
    }
  }
  const Api& api = context_->api();
  ONNXIFI_ASSIGN_OR_RETURN(Handle<void*> word, NewPinned(context_, sizeof(uint32_t)));
  CUstream stream = nullptr;
  ONNXIFI_RETURN_IF_ERROR(context_->Do(
      "make an event", [&] { return api.StreamCreate(&stream, CU_STREAM_NON_BLOCKING); }));
  return std::shared_ptr<const Gate>(
      std::make_shared<Gate>(Gate{std::move(word), {context_, stream, api.StreamDestroy}}));
}

Status Gates::Close(const Gate& gate, CUevent event) const {
  const Api& api = context_->api();
  CUresult waited = CUDA_SUCCESS;
  gate.Set(0);
  Status status = context_->Do("make an event", [&] {
    CUdeviceptr address = 0;
    const CUresult found = api.MemHostGetDevicePointer(&address, gate.word.get(), 0);
    if (found != CUDA_SUCCESS) return found;
    waited = api.StreamWaitValue32(gate.stream.get(), address, 1, CU_STREAM_WAIT_VALUE_GEQ);
    return waited == CUDA_SUCCESS ? api.EventRecord(event, gate.stream.get()) : waited;
  });
  // Nothing may be left that waits.
  if (!status.ok()) gate.Set(1);
  if (waited != CUDA_ERROR_NOT_SUPPORTED) return status;
  return Status(Code::kUnsupportedFenceType, "The device's streams cannot wait for memory.");
}

Result<Gates::Made> Gates::Make() {
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const Gate> gate, TakeGate());
  ONNXIFI_ASSIGN_OR_RETURN(Handle<CUevent> event, NewEvent(context_, CU_EVENT_DISABLE_TIMING));
  ONNXIFI_RETURN_IF_ERROR(Close(*gate, event.get()));
  const std::lock_guard lock(mutex_);
  ++closed_count_;
  return Made{event.Take(), [self = shared_from_this(), gate] { self->Open(gate); }};
}

void Gates::Open(std::shared_ptr<const Gate> gate) {
  gate->Set(1);
  const Status drained = context_->Do(
      "complete an event", [&] { return context_->api().StreamSynchronize(gate->stream.get()); });
  std::vector<CUdeviceptr> free_now;
  {
    const std::lock_guard lock(mutex_);
    if (drained.ok()) idle_.push_back(std::move(gate));
    if (--closed_count_ == 0) free_now = std::exchange(freed_later_, {});
  }
  for (const CUdeviceptr memory : free_now) Free(memory);
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
