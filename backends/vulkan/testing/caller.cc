// SPDX-License-Identifier: Apache-2.0
//
// Caller: the least that a program needs of Vulkan to share a device.

#include "backends/vulkan/testing/caller.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace onnxifi::vulkan {

using base::Code;
using base::Result;
using base::Status;

namespace {

std::string HexText(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

template <typename T>
uint64_t ToNumber(T handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

}  // namespace

Result<std::unique_ptr<Caller>> Caller::Create(const std::string& uuid, Extensions extensions) {
  std::unique_ptr<Caller> caller(new Caller());
  ONNXIFI_ASSIGN_OR_RETURN(const Api api, LoadApi(kLoaderLibrary));
  ONNXIFI_ASSIGN_OR_RETURN(caller->instance_, Instance::Create(api));
  ONNXIFI_ASSIGN_OR_RETURN(const FoundDevices found, FindDevices(*caller->instance_));
  for (const DeviceInfo& info : found.fit) {
    if (HexText(info.uuid) != uuid) continue;
    caller->info_ = info;
    ONNXIFI_RETURN_IF_ERROR(caller->OpenDevice(extensions));
    return caller;
  }
  return Status(Code::kBackendUnavailable, "No device has the UUID " + uuid + ".");
}

Status Caller::OpenDevice(Extensions extensions) {
  of_1_2_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  of_1_1_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  of_1_1_.pNext = &of_1_2_;
  features_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features_.pNext = &of_1_1_;
  // All that there is.
  instance_->api().GetPhysicalDeviceFeatures2(info_.id, &features_);
  of_1_2_.bufferDeviceAddressCaptureReplay = VK_FALSE;
  of_1_2_.bufferDeviceAddressMultiDevice = VK_FALSE;
  features_.features.robustBufferAccess = VK_FALSE;
  constexpr float kPriority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = info_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &kPriority;
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.pNext = &features_;
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  std::vector<const char*> names;
  if (extensions == Extensions::kMemory && info_.takes_opaque_fds) {
    names.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  }
  if (extensions == Extensions::kMemory && info_.host_memory_alignment > 0) {
    names.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  }
  create.enabledExtensionCount = static_cast<uint32_t>(names.size());
  create.ppEnabledExtensionNames = names.data();
  const InstanceApi& api = instance_->api();
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(api.CreateDevice(info_.id, &create, nullptr, &device_), "open a device"));
  ONNXIFI_ASSIGN_OR_RETURN(functions_, LoadDeviceApi(api, device_));
  functions_.GetDeviceQueue(device_, info_.queue_family, 0, &queue_);
  semaphore_api_.SignalSemaphore =
      reinterpret_cast<PFN_vkSignalSemaphore>(api.GetDeviceProcAddr(device_, "vkSignalSemaphore"));
  semaphore_api_.GetSemaphoreCounterValue = reinterpret_cast<PFN_vkGetSemaphoreCounterValue>(
      api.GetDeviceProcAddr(device_, "vkGetSemaphoreCounterValue"));
  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.queueFamilyIndex = info_.queue_family;
  VkCommandPool pool = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(ToStatus(
      functions_.CreateCommandPool(device_, &pool_info, nullptr, &pool), "make a command pool"));
  pool_ = {device_, pool, functions_.DestroyCommandPool};
  return base::Ok();
}

Caller::~Caller() {
  if (functions_.DestroyDevice == nullptr) return;
  functions_.DeviceWaitIdle(device_);
  pool_ = {};
  functions_.DestroyDevice(device_, nullptr);
}

Status Caller::CheckMessages() const {
  return instance_->validation() == nullptr ? base::Ok() : instance_->validation()->Check();
}

onnxVulkanDevice Caller::Told() {
  onnxVulkanDevice told = {};
  told.struct_size = sizeof(told);
  told.instance = instance_->get();
  told.physical_device = info_.id;
  told.device = device_;
  told.queue = queue_;
  told.queue_family = info_.queue_family;
  told.features = &features_;
  told.lock_queue = [](void* self) {
    auto& caller = *static_cast<Caller*>(self);
    caller.queue_mutex_.lock();
    ++caller.lock_count_;
  };
  told.unlock_queue = [](void* self) { static_cast<Caller*>(self)->queue_mutex_.unlock(); };
  told.context = this;
  return told;
}

Result<std::unique_ptr<Caller::Buffer>> Caller::MakeBuffer(uint64_t size_bytes, uint64_t offset) {
  auto made = std::make_unique<Buffer>();
  VkBufferCreateInfo buffer_info{};
  buffer_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer_info.size = offset + size_bytes;
  buffer_info.usage = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                      VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(functions_.CreateBuffer(device_, &buffer_info, nullptr, &buffer), "make a buffer"));
  Handle<VkBuffer> owned(device_, buffer, functions_.DestroyBuffer);
  VkMemoryRequirements requirements{};
  functions_.GetBufferMemoryRequirements(device_, buffer, &requirements);
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo memory_info{};
  memory_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory_info.pNext = &flags;
  memory_info.allocationSize = requirements.size;
  memory_info.memoryTypeIndex = info_.memory_types.staging.index;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(functions_.AllocateMemory(device_, &memory_info, nullptr, &memory), "make memory"));
  made->memory = {device_, memory, functions_.FreeMemory};
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(functions_.BindBufferMemory(device_, buffer, memory, 0), "bind memory"));
  made->buffer = std::move(owned);
  void* mapped = nullptr;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(functions_.MapMemory(device_, memory, 0, VK_WHOLE_SIZE, 0, &mapped), "map memory"));
  made->mapped = static_cast<std::byte*>(mapped);
  made->told = {sizeof(onnxVulkanBuffer), device_, ToNumber(buffer), offset, size_bytes,
                buffer_info.usage};
  return made;
}

Caller::Exported::~Exported() {
  if (told.fd >= 0) close(told.fd);
}

Result<std::unique_ptr<Caller::Exported>> Caller::ExportMemory(uint64_t size_bytes,
                                                               uint64_t offset) {
  auto made = std::make_unique<Exported>();
  made->told.fd = -1;
  // As much as a buffer of that size needs.
  constexpr uint64_t kAlignment = 4096;
  VkExportMemoryAllocateInfo exported{};
  exported.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  exported.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.pNext = &exported;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo memory_info{};
  memory_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory_info.pNext = &flags;
  memory_info.allocationSize = (offset + size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  memory_info.memoryTypeIndex = info_.memory_types.staging.index;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(functions_.AllocateMemory(device_, &memory_info, nullptr, &memory), "make memory"));
  made->memory = {device_, memory, functions_.FreeMemory};
  const auto get_fd = reinterpret_cast<PFN_vkGetMemoryFdKHR>(
      instance_->api().GetDeviceProcAddr(device_, "vkGetMemoryFdKHR"));
  VkMemoryGetFdInfoKHR fd_info{};
  fd_info.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  fd_info.memory = memory;
  fd_info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  int fd = -1;
  ONNXIFI_RETURN_IF_ERROR(ToStatus(get_fd(device_, &fd_info, &fd), "export memory"));
  made->told.fd = fd;
  void* mapped = nullptr;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(functions_.MapMemory(device_, memory, 0, VK_WHOLE_SIZE, 0, &mapped), "map memory"));
  made->mapped = static_cast<std::byte*>(mapped);
  onnxOpaqueFd& told = made->told;
  told.struct_size = sizeof(told);
  told.memory_type_index = memory_info.memoryTypeIndex;
  told.allocation_bytes = memory_info.allocationSize;
  told.offset = offset;
  told.size_bytes = size_bytes;
  std::ranges::copy(info_.uuid, std::begin(told.device_uuid));
  std::ranges::copy(info_.driver_uuid, std::begin(told.driver_uuid));
  return made;
}

Result<Handle<VkSemaphore>> Caller::MakeSemaphore() {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  create.pNext = &type;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(ToStatus(
      functions_.CreateSemaphore(device_, &create, nullptr, &semaphore), "make a semaphore"));
  return Handle<VkSemaphore>(device_, semaphore, functions_.DestroySemaphore);
}

void Caller::Signal(VkSemaphore semaphore, uint64_t value) {
  VkSemaphoreSignalInfo signal{};
  signal.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
  signal.semaphore = semaphore;
  signal.value = value;
  semaphore_api_.SignalSemaphore(device_, &signal);
}

uint64_t Caller::ValueOf(VkSemaphore semaphore) {
  uint64_t value = 0;
  semaphore_api_.GetSemaphoreCounterValue(device_, semaphore, &value);
  return value;
}

Status Caller::SubmitCopy(VkBuffer from, VkBuffer to, uint64_t size_bytes, VkSemaphore after,
                          uint64_t value) {
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool_.get();
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(ToStatus(functions_.AllocateCommandBuffers(device_, &info, &commands),
                                   "make a command buffer"));
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(functions_.BeginCommandBuffer(commands, &begin), "begin commands"));
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  functions_.CmdPipelineBarrier(
      commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
      VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
  const VkBufferCopy region{0, 0, size_bytes};
  functions_.CmdCopyBuffer(commands, from, to, 1, &region);
  VkMemoryBarrier to_host = barrier;
  to_host.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  functions_.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, nullptr, 0, nullptr);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(functions_.EndCommandBuffer(commands), "end commands"));
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.waitSemaphoreValueCount = 1;
  values.pWaitSemaphoreValues = &value;
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  if (after != VK_NULL_HANDLE) {
    submit.pNext = &values;
    submit.waitSemaphoreCount = 1;
    submit.pWaitSemaphores = &after;
    submit.pWaitDstStageMask = &stage;
  }
  const std::lock_guard lock(queue_mutex_);
  return ToStatus(functions_.QueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE), "submit a copy");
}

void Caller::Finish() {
  const std::lock_guard lock(queue_mutex_);
  functions_.DeviceWaitIdle(device_);
}

}  // namespace onnxifi::vulkan
