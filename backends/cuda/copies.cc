// SPDX-License-Identifier: Apache-2.0
//
// Copies: a chunk's mark is an event.

#include "backends/cuda/copies.h"

#include <string>
#include <utility>

namespace onnxifi::cuda {
namespace {

using base::Result;
using base::Status;

class PinnedChunk final : public device::StagingChunk {
 public:
  PinnedChunk(Handle<void*> memory, Handle<CUevent> done)
      : memory_(std::move(memory)), done_(std::move(done)) {}
  std::byte* memory() override { return static_cast<std::byte*>(memory_.get()); }
  CUevent done() const { return done_.get(); }

 private:
  const Handle<void*> memory_;
  const Handle<CUevent> done_;
};

// MakeChunk makes no others.
CUevent DoneOf(device::StagingChunk& chunk) { return static_cast<PinnedChunk&>(chunk).done(); }

std::string Amount(const char* verb, size_t size_bytes) {
  return std::string(verb) + " " + std::to_string(size_bytes) + " bytes";
}

}  // namespace

Status Copies::ToDevice(const std::byte* from_host, std::byte* to, int64_t size_bytes) {
  const auto bytes = static_cast<size_t>(size_bytes);
  return IsPinned(from_host, size_bytes) ? Upload(from_host, to, bytes)
                                         : staging_.Upload(from_host, to, bytes);
}

Status Copies::ToHost(const std::byte* from, std::byte* to_host, int64_t size_bytes) {
  const auto bytes = static_cast<size_t>(size_bytes);
  return IsPinned(to_host, size_bytes) ? Download(from, to_host, bytes)
                                       : staging_.Download(from, to_host, bytes);
}

bool Copies::IsPinned(const std::byte* host, int64_t size_bytes) const {
  // The driver knows no pageable memory. What is pinned only in part is copied right either way.
  CUmemorytype type{};
  CUresult result = CUDA_SUCCESS;
  static_cast<void>(runtime_.Do("tell what an address is", [&] {
    for (const std::byte* at : {host, host + size_bytes - 1}) {
      if (result != CUDA_SUCCESS) break;
      result = runtime_.api().PointerGetAttribute(static_cast<void*>(&type),
                                                  CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                  reinterpret_cast<uintptr_t>(at));
    }
    return CUDA_SUCCESS;
  }));
  return result == CUDA_SUCCESS;
}

std::unique_ptr<device::StagingChunk> Copies::MakeChunk(size_t size_bytes) {
  Result<Handle<CUevent>> done = NewEvent(runtime_.context(), CU_EVENT_DISABLE_TIMING);
  if (!done.ok()) return nullptr;
  Result<Handle<void*>> memory = NewPinned(runtime_.context(), static_cast<int64_t>(size_bytes));
  if (!memory.ok()) return nullptr;
  return std::make_unique<PinnedChunk>(*std::move(memory), *std::move(done));
}

Status Copies::Upload(const std::byte* from_host, std::byte* to, size_t size_bytes) {
  return runtime_.Do(Amount("upload", size_bytes), [&] {
    return runtime_.api().MemcpyHtoDAsync(ToAddress(to), from_host, size_bytes, runtime_.stream());
  });
}

Status Copies::Download(const std::byte* from, std::byte* to_host, size_t size_bytes) {
  return runtime_.Do(Amount("download", size_bytes), [&] {
    return runtime_.api().MemcpyDtoHAsync(to_host, ToAddress(from), size_bytes, runtime_.stream());
  });
}

Status Copies::Mark(device::StagingChunk& chunk) {
  return runtime_.Do("mark a copy",
                     [&] { return runtime_.api().EventRecord(DoneOf(chunk), runtime_.stream()); });
}

Result<bool> Copies::IsDone(device::StagingChunk& chunk) {
  CUresult result = CUDA_SUCCESS;
  ONNXIFI_RETURN_IF_ERROR(runtime_.Do("look at a copy", [&] {
    result = runtime_.api().EventQuery(DoneOf(chunk));
    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
  }));
  return result == CUDA_SUCCESS;
}

Status Copies::Wait(device::StagingChunk& chunk) {
  return runtime_.Do("wait for a copy",
                     [&] { return runtime_.api().EventSynchronize(DoneOf(chunk)); });
}

}  // namespace onnxifi::cuda
