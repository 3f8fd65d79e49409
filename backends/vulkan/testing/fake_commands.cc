// SPDX-License-Identifier: Apache-2.0
//
// FakeDriver: commands, and the queue that carries them out when somebody waits.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "backends/vulkan/testing/fake_objects.h"

namespace onnxifi::vulkan::fake {
namespace {

// Handles of queues: each device has one.
constexpr Id kQueues = Id{1} << 33;

Id DeviceOf(VkCommandBuffer id) {
  const auto found = TheState().objects.find(IdOf(id));
  return found == TheState().objects.end() ? 0 : found->second->owner;
}

// A command buffer that may be recorded into, or null.
CommandBuffer* Recording(VkCommandBuffer id, const char* function) {
  auto* const buffer = Find<CommandBuffer>(IdOf(id), function);
  if (buffer == nullptr) return nullptr;
  if (buffer->state != CommandBuffer::State::kRecording) {
    Note(std::string("vk") + function + " is given a command buffer that is not recording.");
    return nullptr;
  }
  return buffer;
}

// ---- Command buffers ----

VKAPI_ATTR VkResult VKAPI_CALL CreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo*,
                                                 const VkAllocationCallbacks*,
                                                 VkCommandPool* made) {
  FAKE_CALL(CreateCommandPool, IdOf(device));
  *made = HandleOf<VkCommandPool>(Make<CommandPool>(IdOf(device)).id);
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL DestroyCommandPool(VkDevice device, VkCommandPool id,
                                              const VkAllocationCallbacks*) {
  FAKE_LOCK();
  if (id == VK_NULL_HANDLE) return;
  const auto* const pool = Find<CommandPool>(IdOf(id), "DestroyCommandPool");
  if (pool == nullptr) return;
  for (const Id buffer : std::vector<Id>(pool->buffers)) {
    Destroy<CommandBuffer>(IdOf(device), buffer, "DestroyCommandPool");
  }
  Destroy<CommandPool>(IdOf(device), IdOf(id), "DestroyCommandPool");
}

VKAPI_ATTR VkResult VKAPI_CALL AllocateCommandBuffers(VkDevice device,
                                                      const VkCommandBufferAllocateInfo* info,
                                                      VkCommandBuffer* made) {
  FAKE_CALL(AllocateCommandBuffers, IdOf(device));
  auto* const pool = Find<CommandPool>(IdOf(info->commandPool), "AllocateCommandBuffers");
  for (uint32_t k = 0; k < info->commandBufferCount; ++k) {
    const Id buffer = Make<CommandBuffer>(IdOf(device)).id;
    pool->buffers.push_back(buffer);
    made[k] = HandleOf<VkCommandBuffer>(buffer);
  }
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL FreeCommandBuffers(VkDevice device, VkCommandPool id, uint32_t count,
                                              const VkCommandBuffer* buffers) {
  FAKE_LOCK();
  auto* const pool = Find<CommandPool>(IdOf(id), "FreeCommandBuffers");
  for (uint32_t k = 0; k < count; ++k) {
    if (pool != nullptr) std::erase(pool->buffers, IdOf(buffers[k]));
    Destroy<CommandBuffer>(IdOf(device), IdOf(buffers[k]), "FreeCommandBuffers");
  }
}

void Clear(CommandBuffer& buffer, const char* function) {
  if (buffer.state == CommandBuffer::State::kPending) {
    Note(std::string("vk") + function + " takes a command buffer that is at work.");
  }
  buffer.state = CommandBuffer::State::kInitial;
  buffer.commands.clear();
  buffer.pipeline = 0;
  buffer.constants.clear();
}

VKAPI_ATTR VkResult VKAPI_CALL ResetCommandPool(VkDevice device, VkCommandPool id,
                                                VkCommandPoolResetFlags) {
  FAKE_CALL(ResetCommandPool, IdOf(device));
  for (const Id buffer : Find<CommandPool>(IdOf(id), "ResetCommandPool")->buffers) {
    Clear(*Find<CommandBuffer>(buffer, "ResetCommandPool"), "ResetCommandPool");
  }
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL BeginCommandBuffer(VkCommandBuffer id,
                                                  const VkCommandBufferBeginInfo* info) {
  FAKE_CALL(BeginCommandBuffer, DeviceOf(id));
  auto* const buffer = Find<CommandBuffer>(IdOf(id), "BeginCommandBuffer");
  if (buffer->state != CommandBuffer::State::kInitial) {
    Note("vkBeginCommandBuffer is given a command buffer that was not reset.");
  }
  Clear(*buffer, "BeginCommandBuffer");
  buffer->is_once = (info->flags & VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT) != 0;
  buffer->is_simultaneous = (info->flags & VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT) != 0;
  buffer->state = CommandBuffer::State::kRecording;
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL EndCommandBuffer(VkCommandBuffer id) {
  FAKE_CALL(EndCommandBuffer, DeviceOf(id));
  CommandBuffer* const buffer = Recording(id, "EndCommandBuffer");
  if (buffer != nullptr) buffer->state = CommandBuffer::State::kExecutable;
  return VK_SUCCESS;
}

// ---- Commands ----

VKAPI_ATTR void VKAPI_CALL CmdBindPipeline(VkCommandBuffer id, VkPipelineBindPoint,
                                           VkPipeline pipeline) {
  FAKE_LOCK();
  CommandBuffer* const buffer = Recording(id, "CmdBindPipeline");
  if (buffer == nullptr || Find<Pipeline>(IdOf(pipeline), "CmdBindPipeline") == nullptr) return;
  buffer->pipeline = IdOf(pipeline);
}

VKAPI_ATTR void VKAPI_CALL CmdPushConstants(VkCommandBuffer id, VkPipelineLayout layout_id,
                                            VkShaderStageFlags, uint32_t offset, uint32_t size,
                                            const void* values) {
  FAKE_LOCK();
  CommandBuffer* const buffer = Recording(id, "CmdPushConstants");
  const auto* const layout = Find<PipelineLayout>(IdOf(layout_id), "CmdPushConstants");
  if (buffer == nullptr || layout == nullptr) return;
  if (offset + size > layout->push_bytes || size == 0 || size % 4 != 0) {
    Note("vkCmdPushConstants is given more than the layout has.");
    return;
  }
  buffer->constants.resize(std::max<size_t>(buffer->constants.size(), (offset + size + 7) / 8));
  std::memcpy(reinterpret_cast<std::byte*>(buffer->constants.data()) + offset, values, size);
}

VKAPI_ATTR void VKAPI_CALL CmdDispatch(VkCommandBuffer id, uint32_t x, uint32_t y, uint32_t z) {
  FAKE_LOCK();
  CommandBuffer* const buffer = Recording(id, "CmdDispatch");
  if (buffer == nullptr) return;
  const auto* const device = Find<Device>(buffer->owner, "CmdDispatch");
  const std::array<uint32_t, 3>& most = TheState().devices[device->physical].most_groups;
  if (buffer->pipeline == 0) Note("vkCmdDispatch has no pipeline.");
  if (x > most[0] || y > most[1] || z > most[2]) {
    Note("vkCmdDispatch starts more groups than the device can.");
  }
  buffer->commands.push_back(
      {{buffer->pipeline},
       [start = FakeStart{{x, y, z}, buffer->constants}] { TheState().starts.push_back(start); }});
}

VKAPI_ATTR void VKAPI_CALL CmdCopyBuffer(VkCommandBuffer id, VkBuffer from_id, VkBuffer to_id,
                                         uint32_t count, const VkBufferCopy* regions) {
  FAKE_LOCK();
  CommandBuffer* const buffer = Recording(id, "CmdCopyBuffer");
  const auto* const from = Find<Buffer>(IdOf(from_id), "CmdCopyBuffer");
  const auto* const to = Find<Buffer>(IdOf(to_id), "CmdCopyBuffer");
  if (buffer == nullptr || from == nullptr || to == nullptr) return;
  if ((from->usage & VK_BUFFER_USAGE_TRANSFER_SRC_BIT) == 0 ||
      (to->usage & VK_BUFFER_USAGE_TRANSFER_DST_BIT) == 0 || from->memory == 0 || to->memory == 0) {
    Note("vkCmdCopyBuffer is given a buffer that is not made for it.");
    return;
  }
  for (const VkBufferCopy& region : std::vector<VkBufferCopy>(regions, regions + count)) {
    if (region.size == 0 || region.srcOffset + region.size > from->size_bytes ||
        region.dstOffset + region.size > to->size_bytes) {
      Note("vkCmdCopyBuffer copies nothing, or beyond a buffer.");
      continue;
    }
    const uint64_t distance = region.srcOffset > region.dstOffset
                                  ? region.srcOffset - region.dstOffset
                                  : region.dstOffset - region.srcOffset;
    if (from == to && distance < region.size) Note("vkCmdCopyBuffer copies onto its source.");
    buffer->commands.push_back(
        {{from->id, to->id, from->memory, to->memory}, [from = from->id, to = to->id, region] {
           const auto* const source = Find<Buffer>(from, "CmdCopyBuffer");
           const auto* const target = Find<Buffer>(to, "CmdCopyBuffer");
           auto* const source_memory = Find<Memory>(source->memory, "CmdCopyBuffer");
           auto* const target_memory = Find<Memory>(target->memory, "CmdCopyBuffer");
           std::memmove(target_memory->bytes.get() + target->offset_bytes + region.dstOffset,
                        source_memory->bytes.get() + source->offset_bytes + region.srcOffset,
                        region.size);
           ++TheState().copies;
         }});
  }
}

VKAPI_ATTR void VKAPI_CALL CmdPipelineBarrier(VkCommandBuffer id, VkPipelineStageFlags from,
                                              VkPipelineStageFlags to, VkDependencyFlags, uint32_t,
                                              const VkMemoryBarrier*, uint32_t,
                                              const VkBufferMemoryBarrier*, uint32_t,
                                              const VkImageMemoryBarrier*) {
  FAKE_LOCK();
  CommandBuffer* const buffer = Recording(id, "CmdPipelineBarrier");
  if (buffer == nullptr) return;
  if (from == 0 || to == 0) Note("vkCmdPipelineBarrier is given no stages.");
  buffer->commands.push_back({{}, [] { ++TheState().barriers; }});
}

VKAPI_ATTR void VKAPI_CALL CmdResetQueryPool(VkCommandBuffer id, VkQueryPool pool, uint32_t first,
                                             uint32_t count) {
  FAKE_LOCK();
  CommandBuffer* const buffer = Recording(id, "CmdResetQueryPool");
  if (buffer == nullptr || Find<QueryPool>(IdOf(pool), "CmdResetQueryPool") == nullptr) return;
  buffer->commands.push_back({{IdOf(pool)}, [pool = IdOf(pool), first, count] {
                                auto& queries = Find<QueryPool>(pool, "CmdResetQueryPool")->queries;
                                std::fill_n(queries.begin() + first, count,
                                            QueryPool::Query::kReset);
                              }});
}

VKAPI_ATTR void VKAPI_CALL CmdWriteTimestamp(VkCommandBuffer id, VkPipelineStageFlagBits,
                                             VkQueryPool pool, uint32_t query) {
  FAKE_LOCK();
  CommandBuffer* const buffer = Recording(id, "CmdWriteTimestamp");
  if (buffer == nullptr || Find<QueryPool>(IdOf(pool), "CmdWriteTimestamp") == nullptr) return;
  buffer->commands.push_back({{IdOf(pool)}, [pool = IdOf(pool), query] {
                                auto* const of = Find<QueryPool>(pool, "CmdWriteTimestamp");
                                if (query >= of->queries.size() ||
                                    of->queries[query] != QueryPool::Query::kReset) {
                                  Note("vkCmdWriteTimestamp writes a query that was not reset.");
                                  return;
                                }
                                of->queries[query] = QueryPool::Query::kWritten;
                                of->ticks[query] = TheState().ticks += 100;
                              }});
}

// ---- The queue ----

VKAPI_ATTR void VKAPI_CALL GetDeviceQueue(VkDevice device, uint32_t, uint32_t, VkQueue* queue) {
  FAKE_LOCK();
  Find<Device>(IdOf(device), "GetDeviceQueue");
  *queue = HandleOf<VkQueue>(kQueues + IdOf(device));
}

void CarryOut(CommandBuffer& buffer) {
  for (const Command& command : buffer.commands) {
    const auto gone = std::ranges::find_if(
        command.objects, [](Id object) { return !TheState().objects.contains(object); });
    if (gone != command.objects.end()) {
      const auto what = TheState().destroyed.find(*gone);
      Note(std::string("A command is carried out after the ") +
           (what == TheState().destroyed.end() ? "object" : what->second) +
           " that it uses was destroyed.");
      continue;
    }
    command.carry_out();
  }
  if (--buffer.pending == 0) buffer.state = CommandBuffer::State::kExecutable;
  if (buffer.is_once) Clear(buffer, "QueueSubmit");
}

void Submit(Device& device, const VkSubmitInfo& info) {
  Submission submission;
  const VkTimelineSemaphoreSubmitInfo* values = nullptr;
  for (auto* link = static_cast<const VkBaseInStructure*>(info.pNext); link != nullptr;
       link = link->pNext) {
    if (link->sType != VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO) continue;
    const void* const at = link;
    values = static_cast<const VkTimelineSemaphoreSubmitInfo*>(at);
  }
  for (uint32_t k = 0; k < info.commandBufferCount; ++k) {
    auto* const buffer = Find<CommandBuffer>(IdOf(info.pCommandBuffers[k]), "QueueSubmit");
    if (buffer == nullptr) continue;
    const bool is_again = buffer->is_simultaneous && buffer->pending > 0;
    if (buffer->state != CommandBuffer::State::kExecutable && !is_again) {
      Note("vkQueueSubmit is given a command buffer that is not recorded, or is at work.");
      continue;
    }
    buffer->state = CommandBuffer::State::kPending;
    ++buffer->pending;
    submission.command_buffers.push_back(buffer->id);
  }
  const auto value_of = [](const uint64_t* of, uint32_t count, uint32_t k) {
    return of != nullptr && k < count ? of[k] : 0;
  };
  for (uint32_t k = 0; k < info.waitSemaphoreCount; ++k) {
    submission.waits.emplace_back(IdOf(info.pWaitSemaphores[k]),
                                  values == nullptr ? 0
                                                    : value_of(values->pWaitSemaphoreValues,
                                                               values->waitSemaphoreValueCount, k));
  }
  for (uint32_t k = 0; k < info.signalSemaphoreCount; ++k) {
    Find<Semaphore>(IdOf(info.pSignalSemaphores[k]), "QueueSubmit");
    submission.signals.emplace_back(
        IdOf(info.pSignalSemaphores[k]),
        values == nullptr
            ? 0
            : value_of(values->pSignalSemaphoreValues, values->signalSemaphoreValueCount, k));
  }
  device.pending.push_back(std::move(submission));
}

VKAPI_ATTR VkResult VKAPI_CALL QueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                           VkFence) {
  const auto now = std::chrono::steady_clock::now();
  const Id id = IdOf(queue) - kQueues;
  FAKE_CALL(QueueSubmit, id);
  TheState().last_submission = now;
  auto* const device = Find<Device>(id, "QueueSubmit");
  if (device->is_lost) return VK_ERROR_DEVICE_LOST;
  for (uint32_t k = 0; k < count; ++k) Submit(*device, infos[k]);
  TheState().changed.notify_all();
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL DeviceWaitIdle(VkDevice id) {
  FAKE_CALL(DeviceWaitIdle, IdOf(id));
  auto* const device = Find<Device>(IdOf(id), "DeviceWaitIdle");
  if (device->is_lost) return VK_ERROR_DEVICE_LOST;
  Proceed(*device);
  TheState().changed.wait(TheState().mutex,
                          [&] { return device->pending.empty() || device->is_lost; });
  return device->is_lost ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL WaitSemaphores(VkDevice id, const VkSemaphoreWaitInfo* info,
                                              uint64_t timeout_ns) {
  FAKE_CALL(WaitSemaphores, IdOf(id));
  auto* const device = Find<Device>(IdOf(id), "WaitSemaphores");
  const auto is_over = [&] {
    if (device->is_lost) return true;
    Proceed(*device);
    int reached = 0;
    for (uint32_t k = 0; k < info->semaphoreCount; ++k) {
      const auto* const semaphore = Find<Semaphore>(IdOf(info->pSemaphores[k]), "WaitSemaphores");
      reached += semaphore == nullptr || semaphore->value >= info->pValues[k] ? 1 : 0;
    }
    const bool is_any = (info->flags & VK_SEMAPHORE_WAIT_ANY_BIT) != 0;
    return reached >= (is_any ? 1 : static_cast<int>(info->semaphoreCount));
  };
  if (timeout_ns == UINT64_MAX) {
    TheState().changed.wait(TheState().mutex, is_over);
  } else if (!TheState().changed.wait_for(
                 TheState().mutex,
                 std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, INT64_MAX / 4)),
                 is_over)) {
    return VK_TIMEOUT;
  }
  return device->is_lost ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL SignalSemaphore(VkDevice device, const VkSemaphoreSignalInfo* info) {
  FAKE_CALL(SignalSemaphore, IdOf(device));
  auto* const semaphore = Find<Semaphore>(IdOf(info->semaphore), "SignalSemaphore");
  if (semaphore->value >= info->value) Note("vkSignalSemaphore does not raise its value.");
  semaphore->value = info->value;
  TheState().changed.notify_all();
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL GetSemaphoreCounterValue(VkDevice id, VkSemaphore semaphore,
                                                        uint64_t* value) {
  FAKE_CALL(GetSemaphoreCounterValue, IdOf(id));
  auto* const device = Find<Device>(IdOf(id), "GetSemaphoreCounterValue");
  if (device->is_lost) return VK_ERROR_DEVICE_LOST;
  *value = Find<Semaphore>(IdOf(semaphore), "GetSemaphoreCounterValue")->value;
  return VK_SUCCESS;
}

}  // namespace

void Proceed(Device& device) {
  State& state = TheState();
  if (state.holds_queues) return;
  const auto reached = [&](const std::pair<Id, uint64_t>& wait) {
    const auto found = state.objects.find(wait.first);
    return found != state.objects.end() &&
           dynamic_cast<const Semaphore&>(*found->second).value >= wait.second;
  };
  while (!device.pending.empty() && std::ranges::all_of(device.pending.front().waits, reached)) {
    const Submission submission = std::move(device.pending.front());
    device.pending.pop_front();
    for (const Id id : submission.command_buffers) {
      auto* const buffer = Find<CommandBuffer>(id, "QueueSubmit");
      if (buffer != nullptr) CarryOut(*buffer);
    }
    for (const auto& [id, value] : submission.signals) {
      auto* const semaphore = Find<Semaphore>(id, "QueueSubmit");
      if (semaphore == nullptr) continue;
      if (semaphore->value >= value) Note("vkQueueSubmit does not raise a semaphore's value.");
      semaphore->value = value;
    }
    state.changed.notify_all();
  }
}

void Lose(Device& device) {
  device.is_lost = true;
  for (const Submission& submission : device.pending) {
    for (const Id id : submission.command_buffers) {
      auto* const buffer = Find<CommandBuffer>(id, "QueueSubmit");
      if (buffer == nullptr) continue;
      buffer->state = CommandBuffer::State::kExecutable;
      buffer->pending = 0;
    }
  }
  device.pending.clear();
  TheState().changed.notify_all();
}

bool IsUnderWay(const Object& object) {
  const auto found = TheState().objects.find(object.owner);
  const auto* const device = found == TheState().objects.end()
                                 ? nullptr
                                 : dynamic_cast<const Device*>(found->second.get());
  if (device == nullptr) return false;
  return std::ranges::any_of(device->pending, [&](const Submission& submission) {
    const auto is_it = [&](const auto& of) { return of.first == object.id; };
    if (std::ranges::any_of(submission.waits, is_it)) return true;
    if (std::ranges::any_of(submission.signals, is_it)) return true;
    return std::ranges::any_of(submission.command_buffers, [&](Id id) {
      const auto buffer = TheState().objects.find(id);
      if (id == object.id || buffer == TheState().objects.end()) return id == object.id;
      return std::ranges::any_of(dynamic_cast<const CommandBuffer&>(*buffer->second).commands,
                                 [&](const Command& command) {
                                   return std::ranges::count(command.objects, object.id) > 0;
                                 });
    });
  });
}

void AddCommandFunctions(State& state) {
#define FAKE_ADD(name) state.Add(#name, name);
  FAKE_ADD(AllocateCommandBuffers)
  FAKE_ADD(BeginCommandBuffer)
  FAKE_ADD(CmdBindPipeline)
  FAKE_ADD(CmdCopyBuffer)
  FAKE_ADD(CmdDispatch)
  FAKE_ADD(CmdPipelineBarrier)
  FAKE_ADD(CmdPushConstants)
  FAKE_ADD(CmdResetQueryPool)
  FAKE_ADD(CmdWriteTimestamp)
  FAKE_ADD(CreateCommandPool)
  FAKE_ADD(DestroyCommandPool)
  FAKE_ADD(DeviceWaitIdle)
  FAKE_ADD(EndCommandBuffer)
  FAKE_ADD(FreeCommandBuffers)
  FAKE_ADD(GetDeviceQueue)
  FAKE_ADD(GetSemaphoreCounterValue)
  FAKE_ADD(QueueSubmit)
  FAKE_ADD(ResetCommandPool)
  FAKE_ADD(SignalSemaphore)
  FAKE_ADD(WaitSemaphores)
#undef FAKE_ADD
}

}  // namespace onnxifi::vulkan::fake
