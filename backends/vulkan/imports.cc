// SPDX-License-Identifier: Apache-2.0
//
// Imports: the host's memory is imported by whole pages, as drivers take it; what else lies on them
// is never touched. Each range has one import, however many tensors and graphs use it: where a
// device's addresses are the host's, another would have the same.

#include "backends/vulkan/imports.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;

Status Unfit(std::string sentence) {
  return Status(Code::kInvalidMemoryLocation, std::move(sentence));
}

// An owned file descriptor.
class Fd {
 public:
  explicit Fd(int number) : number_(number) {}
  ~Fd() {
    if (number_ >= 0) close(number_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int& number() { return number_; }

 private:
  int number_;
};

// What no driver exports as memory. A driver may wait for bytes of it without an end; so
// processors' drivers, which read what they export from files, are given nothing else.
Status CheckKind(int fd, bool is_processor) {
  struct stat about {};
  if (fstat(fd, &about) != 0)
    return Unfit("File descriptor " + std::to_string(fd) + " is not open.");
  const char* kind = nullptr;
  if (S_ISFIFO(about.st_mode)) kind = "a pipe";
  if (S_ISSOCK(about.st_mode)) kind = "a socket";
  if (S_ISDIR(about.st_mode)) kind = "a folder";
  if (S_ISBLK(about.st_mode)) kind = "a block device";
  if (kind == nullptr && is_processor && !S_ISREG(about.st_mode)) kind = "no file";
  if (kind == nullptr) return base::Ok();
  return Unfit("File descriptor " + std::to_string(fd) + " is " + kind +
               ", no memory of a driver.");
}

}  // namespace

// What one tensor uses of a range.
class Imports::HostPart final : public device::Allocation {
 public:
  // With the mutex of `imports` held.
  HostPart(Imports& imports, std::byte* begin, int64_t offset_bytes, int64_t size_bytes)
      : imports_(imports), begin_(begin), size_bytes_(size_bytes) {
    HostRange& range = imports_.host_.at(begin_);
    ++range.count;
    data_ = range.memory->data() + offset_bytes;
  }
  ~HostPart() override {
    const std::lock_guard lock(imports_.mutex_);
    const auto range = imports_.host_.find(begin_);
    if (--range->second.count == 0) imports_.host_.erase(range);
  }
  HostPart(const HostPart&) = delete;
  HostPart& operator=(const HostPart&) = delete;

  std::byte* data() override { return data_; }
  int64_t size_bytes() const override { return size_bytes_; }

 private:
  Imports& imports_;
  std::byte* const begin_;
  std::byte* data_ = nullptr;
  const int64_t size_bytes_;
};

Imports::Imports(Runtime& runtime, Heap& heap) : runtime_(runtime), heap_(heap) {
  const DeviceInfo& info = runtime.info();
  // A device of the caller's may have been made without what the physical device has.
  const auto look_up = [&](const char* name) {
    return runtime.instance_api().GetDeviceProcAddr(runtime.device(), name);
  };
  takes_fds_ = info.takes_opaque_fds && look_up("vkGetMemoryFdKHR") != nullptr;
  if (info.host_memory_alignment == 0 || !info.is_unified()) return;
  host_properties_ = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
      look_up("vkGetMemoryHostPointerPropertiesEXT"));
}

bool Imports::FindHostType(const void* memory, uint32_t& type) const {
  VkMemoryHostPointerPropertiesEXT told{};
  told.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
  const VkResult result = host_properties_(
      runtime_.device(), VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, memory, &told);
  if (!runtime_.Check(result, "look at the host's memory").ok()) return false;
  VkPhysicalDeviceMemoryProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  runtime_.instance_api().GetPhysicalDeviceMemoryProperties2(runtime_.info().id, &properties);
  const VkPhysicalDeviceMemoryProperties& of = properties.memoryProperties;
  for (type = 0; type < of.memoryTypeCount; ++type) {
    const bool is_taken = (told.memoryTypeBits & (1U << type)) != 0;
    const VkMemoryPropertyFlags flags = of.memoryTypes[type].propertyFlags;
    if (is_taken && (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0) return true;
  }
  return false;
}

std::unique_ptr<device::Allocation> Imports::NewHostRange(std::byte* memory,
                                                          int64_t size_bytes) const {
  const uint64_t alignment = runtime_.info().host_memory_alignment;
  const uint64_t address = reinterpret_cast<uintptr_t>(memory);
  const uint64_t before = address % alignment;
  const uint64_t used = before + static_cast<uint64_t>(size_bytes);
  const uint64_t whole = (used + alignment - 1) / alignment * alignment;
  // Nobody knows what lies beyond the pages that the tensor is on.
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (alignment > page_bytes && whole != static_cast<uint64_t>(size_bytes)) return nullptr;
  VkImportMemoryHostPointerInfoEXT import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
  import.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  import.pHostPointer = memory - before;
  BlockRequest request;
  request.size_bytes = request.allocation_bytes = static_cast<int64_t>(whole);
  request.handle_type = import.handleType;
  request.import = &import;
  if (!FindHostType(import.pHostPointer, request.memory_type)) return nullptr;
  Result<std::unique_ptr<Block>> block = MakeBlock(runtime_, request);
  if (!block.ok() || ((*block)->address + before) % kAlignment != 0) return nullptr;
  return heap_.Adopt(*std::move(block), static_cast<int64_t>(before), size_bytes);
}

std::unique_ptr<device::Allocation> Imports::ImportHost(std::byte* memory, int64_t size_bytes) {
  if (host_properties_ == nullptr || size_bytes < kMinHostBytes) return nullptr;
  if (reinterpret_cast<uintptr_t>(memory) % kAlignment != 0) return nullptr;
  const std::lock_guard lock(mutex_);
  for (const auto& [begin, range] : host_) {
    if (begin + range.size_bytes <= memory || memory + size_bytes <= begin) continue;
    const int64_t offset_bytes = memory - begin;
    if (offset_bytes < 0 || offset_bytes + size_bytes > range.size_bytes) return nullptr;
    return std::make_unique<HostPart>(*this, begin, offset_bytes, size_bytes);
  }
  std::unique_ptr<device::Allocation> made = NewHostRange(memory, size_bytes);
  if (made == nullptr) return nullptr;
  host_[memory] = {size_bytes, std::move(made), 0};
  return std::make_unique<HostPart>(*this, memory, 0, size_bytes);
}

Status Imports::CheckFd(const onnxOpaqueFd& told, int64_t size_bytes) const {
  const DeviceInfo& info = runtime_.info();
  if (!takes_fds_) {
    return Status(Code::kUnsupportedMemoryType,
                  runtime_.has_callers_device()
                      ? "The Vulkan device that is shared was made without"
                        " VK_KHR_external_memory_fd."
                      : info.name + " takes no memory of opaque file descriptors.");
  }
  if (!std::ranges::equal(told.device_uuid, info.uuid) ||
      !std::ranges::equal(told.driver_uuid, info.driver_uuid)) {
    return Unfit("The memory of file descriptor " + std::to_string(told.fd) +
                 " was made by another device or driver than " + info.name + ".");
  }
  if (told.offset % kAlignment != 0) {
    return Unfit("The tensor begins at byte " + std::to_string(told.offset) +
                 " of the memory, no multiple of " + std::to_string(kAlignment) + ".");
  }
  if (told.size_bytes < static_cast<uint64_t>(size_bytes)) {
    return Unfit("The part of the memory has " + std::to_string(told.size_bytes) +
                 " bytes; the tensor needs " + std::to_string(size_bytes) + ".");
  }
  if (told.offset > told.allocation_bytes ||
      told.allocation_bytes - told.offset < told.size_bytes) {
    return Unfit("The part of the memory begins at byte " + std::to_string(told.offset) +
                 " and has " + std::to_string(told.size_bytes) + "; the allocation has " +
                 std::to_string(told.allocation_bytes) + ".");
  }
  if (told.memory_type_index >= VK_MAX_MEMORY_TYPES) {
    return Unfit("There is no memory type " + std::to_string(told.memory_type_index) + ".");
  }
  return base::Ok();
}

Result<std::unique_ptr<device::Allocation>> Imports::ImportFd(const onnxOpaqueFd& told,
                                                              int64_t size_bytes) {
  ONNXIFI_RETURN_IF_ERROR(CheckFd(told, size_bytes));
  ONNXIFI_RETURN_IF_ERROR(CheckKind(told.fd, runtime_.info().is_processor()));
  // The driver takes over what it is given.
  Fd duplicate(fcntl(told.fd, F_DUPFD_CLOEXEC, 0));
  if (duplicate.number() < 0) {
    return Status(Code::kNoSystemResources, "The process has no file descriptor left.");
  }
  VkImportMemoryFdInfoKHR import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
  import.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  import.fd = duplicate.number();
  BlockRequest request;
  request.size_bytes = static_cast<int64_t>(told.offset + told.size_bytes);
  request.allocation_bytes = static_cast<int64_t>(told.allocation_bytes);
  request.memory_type = told.memory_type_index;
  request.handle_type = import.handleType;
  request.import = &import;
  request.taken_fd = &duplicate.number();
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Block> block, MakeBlock(runtime_, request));
  if (block->address % kAlignment != 0) {
    return Unfit("The memory lies at an address that is no multiple of " +
                 std::to_string(kAlignment) + ".");
  }
  return heap_.Adopt(std::move(block), static_cast<int64_t>(told.offset), size_bytes);
}

}  // namespace onnxifi::vulkan
