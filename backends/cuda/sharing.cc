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

class CallersMemory final : public device::Allocation {
 public:
  CallersMemory(CUdeviceptr address, int64_t size_bytes)
      : address_(address), size_bytes_(size_bytes) {}
  std::byte* data() override {
    return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address_));
  }
  int64_t size_bytes() const override { return size_bytes_; }

 private:
  const CUdeviceptr address_;
  const int64_t size_bytes_;
};

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
  return std::unique_ptr<device::Allocation>(std::make_unique<CallersMemory>(address, size_bytes));
}

Result<device::Sharing::SharedMemory> Sharing::AllocateShared(int64_t size_bytes) {
  const Api& api = runtime_.api();
  void* memory = nullptr;
  CUdeviceptr address = 0;
  ONNXIFI_RETURN_IF_ERROR(
      runtime_.Do("allocate " + std::to_string(size_bytes) + " bytes of pinned memory", [&] {
        return api.MemHostAlloc(&memory, static_cast<size_t>(std::max<int64_t>(size_bytes, 1)),
                                CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
      }));
  const auto release = [this, memory](CUdeviceptr at) {
    const std::lock_guard lock(mutex_);
    shared_.erase(at);
    static_cast<void>(
        runtime_.Do("free pinned memory", [&] { return runtime_.api().MemFreeHost(memory); }));
  };
  const Status mapped = runtime_.Do(
      "map pinned memory", [&] { return api.MemHostGetDevicePointer(&address, memory, 0); });
  if (!mapped.ok()) {
    release(0);
    return mapped;
  }
  {
    const std::lock_guard lock(mutex_);
    shared_[address] = size_bytes;
  }
  return SharedMemory{
      static_cast<std::byte*>(memory), address,
      std::shared_ptr<const void>(memory, [release, address](const void*) { release(address); })};
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
