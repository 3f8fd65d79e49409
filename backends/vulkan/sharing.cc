// SPDX-License-Identifier: Apache-2.0
//
// Sharing: what a caller says of a buffer is held against the tensor, as Vulkan tells of a buffer
// only how much memory it takes.

#include "backends/vulkan/sharing.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr uint64_t kAlignment = 16;

// A handle of Vulkan's own kind is a pointer where pointers have 64 bits, and a number elsewhere.
template <typename T>
T FromNumber(uint64_t number) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(static_cast<uintptr_t>(number));
  } else {
    return number;
  }
}

template <typename T>
uint64_t ToNumber(T handle) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<uintptr_t>(handle);
  } else {
    return handle;
  }
}

Status Unfit(std::string sentence) {
  return Status(Code::kInvalidMemoryLocation, std::move(sentence));
}

Status NoCallersDevice(Code code, const char* what) {
  return Status(code, std::string(what) +
                          " lies on a Vulkan device of the caller's; the backend was initialised"
                          " without ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE and has its own.");
}

// A part of shared memory for as long as it is bound; the memory is kept by its owner.
class SharedPart final : public device::Allocation {
 public:
  SharedPart(std::byte* data, int64_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  std::byte* data() override { return data_; }
  int64_t size_bytes() const override { return size_bytes_; }

 private:
  std::byte* const data_;
  const int64_t size_bytes_;
};

Status CheckUsage(uint32_t usage) {
  constexpr std::pair<uint32_t, const char*> kNeeded[] = {
      {VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, "SHADER_DEVICE_ADDRESS"},
      {VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, "STORAGE_BUFFER"},
      {VK_BUFFER_USAGE_TRANSFER_SRC_BIT, "TRANSFER_SRC"},
      {VK_BUFFER_USAGE_TRANSFER_DST_BIT, "TRANSFER_DST"}};
  for (const auto& [bit, name] : kNeeded) {
    if ((usage & bit) == 0) {
      return Unfit("The Vulkan buffer was made without usage " + std::string(name) + ".");
    }
  }
  return base::Ok();
}

}  // namespace

Status Sharing::CheckBuffer(const onnxVulkanBuffer& buffer, int64_t size_bytes) const {
  if (!runtime_.has_callers_device()) {
    return NoCallersDevice(Code::kInvalidMemoryLocation, "The Vulkan buffer");
  }
  if (buffer.device != runtime_.device()) {
    return Unfit("The Vulkan buffer belongs to another device than the backend's.");
  }
  if (buffer.buffer == 0) return Unfit("The Vulkan buffer is NULL.");
  ONNXIFI_RETURN_IF_ERROR(CheckUsage(buffer.usage));
  if (buffer.offset % kAlignment != 0) {
    return Unfit("The tensor begins at byte " + std::to_string(buffer.offset) +
                 " of the Vulkan buffer, no multiple of " + std::to_string(kAlignment) + ".");
  }
  if (buffer.size_bytes < static_cast<uint64_t>(size_bytes)) {
    return Unfit("The part of the Vulkan buffer has " + std::to_string(buffer.size_bytes) +
                 " bytes; the tensor needs " + std::to_string(size_bytes) + ".");
  }
  return base::Ok();
}

const Sharing::SharedBlock* Sharing::FindShared(uint64_t handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = shared_.find(handle);
  return found == shared_.end() ? nullptr : found->second;
}

Result<std::unique_ptr<device::Allocation>> Sharing::ImportMemory(uint64_t handle,
                                                                  int64_t size_bytes,
                                                                  Access /*access*/) {
  const auto* given = FromNumber<const onnxVulkanBuffer*>(handle);
  if (given == nullptr) return Unfit("The structure of the Vulkan buffer is NULL.");
  if (const SharedBlock* shared = FindShared(handle); shared != nullptr) {
    if (shared->told.size_bytes < static_cast<uint64_t>(size_bytes)) {
      return Unfit("The shared memory has " + std::to_string(shared->told.size_bytes) +
                   " bytes; the tensor needs " + std::to_string(size_bytes) + ".");
    }
    return std::unique_ptr<device::Allocation>(
        std::make_unique<SharedPart>(shared->piece->data(), size_bytes));
  }
  constexpr size_t kMin = offsetof(onnxVulkanBuffer, usage) + sizeof(given->usage);
  if (given->struct_size < kMin) {
    return Unfit("The structure of the Vulkan buffer has " + std::to_string(given->struct_size) +
                 " bytes; its usage ends at " + std::to_string(kMin) + ".");
  }
  onnxVulkanBuffer told = {};
  std::memcpy(&told, given, std::min(given->struct_size, sizeof(told)));
  ONNXIFI_RETURN_IF_ERROR(CheckBuffer(told, size_bytes));
  auto buffer = FromNumber<VkBuffer>(told.buffer);
  const DeviceApi& api = runtime_.api();
  VkMemoryRequirements requirements{};
  api.GetBufferMemoryRequirements(runtime_.device(), buffer, &requirements);
  if (told.offset > requirements.size || requirements.size - told.offset < told.size_bytes) {
    return Unfit("The part of the Vulkan buffer ends at byte " +
                 std::to_string(told.offset + told.size_bytes) + "; the buffer has at most " +
                 std::to_string(requirements.size) + ".");
  }
  VkBufferDeviceAddressInfo address_info{};
  address_info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address_info.buffer = buffer;
  const uint64_t address = api.GetBufferDeviceAddress(runtime_.device(), &address_info);
  if (address == 0) return Unfit("The Vulkan buffer has no address; is memory bound to it?");
  if (address % kAlignment != 0) {
    return Unfit("The Vulkan buffer lies at an address that is no multiple of " +
                 std::to_string(kAlignment) + ".");
  }
  return heap_.Import(buffer, address, static_cast<int64_t>(requirements.size),
                      static_cast<int64_t>(told.offset), size_bytes);
}

Result<std::unique_ptr<device::Allocation>> Sharing::ImportOpaqueFd(uint64_t handle,
                                                                    int64_t size_bytes) {
  const auto* given = FromNumber<const onnxOpaqueFd*>(handle);
  if (given == nullptr) return Unfit("The structure of the file descriptor is NULL.");
  constexpr size_t kMin = offsetof(onnxOpaqueFd, driver_uuid) + sizeof(given->driver_uuid);
  if (given->struct_size < kMin) {
    return Unfit("The structure of the file descriptor has " + std::to_string(given->struct_size) +
                 " bytes; its driver's UUID ends at " + std::to_string(kMin) + ".");
  }
  onnxOpaqueFd told = {};
  std::memcpy(&told, given, std::min(given->struct_size, sizeof(told)));
  return imports_.ImportFd(told, size_bytes);
}

Result<device::Sharing::SharedMemory> Sharing::AllocateShared(int64_t size_bytes) {
  constexpr uintptr_t kHostAlignment = 64;
  const bool is_mapped = runtime_.info().memory_types.device.is_mapped;
  auto block = std::make_shared<SharedBlock>();
  ONNXIFI_ASSIGN_OR_RETURN(
      block->piece, heap_.Allocate(is_mapped ? Purpose::kTensor : Purpose::kNumbers, size_bytes));
  ONNXIFI_ASSIGN_OR_RETURN(const Heap::Location place, heap_.Find(block->piece->data()));
  if (place.mapped == nullptr || reinterpret_cast<uintptr_t>(place.mapped) % kHostAlignment != 0) {
    return Status(Code::kUnsupportedMemoryType,
                  runtime_.info().name + " has no memory that the host maps at multiples of 64.");
  }
  onnxVulkanBuffer& told = block->told;
  told.struct_size = sizeof(told);
  told.device = runtime_.device();
  told.buffer = ToNumber(place.buffer);
  told.offset = static_cast<uint64_t>(place.offset_bytes);
  told.size_bytes = static_cast<uint64_t>(block->piece->size_bytes());
  told.usage = kBufferUsage;
  const uint64_t handle = ToNumber(&told);
  {
    const std::lock_guard lock(mutex_);
    shared_[handle] = block.get();
  }
  const void* address = place.mapped;
  return SharedMemory{place.mapped, handle,
                      std::shared_ptr<const void>(address, [this, handle, block](const void*) {
                        const std::lock_guard lock(mutex_);
                        shared_.erase(handle);
                      })};
}

Status Sharing::WhenComplete(const NativeEvent& event, OnDone done) {
  if (event.handle == 0) return Status(Code::kInvalidEvent, "The Vulkan semaphore is NULL.");
  if (!runtime_.has_callers_device()) {
    return NoCallersDevice(Code::kInvalidEvent, "The Vulkan semaphore");
  }
  return semaphores_.WhenReached(FromNumber<VkSemaphore>(event.handle), event.value,
                                 std::move(done));
}

Result<device::Sharing::NewEvent> Sharing::MakeEvent() {
  if (!runtime_.has_callers_device()) {
    return Status(Code::kUnsupportedFenceType,
                  "The backend has a Vulkan device of its own, whose semaphores nobody else can"
                  " wait for; it was initialised without"
                  " ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(Semaphores::Made made, semaphores_.Make());
  return NewEvent{{ToNumber(made.semaphore), Semaphores::kReached}, std::move(made.complete)};
}

}  // namespace onnxifi::vulkan
