// SPDX-License-Identifier: Apache-2.0
//
// Functions of the emulated driver: memory and copies. An allocation ends where a page ends that
// nobody may touch, but for what its size lacks to a multiple of 256 bytes; what lies around it in
// its own pages is filled with a pattern that is looked at after every launch.

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "backends/cuda/testing/emulated/objects.h"

namespace emulated {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kPage = 4096;
constexpr unsigned char kRedZone = 0xb7;
// New memory holds NaNs of any type, as far as that costs little.
constexpr unsigned char kUnwritten = 0xff;
constexpr size_t kMaxFilledBytes = size_t{16} << 20;
constexpr size_t kMaxFreed = 256;

using Poison = void (*)(const volatile void*, size_t);
Poison FindPoison(const char* name) { return reinterpret_cast<Poison>(dlsym(RTLD_DEFAULT, name)); }

// Does nothing in a process without AddressSanitizer.
void SetPoison(bool is_poisoned, const void* at, size_t size_bytes) {
  static const Poison poison = FindPoison("__asan_poison_memory_region");
  static const Poison unpoison = FindPoison("__asan_unpoison_memory_region");
  const Poison set = is_poisoned ? poison : unpoison;
  if (set != nullptr && size_bytes > 0) set(at, size_bytes);
}

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// The parts of an allocation's pages before and behind it.
std::pair<unsigned char*, unsigned char*> Before(const Memory& memory) {
  auto* const begin = reinterpret_cast<unsigned char*>(memory.mapping) + kPage;
  return {begin, reinterpret_cast<unsigned char*>(memory.base)};
}
std::pair<unsigned char*, unsigned char*> Behind(const Memory& memory) {
  auto* const end = reinterpret_cast<unsigned char*>(memory.mapping) + memory.mapping_bytes - kPage;
  return {reinterpret_cast<unsigned char*>(memory.base) + memory.size_bytes, end};
}

CUresult Allocate(size_t size_bytes, bool is_host, unsigned flags, uintptr_t* address) {
  Driver& d = D();
  Context* const context = Current();
  if (size_bytes == 0) return Misuse(CUDA_ERROR_INVALID_VALUE, "Zero bytes are allocated.");
  if (!is_host &&
      size_bytes > d.memory_bytes - std::min(d.memory_bytes, d.used_bytes[context->device])) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Memory memory;
  memory.size_bytes = size_bytes;
  memory.context = context;
  memory.is_host = is_host;
  memory.flags = flags;
  const size_t rounded = RoundUp(size_bytes, kAlignment);
  memory.mapping_bytes = RoundUp(rounded, kPage) + 2 * kPage;
  void* const mapping = mmap(nullptr, memory.mapping_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  memory.mapping = static_cast<char*>(mapping);
  mprotect(memory.mapping, kPage, PROT_NONE);
  mprotect(memory.mapping + memory.mapping_bytes - kPage, kPage, PROT_NONE);
  memory.base =
      reinterpret_cast<uintptr_t>(memory.mapping + memory.mapping_bytes - kPage - rounded);
  std::memset(reinterpret_cast<void*>(memory.base), kUnwritten,
              std::min(size_bytes, kMaxFilledBytes));
  for (const auto& [begin, end] : {Before(memory), Behind(memory)}) {
    std::memset(begin, kRedZone, end - begin);
    SetPoison(true, begin, end - begin);
  }
  if (!is_host) d.used_bytes[context->device] += size_bytes;
  *address = memory.base;
  d.memory[memory.base] = memory;
  return CUDA_SUCCESS;
}

CUresult Free(std::unique_lock<std::mutex>& lock, uintptr_t address, bool is_host) {
  Driver& d = D();
  if (const CUresult result = CheckNoCapture(); result != CUDA_SUCCESS) return result;
  const auto found = d.memory.find(address);
  if (found == d.memory.end() || found->second.is_host != is_host || found->second.is_registered) {
    return Misuse(CUDA_ERROR_INVALID_VALUE, "What is freed is no allocation, or was freed before.");
  }
  // As the driver does, and so that what is carried out finds its memory.
  WaitForAll(lock, nullptr);
  ReleaseMemory(found->second);
  d.memory.erase(found);
  return CUDA_SUCCESS;
}

// A copy whose host side is any memory of the process. It has happened when the call returns where
// `waits` is the driver's mutex.
CUresult Copy(uintptr_t to, uintptr_t from, size_t size_bytes, bool to_device, bool from_device,
              CUstream handle, std::unique_lock<std::mutex>* waits) {
  EMULATED_STREAM(stream, handle);
  if (size_bytes == 0) return CUDA_SUCCESS;
  if ((to == 0) || (from == 0))
    return Misuse(CUDA_ERROR_INVALID_VALUE, "A copy has a null address.");
  for (const auto& [address, is_device] :
       {std::pair(to, to_device), std::pair(from, from_device)}) {
    if (!is_device) {
      const Memory* const memory = FindMemory(address);
      if (memory == nullptr || memory->is_host) continue;
      return Misuse(CUDA_ERROR_INVALID_VALUE, "A copy takes device memory for host memory.");
    }
    std::string fault = CheckRange(address, size_bytes, "A copy");
    if (!fault.empty()) return Misuse(CUDA_ERROR_INVALID_VALUE, std::move(fault));
  }
  // Pageable memory is read before the call returns, as the driver stages what is small; pinned
  // memory is read when the copy is carried out.
  std::shared_ptr<std::string> staged;
  if (!from_device && FindMemory(from) == nullptr) {
    if (stream->capture == nullptr) {
      staged = std::make_shared<std::string>(reinterpret_cast<const char*>(from), size_bytes);
    }
  }
  Action action;
  action.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  action.run = [=]() -> std::string {
    {
      const std::lock_guard lock(D().mutex);
      for (const auto& [address, is_device] :
           {std::pair(to, to_device), std::pair(from, from_device)}) {
        if (!is_device) continue;
        std::string fault = CheckRange(address, size_bytes, "A copy that is carried out");
        if (!fault.empty()) return fault;
      }
    }
    std::memmove(reinterpret_cast<void*>(to),
                 staged != nullptr ? staged->data() : reinterpret_cast<const void*>(from),
                 size_bytes);
    return std::string();
  };
  const CUresult result = Enqueue(stream, std::move(action));
  if (result != CUDA_SUCCESS || waits == nullptr || stream->capture != nullptr) return result;
  const std::shared_ptr<Completion> last = stream->last;
  Context* const context = stream->context;
  WaitUntil(*waits, [last] { return last->is_done; });
  return context->lost;
}

CUresult Set(CUdeviceptr at, uint32_t value, size_t count, size_t unit_bytes, CUstream handle,
             std::unique_lock<std::mutex>* waits) {
  EMULATED_STREAM(stream, handle);
  if (count == 0) return CUDA_SUCCESS;
  std::string fault = CheckRange(at, count * unit_bytes, "A fill");
  if (!fault.empty()) return Misuse(CUDA_ERROR_INVALID_VALUE, std::move(fault));
  if (at % unit_bytes != 0)
    return Misuse(CUDA_ERROR_INVALID_VALUE, "A fill's address is misaligned.");
  Action action;
  action.type = CU_GRAPH_NODE_TYPE_MEMSET;
  action.run = [=]() -> std::string {
    {
      const std::lock_guard lock(D().mutex);
      std::string late = CheckRange(at, count * unit_bytes, "A fill that is carried out");
      if (!late.empty()) return late;
    }
    auto* const bytes = reinterpret_cast<char*>(at);
    for (size_t n = 0; n < count; ++n) std::memcpy(bytes + n * unit_bytes, &value, unit_bytes);
    return std::string();
  };
  const CUresult result = Enqueue(stream, std::move(action));
  if (result != CUDA_SUCCESS || waits == nullptr || stream->capture != nullptr) return result;
  const std::shared_ptr<Completion> last = stream->last;
  WaitUntil(*waits, [last] { return last->is_done; });
  return CUDA_SUCCESS;
}

CUresult AttributeOf(CUpointer_attribute attribute, CUdeviceptr address, void* value) {
  const Memory* const memory = FindMemory(address);
  const bool is_device = memory != nullptr && !memory->is_host;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<unsigned*>(value) = is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<CUcontext*>(value) = reinterpret_cast<CUcontext>(memory->context);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<CUdeviceptr*>(value) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (memory == nullptr || is_device) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<void**>(value) = reinterpret_cast<void*>(address);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<int*>(value) = memory->context->device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<CUdeviceptr*>(value) = memory->base;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<size_t*>(value) = memory->size_bytes;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<unsigned char*>(value) = memory->is_managed ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned char*>(value) = memory != nullptr ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<unsigned long long*>(value) = memory->base / kAlignment;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

Memory* FindMemory(uintptr_t address) {
  auto& memory = D().memory;
  auto found = memory.upper_bound(address);
  if (found == memory.begin()) return nullptr;
  --found;
  return address - found->first < found->second.size_bytes ? &found->second : nullptr;
}

std::string CheckRange(uintptr_t address, size_t size_bytes, const char* what) {
  const Memory* const memory = FindMemory(address);
  if (memory != nullptr) {
    const size_t rest = memory->base + memory->size_bytes - address;
    if (size_bytes <= rest) return std::string();
    return std::string(what) + " of " + std::to_string(size_bytes) +
           " bytes ends behind an allocation: " + std::to_string(rest) + " are left there.";
  }
  for (const Memory& freed : D().freed) {
    if (address - freed.base < freed.size_bytes)
      return std::string(what) + " uses memory that is freed.";
  }
  return std::string(what) + " uses an address that no allocation has.";
}

std::string CheckRedZones() {
  for (const auto& [base, memory] : D().memory) {
    if (memory.mapping == nullptr) continue;
    for (const auto& [begin, end] : {Before(memory), Behind(memory)}) {
      SetPoison(false, begin, end - begin);
      const bool is_whole =
          std::all_of(begin, end, [](unsigned char byte) { return byte == kRedZone; });
      if (!is_whole) std::memset(begin, kRedZone, end - begin);
      SetPoison(true, begin, end - begin);
      if (is_whole) continue;
      return "A kernel writes " +
             std::string(begin < reinterpret_cast<unsigned char*>(base) ? "before" : "behind") +
             " an allocation of " + std::to_string(memory.size_bytes) + " bytes.";
    }
  }
  return std::string();
}

void ReleaseMemory(const Memory& memory) {
  Driver& d = D();
  if (!memory.is_host) d.used_bytes[memory.context->device] -= memory.size_bytes;
  if (memory.mapping == nullptr) return;
  // The address stays forbidden, so that whoever still uses it is found.
  SetPoison(false, memory.mapping + kPage, memory.mapping_bytes - 2 * kPage);
  madvise(memory.mapping, memory.mapping_bytes, MADV_DONTNEED);
  mprotect(memory.mapping, memory.mapping_bytes, PROT_NONE);
  d.freed.push_back(memory);
  if (d.freed.size() <= kMaxFreed) return;
  munmap(d.freed.front().mapping, d.freed.front().mapping_bytes);
  d.freed.pop_front();
}

}  // namespace emulated

using namespace emulated;

namespace {
uintptr_t AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
}  // namespace

CUresult CUDAAPI cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  EMULATED_CALL(cuMemGetInfo_v2, kWithContext);
  const uint64_t used = D().used_bytes[Current()->device];
  if (free_bytes != nullptr) *free_bytes = D().memory_bytes - std::min(used, D().memory_bytes);
  if (total_bytes != nullptr) *total_bytes = D().memory_bytes;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* address, size_t size_bytes) {
  EMULATED_CALL(cuMemAlloc_v2, kWithContext);
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = CheckNoCapture(); result != CUDA_SUCCESS) return result;
  uintptr_t base = 0;
  const CUresult result = Allocate(size_bytes, /*is_host=*/false, 0, &base);
  if (result == CUDA_SUCCESS) *address = base;
  return result;
}

// Host and device see it; here it is device memory, which the host may look at, too.
CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* address, size_t size_bytes, unsigned int flags) {
  EMULATED_CALL(cuMemAllocManaged, kWithContext);
  if (address == nullptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult result = CheckNoCapture(); result != CUDA_SUCCESS) return result;
  uintptr_t base = 0;
  const CUresult result = Allocate(size_bytes, /*is_host=*/false, 0, &base);
  if (result != CUDA_SUCCESS) return result;
  FindMemory(base)->is_managed = true;
  *address = base;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  EMULATED_CALL(cuMemFree_v2, kWithContext);
  if (address == 0) return CUDA_SUCCESS;
  return Free(call.lock(), address, /*is_host=*/false);
}

CUresult CUDAAPI cuMemHostAlloc(void** pointer, size_t size_bytes, unsigned int flags) {
  EMULATED_CALL(cuMemHostAlloc, kWithContext);
  if (pointer == nullptr || (flags & ~7u) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = CheckNoCapture(); result != CUDA_SUCCESS) return result;
  uintptr_t base = 0;
  const CUresult result = Allocate(size_bytes, /*is_host=*/true, flags, &base);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(base);
  return result;
}

CUresult CUDAAPI cuMemAllocHost_v2(void** pointer, size_t size_bytes) {
  return cuMemHostAlloc(pointer, size_bytes, 0);
}

CUresult CUDAAPI cuMemFreeHost(void* pointer) {
  EMULATED_CALL(cuMemFreeHost, kWithContext);
  return Free(call.lock(), AddressOf(pointer), /*is_host=*/true);
}

CUresult CUDAAPI cuMemHostRegister_v2(void* pointer, size_t size_bytes, unsigned int flags) {
  EMULATED_CALL(cuMemHostRegister_v2, kWithContext);
  if (pointer == nullptr || size_bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (FindMemory(AddressOf(pointer)) != nullptr) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  Memory memory;
  memory.base = AddressOf(pointer);
  memory.size_bytes = size_bytes;
  memory.context = Current();
  memory.is_host = true;
  memory.is_registered = true;
  memory.flags = flags;
  D().memory[memory.base] = memory;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostUnregister(void* pointer) {
  EMULATED_CALL(cuMemHostUnregister, kWithContext);
  const auto found = D().memory.find(AddressOf(pointer));
  if (found == D().memory.end() || !found->second.is_registered) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  WaitForAll(call.lock(), nullptr);
  D().memory.erase(AddressOf(pointer));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer,
                                              unsigned int flags) {
  EMULATED_CALL(cuMemHostGetDevicePointer_v2, kWithContext);
  const Memory* const memory = FindMemory(AddressOf(pointer));
  if (address == nullptr || flags != 0 || memory == nullptr || !memory->is_host) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *address = AddressOf(pointer);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  EMULATED_CALL(cuMemHostGetFlags, kWithContext);
  const Memory* const memory = FindMemory(AddressOf(pointer));
  if (flags == nullptr || memory == nullptr || !memory->is_host) return CUDA_ERROR_INVALID_VALUE;
  *flags = memory->flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size_bytes,
                                         CUdeviceptr address) {
  EMULATED_CALL(cuMemGetAddressRange_v2, kWithContext);
  const Memory* const memory = FindMemory(address);
  if (memory == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = memory->base;
  if (size_bytes != nullptr) *size_bytes = memory->size_bytes;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerGetAttribute(void* value, CUpointer_attribute attribute,
                                       CUdeviceptr address) {
  EMULATED_CALL(cuPointerGetAttribute, kInitialized);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AttributeOf(attribute, address, value);
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes,
                                        void** values, CUdeviceptr address) {
  EMULATED_CALL(cuPointerGetAttributes, kInitialized);
  if (attributes == nullptr || values == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Of an address that is unknown each value is zero.
  for (unsigned n = 0; n < count; ++n) {
    if (AttributeOf(attributes[n], address, values[n]) == CUDA_SUCCESS) continue;
    const bool is_wide = attributes[n] == CU_POINTER_ATTRIBUTE_CONTEXT ||
                         attributes[n] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                         attributes[n] == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
                         attributes[n] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                         attributes[n] == CU_POINTER_ATTRIBUTE_RANGE_SIZE ||
                         attributes[n] == CU_POINTER_ATTRIBUTE_BUFFER_ID;
    const bool is_byte = attributes[n] == CU_POINTER_ATTRIBUTE_IS_MANAGED;
    std::memset(values[n], 0, is_wide ? 8 : is_byte ? 1 : 4);
    if (attributes[n] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) *static_cast<int*>(values[n]) = -2;
  }
  return CUDA_SUCCESS;
}

#define EMULATED_COPY(name, To, from_type, to_device, from_device)                             \
  CUresult CUDAAPI name##_v2(To to, from_type from, size_t size_bytes) {                       \
    EMULATED_CALL(name, kWithContext);                                                         \
    return Copy((uintptr_t)to, (uintptr_t)from, size_bytes, to_device, from_device,            \
                CU_STREAM_LEGACY, &call.lock());                                               \
  }                                                                                            \
  CUresult CUDAAPI name##Async_v2(To to, from_type from, size_t size_bytes, CUstream stream) { \
    EMULATED_CALL(name##Async, kWithContext);                                                  \
    return Copy((uintptr_t)to, (uintptr_t)from, size_bytes, to_device, from_device, stream,    \
                FindMemory((uintptr_t)to) == nullptr ? &call.lock() : nullptr);                \
  }
#undef cuMemcpyHtoD
#undef cuMemcpyDtoH
#undef cuMemcpyDtoD
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuMemcpyDtoDAsync
EMULATED_COPY(cuMemcpyHtoD, CUdeviceptr, const void*, true, false)
EMULATED_COPY(cuMemcpyDtoH, void*, CUdeviceptr, false, true)
EMULATED_COPY(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, true, true)

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size_bytes,
                               CUstream stream) {
  EMULATED_CALL(cuMemcpyAsync, kWithContext);
  const auto is_device = [](CUdeviceptr address) {
    const Memory* const memory = FindMemory(address);
    return memory != nullptr && !memory->is_registered;
  };
  return Copy(to, from, size_bytes, is_device(to) && !FindMemory(to)->is_host,
              is_device(from) && !FindMemory(from)->is_host, stream,
              FindMemory(to) == nullptr ? &call.lock() : nullptr);
}

#undef cuMemsetD8
#undef cuMemsetD32
CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t count) {
  EMULATED_CALL(cuMemsetD8, kWithContext);
  return Set(at, value, count, 1, CU_STREAM_LEGACY, &call.lock());
}
CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr at, unsigned int value, size_t count) {
  EMULATED_CALL(cuMemsetD32, kWithContext);
  return Set(at, value, count, 4, CU_STREAM_LEGACY, &call.lock());
}
CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count,
                                 CUstream stream) {
  EMULATED_CALL(cuMemsetD8Async, kWithContext);
  return Set(at, value, count, 1, stream, nullptr);
}
CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr at, unsigned short value, size_t count,
                                  CUstream stream) {
  EMULATED_CALL(cuMemsetD16Async, kWithContext);
  return Set(at, value, count, 2, stream, nullptr);
}
CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr at, unsigned int value, size_t count,
                                  CUstream stream) {
  EMULATED_CALL(cuMemsetD32Async, kWithContext);
  return Set(at, value, count, 4, stream, nullptr);
}
