// SPDX-License-Identifier: Apache-2.0
//
// FakeDriver: a device's objects: memory, buffers, kernels, semaphores and pools of queries.

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/vulkan/testing/fake_objects.h"

namespace onnxifi::vulkan::fake {
namespace {

constexpr uint32_t kSpirvMagic = 0x07230203;

const FakeDevice& PhysicalOf(const Device& device) { return TheState().devices[device.physical]; }

VKAPI_ATTR void VKAPI_CALL DestroyDevice(VkDevice id, const VkAllocationCallbacks*) {
  FAKE_LOCK();
  State& state = TheState();
  auto* const device = Find<Device>(IdOf(id), "DestroyDevice");
  if (device == nullptr) return;
  if (!device->pending.empty()) Note("vkDestroyDevice takes away a device that is at work.");
  const size_t left = std::erase_if(
      state.objects, [&](const auto& entry) { return entry.second->owner == IdOf(id); });
  if (left > 0) {
    Note("vkDestroyDevice takes away a device with " + std::to_string(left) + " objects.");
  }
  state.objects.erase(IdOf(id));
}

// ---- Memory and buffers ----

// The host's memory, or that of a file: memory of the kind that Linux's memfd_create makes stands
// for what another device has exported. False if there is no such.
bool Import(const FakeDevice& physical, const VkMemoryAllocateInfo& info, Memory& memory) {
  for (auto* link = static_cast<const VkBaseInStructure*>(info.pNext); link != nullptr;
       link = link->pNext) {
    const void* const at = link;
    if (link->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT) {
      const auto& host = *static_cast<const VkImportMemoryHostPointerInfoEXT*>(at);
      if (reinterpret_cast<uintptr_t>(host.pHostPointer) % physical.host_memory_alignment != 0 ||
          info.allocationSize % physical.host_memory_alignment != 0) {
        Note("vkAllocateMemory imports memory of the host's that is not aligned.");
      }
      memory.handle_type = host.handleType;
      memory.bytes = {static_cast<std::byte*>(host.pHostPointer), [](std::byte*) {}};
    } else if (link->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR) {
      const auto& file = *static_cast<const VkImportMemoryFdInfoKHR*>(at);
      const size_t size_bytes = info.allocationSize;
      struct stat status {};
      if (fstat(file.fd, &status) != 0 || static_cast<size_t>(status.st_size) != size_bytes) {
        return false;
      }
      void* const mapped =
          mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
      if (mapped == MAP_FAILED) return false;
      memory.handle_type = file.handleType;
      memory.bytes = {static_cast<std::byte*>(mapped),
                      [size_bytes](std::byte* bytes) { munmap(bytes, size_bytes); }};
      close(file.fd);
    }
  }
  return true;
}

VKAPI_ATTR VkResult VKAPI_CALL
GetMemoryHostPointerPropertiesEXT(VkDevice device, VkExternalMemoryHandleTypeFlagBits, const void*,
                                  VkMemoryHostPointerPropertiesEXT* told) {
  FAKE_CALL(GetMemoryHostPointerPropertiesEXT, IdOf(device));
  const FakeDevice& physical =
      PhysicalOf(*Find<Device>(IdOf(device), "GetMemoryHostPointerPropertiesEXT"));
  told->memoryTypeBits = (1U << physical.memory_types.size()) - 1;
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL GetMemoryFdKHR(VkDevice device, const VkMemoryGetFdInfoKHR*, int*) {
  FAKE_CALL(GetMemoryFdKHR, IdOf(device));
  return VK_ERROR_TOO_MANY_OBJECTS;
}

VKAPI_ATTR VkResult VKAPI_CALL AllocateMemory(VkDevice id, const VkMemoryAllocateInfo* info,
                                              const VkAllocationCallbacks*, VkDeviceMemory* made) {
  FAKE_CALL(AllocateMemory, IdOf(id));
  State& state = TheState();
  auto* const device = Find<Device>(IdOf(id), "AllocateMemory");
  const FakeDevice& physical = PhysicalOf(*device);
  if (info->memoryTypeIndex >= physical.memory_types.size() || info->allocationSize == 0) {
    Note("vkAllocateMemory is asked for memory of no type or no size.");
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  const uint32_t heap = physical.memory_types[info->memoryTypeIndex].heapIndex;
  // What others have, no device tells but by its budget.
  uint64_t used = physical.heaps[heap].others_bytes;
  int64_t allocations = 1;
  for (const auto& [other, object] : state.objects) {
    const auto* const memory = dynamic_cast<const Memory*>(object.get());
    if (memory == nullptr || memory->owner != IdOf(id)) continue;
    ++allocations;
    if (physical.memory_types[memory->type].heapIndex == heap) used += memory->size_bytes;
  }
  if (used + info->allocationSize > physical.heaps[heap].size_bytes ||
      info->allocationSize > physical.largest_allocation_bytes) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  if (allocations > 4096) return VK_ERROR_TOO_MANY_OBJECTS;
  auto& memory = Make<Memory>(IdOf(id));
  memory.size_bytes = info->allocationSize;
  memory.type = info->memoryTypeIndex;
  for (auto* link = static_cast<const VkBaseInStructure*>(info->pNext); link != nullptr;
       link = link->pNext) {
    if (link->sType != VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO) continue;
    const void* const at = link;
    memory.has_address = (static_cast<const VkMemoryAllocateFlagsInfo*>(at)->flags &
                          VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT) != 0;
  }
  if (!Import(physical, *info, memory)) {
    state.objects.erase(memory.id);
    return VK_ERROR_INVALID_EXTERNAL_HANDLE;
  }
  if (memory.bytes == nullptr) {
    memory.bytes.reset(static_cast<std::byte*>(std::calloc(1, memory.size_bytes)), &std::free);
  }
  state.allocated_types.push_back(memory.type);
  state.most_allocations = std::max(state.most_allocations, allocations);
  *made = HandleOf<VkDeviceMemory>(memory.id);
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL FreeMemory(VkDevice device, VkDeviceMemory memory,
                                      const VkAllocationCallbacks*) {
  FAKE_LOCK();
  for (const auto& [id, object] : TheState().objects) {
    const auto* const buffer = dynamic_cast<const Buffer*>(object.get());
    if (memory != VK_NULL_HANDLE && buffer != nullptr && buffer->memory == IdOf(memory)) {
      Note("vkFreeMemory takes away the memory of a buffer.");
    }
  }
  Destroy<Memory>(IdOf(device), IdOf(memory), "FreeMemory");
}

VKAPI_ATTR VkResult VKAPI_CALL MapMemory(VkDevice device, VkDeviceMemory id, VkDeviceSize offset,
                                         VkDeviceSize, VkMemoryMapFlags, void** mapped) {
  FAKE_CALL(MapMemory, IdOf(device));
  auto* const memory = Find<Memory>(IdOf(id), "MapMemory");
  const FakeDevice& physical = PhysicalOf(*Find<Device>(IdOf(device), "MapMemory"));
  const VkMemoryPropertyFlags flags = physical.memory_types[memory->type].propertyFlags;
  if (memory->is_mapped || (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) {
    Note("vkMapMemory is given memory that is mapped or that the host does not see.");
    return VK_ERROR_MEMORY_MAP_FAILED;
  }
  memory->is_mapped = true;
  *mapped = memory->bytes.get() + offset;
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateBuffer(VkDevice id, const VkBufferCreateInfo* info,
                                            const VkAllocationCallbacks*, VkBuffer* made) {
  FAKE_CALL(CreateBuffer, IdOf(id));
  State& state = TheState();
  const auto* const device = Find<Device>(IdOf(id), "CreateBuffer");
  if (info->size == 0) Note("vkCreateBuffer is asked for no bytes.");
  auto& buffer = Make<Buffer>(IdOf(id));
  buffer.size_bytes = info->size;
  buffer.usage = info->usage;
  for (auto* link = static_cast<const VkBaseInStructure*>(info->pNext); link != nullptr;
       link = link->pNext) {
    if (link->sType != VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO) continue;
    const void* const at = link;
    buffer.handle_types = static_cast<const VkExternalMemoryBufferCreateInfo*>(at)->handleTypes;
  }
  const uint64_t alignment = PhysicalOf(*device).address_alignment;
  // No multiple of more than what the device promises.
  buffer.address = (state.next_address / (2 * alignment) * 2 + 1) * alignment;
  state.next_address = buffer.address + info->size + 2 * alignment;
  *made = HandleOf<VkBuffer>(buffer.id);
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL DestroyBuffer(VkDevice device, VkBuffer buffer,
                                         const VkAllocationCallbacks*) {
  FAKE_LOCK();
  Destroy<Buffer>(IdOf(device), IdOf(buffer), "DestroyBuffer");
}

VKAPI_ATTR void VKAPI_CALL GetBufferMemoryRequirements(VkDevice device, VkBuffer id,
                                                       VkMemoryRequirements* requirements) {
  FAKE_LOCK();
  const auto* const buffer = Find<Buffer>(IdOf(id), "GetBufferMemoryRequirements");
  const size_t types =
      PhysicalOf(*Find<Device>(IdOf(device), "GetBufferMemoryRequirements")).memory_types.size();
  requirements->size = (buffer->size_bytes + 63) / 64 * 64;
  requirements->alignment = 64;
  requirements->memoryTypeBits = (1U << types) - 1;
}

VKAPI_ATTR VkResult VKAPI_CALL BindBufferMemory(VkDevice device, VkBuffer id,
                                                VkDeviceMemory memory_id, VkDeviceSize offset) {
  FAKE_CALL(BindBufferMemory, IdOf(device));
  auto* const buffer = Find<Buffer>(IdOf(id), "BindBufferMemory");
  const auto* const memory = Find<Memory>(IdOf(memory_id), "BindBufferMemory");
  if (buffer->memory != 0 || offset % 64 != 0 || offset + buffer->size_bytes > memory->size_bytes) {
    Note("vkBindBufferMemory binds a buffer twice or beyond its memory.");
  }
  if ((buffer->usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) != 0 && !memory->has_address) {
    Note("vkBindBufferMemory binds a buffer with an address to memory without one.");
  }
  if (buffer->handle_types != memory->handle_type) {
    Note("vkBindBufferMemory binds a buffer to memory of another kind of handle.");
  }
  buffer->memory = IdOf(memory_id);
  buffer->offset_bytes = offset;
  return VK_SUCCESS;
}

VKAPI_ATTR VkDeviceAddress VKAPI_CALL
GetBufferDeviceAddress(VkDevice device, const VkBufferDeviceAddressInfo* info) {
  FAKE_LOCK();
  const auto* const buffer = Find<Buffer>(IdOf(info->buffer), "GetBufferDeviceAddress");
  if (!Find<Device>(IdOf(device), "GetBufferDeviceAddress")->has_addresses || buffer->memory == 0 ||
      (buffer->usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) == 0) {
    Note("vkGetBufferDeviceAddress is asked of a buffer that has none.");
  }
  return buffer->address;
}

// ---- Kernels ----

VKAPI_ATTR VkResult VKAPI_CALL CreateShaderModule(VkDevice device,
                                                  const VkShaderModuleCreateInfo* info,
                                                  const VkAllocationCallbacks*,
                                                  VkShaderModule* made) {
  FAKE_CALL(CreateShaderModule, IdOf(device));
  if (info->codeSize % 4 != 0 || info->codeSize < 20 || info->pCode[0] != kSpirvMagic) {
    Note("vkCreateShaderModule is given what is no SPIR-V.");
  }
  const auto* const of = Find<Device>(IdOf(device), "CreateShaderModule");
  std::vector<uint32_t>& words =
      TheState().modules.emplace_back(info->pCode, info->pCode + info->codeSize / 4);
  struct Needed {
    uint32_t capability;
    bool Device::*is_enabled;
    const char* name;
  };
  constexpr Needed kNeeded[] = {
      {9, &Device::has_float16, "float16"},
      {6022, &Device::has_matrices, "cooperative matrices"},
      {5118, &Device::has_bfloat16_matrices, "cooperative matrices of bfloat16"}};
  for (const Needed& needed : kNeeded) {
    constexpr uint32_t kOpCapability = 2U << 16 | 17;
    const std::array<uint32_t, 2> capability = {kOpCapability, needed.capability};
    if (!std::ranges::search(words, capability).empty() && of != nullptr &&
        !(of->*needed.is_enabled)) {
      Note(std::string("vkCreateShaderModule is given ") + needed.name +
           ", which the device was made without.");
    }
  }
  *made = HandleOf<VkShaderModule>(Make<ShaderModule>(IdOf(device)).id);
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL CreatePipelineLayout(VkDevice device,
                                                    const VkPipelineLayoutCreateInfo* info,
                                                    const VkAllocationCallbacks*,
                                                    VkPipelineLayout* made) {
  FAKE_CALL(CreatePipelineLayout, IdOf(device));
  auto& layout = Make<PipelineLayout>(IdOf(device));
  if (info->pushConstantRangeCount > 0) layout.push_bytes = info->pPushConstantRanges[0].size;
  if (layout.push_bytes > 128) Note("vkCreatePipelineLayout is asked for too many constants.");
  *made = HandleOf<VkPipelineLayout>(layout.id);
  return VK_SUCCESS;
}

// What the fake driver makes of a kernel, so that it can tell whether it is given that back.
std::vector<uint8_t> DataOf(const Device& device) {
  std::vector<uint8_t> data = {'f', 'a', 'k', 'e'};
  const auto& uuid = PhysicalOf(device).uuid;
  data.insert(data.end(), uuid.begin(), uuid.end());
  return data;
}

VKAPI_ATTR VkResult VKAPI_CALL CreatePipelineCache(VkDevice device,
                                                   const VkPipelineCacheCreateInfo* info,
                                                   const VkAllocationCallbacks*,
                                                   VkPipelineCache* made) {
  FAKE_CALL(CreatePipelineCache, IdOf(device));
  auto& cache = Make<PipelineCache>(IdOf(device));
  const auto* const given = static_cast<const uint8_t*>(info->pInitialData);
  if (info->initialDataSize > 0) cache.data.assign(given, given + info->initialDataSize);
  *made = HandleOf<VkPipelineCache>(cache.id);
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL GetPipelineCacheData(VkDevice device, VkPipelineCache id,
                                                    size_t* size, void* data) {
  FAKE_CALL(GetPipelineCacheData, IdOf(device));
  const auto* const cache = Find<PipelineCache>(IdOf(id), "GetPipelineCacheData");
  const size_t room = *size;
  *size = cache->data.size();
  if (data == nullptr) return VK_SUCCESS;
  *size = std::min(room, cache->data.size());
  std::copy_n(cache->data.begin(), *size, static_cast<uint8_t*>(data));
  return *size < cache->data.size() ? VK_INCOMPLETE : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateComputePipelines(VkDevice device, VkPipelineCache cache_id,
                                                      uint32_t count,
                                                      const VkComputePipelineCreateInfo* infos,
                                                      const VkAllocationCallbacks*,
                                                      VkPipeline* made) {
  // What fails leaves null handles.
  std::fill_n(made, count, VkPipeline{VK_NULL_HANDLE});
  FAKE_CALL(CreateComputePipelines, IdOf(device));
  for (uint32_t k = 0; k < count; ++k) {
    Find<ShaderModule>(IdOf(infos[k].stage.module), "CreateComputePipelines");
    Find<PipelineLayout>(IdOf(infos[k].layout), "CreateComputePipelines");
    made[k] = HandleOf<VkPipeline>(Make<Pipeline>(IdOf(device)).id);
    if (cache_id == VK_NULL_HANDLE) continue;
    auto* const cache = Find<PipelineCache>(IdOf(cache_id), "CreateComputePipelines");
    if (cache == nullptr) continue;
    const std::vector<uint8_t> data = DataOf(*Find<Device>(IdOf(device), "CreateComputePipelines"));
    if (cache->data == data) ++TheState().pipelines_from_cache;
    cache->data = data;
  }
  return VK_SUCCESS;
}

// ---- Semaphores and queries ----

VKAPI_ATTR VkResult VKAPI_CALL CreateSemaphore(VkDevice id, const VkSemaphoreCreateInfo* info,
                                               const VkAllocationCallbacks*, VkSemaphore* made) {
  FAKE_CALL(CreateSemaphore, IdOf(id));
  auto& semaphore = Make<Semaphore>(IdOf(id));
  for (auto* link = static_cast<const VkBaseInStructure*>(info->pNext); link != nullptr;
       link = link->pNext) {
    if (link->sType != VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO) continue;
    if (!Find<Device>(IdOf(id), "CreateSemaphore")->has_timelines) {
      Note("vkCreateSemaphore is asked for a timeline that the device was opened without.");
    }
    const void* const at = link;
    semaphore.value = static_cast<const VkSemaphoreTypeCreateInfo*>(at)->initialValue;
  }
  *made = HandleOf<VkSemaphore>(semaphore.id);
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateQueryPool(VkDevice device, const VkQueryPoolCreateInfo* info,
                                               const VkAllocationCallbacks*, VkQueryPool* made) {
  FAKE_CALL(CreateQueryPool, IdOf(device));
  auto& pool = Make<QueryPool>(IdOf(device));
  pool.queries.resize(info->queryCount);
  pool.ticks.resize(info->queryCount);
  *made = HandleOf<VkQueryPool>(pool.id);
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL GetQueryPoolResults(VkDevice id, VkQueryPool pool_id, uint32_t first,
                                                   uint32_t count, size_t size, void* out,
                                                   VkDeviceSize stride, VkQueryResultFlags) {
  FAKE_CALL(GetQueryPoolResults, IdOf(id));
  if (Find<Device>(IdOf(id), "GetQueryPoolResults")->is_lost) return VK_ERROR_DEVICE_LOST;
  const auto* const pool = Find<QueryPool>(IdOf(pool_id), "GetQueryPoolResults");
  for (uint32_t k = 0; k < count; ++k) {
    if (first + k >= pool->queries.size() || k * stride + sizeof(uint64_t) > size ||
        pool->queries[first + k] != QueryPool::Query::kWritten) {
      Note("vkGetQueryPoolResults asks for a time that nobody wrote, and waits for ever.");
      return VK_NOT_READY;
    }
    static_cast<uint64_t*>(out)[k * stride / sizeof(uint64_t)] = pool->ticks[first + k];
  }
  return VK_SUCCESS;
}

#define FAKE_DESTROY(type)                                                   \
  VKAPI_ATTR void VKAPI_CALL Destroy##type(VkDevice device, Vk##type object, \
                                           const VkAllocationCallbacks*) {   \
    FAKE_LOCK();                                                             \
    Destroy<type>(IdOf(device), IdOf(object), "Destroy" #type);              \
  }
FAKE_DESTROY(Pipeline)
FAKE_DESTROY(PipelineCache)
FAKE_DESTROY(PipelineLayout)
FAKE_DESTROY(QueryPool)
FAKE_DESTROY(Semaphore)
FAKE_DESTROY(ShaderModule)
#undef FAKE_DESTROY

}  // namespace

void AddMemoryFunctions(State& state) {
#define FAKE_ADD(name) state.Add(#name, name);
  FAKE_ADD(AllocateMemory)
  FAKE_ADD(BindBufferMemory)
  FAKE_ADD(GetMemoryFdKHR)
  FAKE_ADD(GetMemoryHostPointerPropertiesEXT)
  FAKE_ADD(CreateBuffer)
  FAKE_ADD(CreateComputePipelines)
  FAKE_ADD(CreatePipelineCache)
  FAKE_ADD(CreatePipelineLayout)
  FAKE_ADD(CreateQueryPool)
  FAKE_ADD(CreateSemaphore)
  FAKE_ADD(CreateShaderModule)
  FAKE_ADD(DestroyBuffer)
  FAKE_ADD(DestroyDevice)
  FAKE_ADD(DestroyPipeline)
  FAKE_ADD(DestroyPipelineCache)
  FAKE_ADD(DestroyPipelineLayout)
  FAKE_ADD(DestroyQueryPool)
  FAKE_ADD(DestroySemaphore)
  FAKE_ADD(DestroyShaderModule)
  FAKE_ADD(FreeMemory)
  FAKE_ADD(GetBufferDeviceAddress)
  FAKE_ADD(GetBufferMemoryRequirements)
  FAKE_ADD(GetPipelineCacheData)
  FAKE_ADD(GetQueryPoolResults)
  FAKE_ADD(MapMemory)
#undef FAKE_ADD
}

}  // namespace onnxifi::vulkan::fake
