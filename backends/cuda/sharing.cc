// SPDX-License-Identifier: Apache-2.0
//
// Sharing: the driver is asked what an address is.

#include "backends/cuda/sharing.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "backends/cuda/memory.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;

// As of what cuMemAlloc gives; kernels read whole vectors.
constexpr uint64_t kAlignment = 16;

Status Unfit(std::string sentence) {
  return Status(Code::kInvalidMemoryLocation, std::move(sentence));
}

std::string Hexadecimal(uint64_t address) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

}  // namespace

Status Sharing::CheckAddress(CUdeviceptr address, int64_t size_bytes) const {
  const std::string named = "The CUDA address " + Hexadecimal(address);
  if (address == 0) return Unfit("The CUDA address is NULL.");
  if (address % kAlignment != 0) {
    return Unfit(named + " is no multiple of " + std::to_string(kAlignment) + ".");
  }
  const Api& api = runtime_.api();
  CUresult result = CUDA_SUCCESS;
  const auto ask = [&](CUpointer_attribute attribute, auto& value) {
    return runtime_.Do("tell what an address is", [&] {
      result = api.PointerGetAttribute(static_cast<void*>(&value), attribute, address);
      return result == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : result;
    });
  };
  CUmemorytype type{};
  ONNXIFI_RETURN_IF_ERROR(ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, type));
  if (result == CUDA_ERROR_INVALID_VALUE) return Unfit(named + " is no memory of CUDA's.");
  unsigned is_managed = 0;
  int ordinal = 0;
  CUdeviceptr start = 0;
  size_t range_bytes = 0;
  ONNXIFI_RETURN_IF_ERROR(ask(CU_POINTER_ATTRIBUTE_IS_MANAGED, is_managed));
  ONNXIFI_RETURN_IF_ERROR(ask(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ordinal));
  if (is_managed != 0) {
    return Unfit(named + " is managed memory, which moves between host and device.");
  }
  if (type != CU_MEMORYTYPE_DEVICE) {
    return Unfit(named + " is memory of the host; bind it as ONNXIFI_MEMORY_TYPE_CPU.");
  }
  if (ordinal != runtime_.info().index) {
    return Unfit(named + " lies on device " + std::to_string(ordinal) + "; the backend is device " +
                 std::to_string(runtime_.info().index) + ".");
  }
  ONNXIFI_RETURN_IF_ERROR(ask(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, start));
  ONNXIFI_RETURN_IF_ERROR(ask(CU_POINTER_ATTRIBUTE_RANGE_SIZE, range_bytes));
  const uint64_t available_bytes = start + range_bytes - address;
  if (available_bytes < static_cast<uint64_t>(size_bytes)) {
    return Unfit("Behind CUDA address " + Hexadecimal(address) + " are " +
                 std::to_string(available_bytes) + " bytes; the tensor needs " +
                 std::to_string(size_bytes) + ".");
  }
  return base::Ok();
}

Result<std::unique_ptr<device::Allocation>> Sharing::ImportMemory(uint64_t handle,
                                                                  int64_t size_bytes,
                                                                  Access /*access*/) {
  const auto address = static_cast<CUdeviceptr>(handle);
  int64_t shared_bytes = -1;
  {
    const std::lock_guard lock(mutex_);
    const auto found = shared_.find(address);
    if (found != shared_.end()) shared_bytes = found->second;
  }
  if (shared_bytes < 0) {
    ONNXIFI_RETURN_IF_ERROR(CheckAddress(address, size_bytes));
  } else if (shared_bytes < size_bytes) {
    return Unfit("The shared memory has " + std::to_string(shared_bytes) +
                 " bytes; the tensor needs " + std::to_string(size_bytes) + ".");
  }
  return CallersMemory(address, size_bytes);
}

Result<device::Sharing::SharedMemory> Sharing::AllocateShared(int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(Handle<void*> pinned,
                           NewPinned(runtime_.context(), std::max<int64_t>(size_bytes, 1)));
  auto* const memory = static_cast<std::byte*>(pinned.get());
  CUdeviceptr address = 0;
  ONNXIFI_RETURN_IF_ERROR(runtime_.Do("map pinned memory", [&] {
    return runtime_.api().MemHostGetDevicePointer(&address, pinned.get(), 0);
  }));
  const std::lock_guard lock(mutex_);
  shared_[address] = size_bytes;
  auto owned = std::make_shared<Handle<void*>>(std::move(pinned));
  return SharedMemory{memory, address, std::shared_ptr<const void>(memory, [=, this](const void*) {
                        const std::lock_guard forgetting(mutex_);
                        shared_.erase(address);
                        *owned = {};
                      })};
}

Status Sharing::WhenComplete(const NativeEvent& event, OnDone done) {
  return waiter_.WhenComplete(reinterpret_cast<CUevent>(static_cast<uintptr_t>(event.handle)),
                              std::move(done));
}

Result<device::Sharing::NewEvent> Sharing::MakeEvent() {
  ONNXIFI_ASSIGN_OR_RETURN(Gates::Made made, gates_->Make());
  return NewEvent{{static_cast<uint64_t>(reinterpret_cast<uintptr_t>(made.event))},
                  [complete = std::move(made.complete)](const Status&) { complete(); }};
}

}  // namespace onnxifi::cuda
