// SPDX-License-Identifier: Apache-2.0
//
// Runtime: a logical device with the features that kernels use.

#include "backends/vulkan/runtime.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "backends/vulkan/cooperative_matrices.h"

namespace onnxifi::vulkan {

using base::Status;

namespace {

// Between attempts to wait, where memory for it is short; each is twice the one before.
constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLastPause{500};

}  // namespace

base::Result<std::unique_ptr<Runtime>> Runtime::Open(const Instance& instance,
                                                     const DeviceInfo& info) {
  std::unique_ptr<Runtime> runtime(new Runtime(instance, info));
  ONNXIFI_RETURN_IF_ERROR(runtime->OpenDevice());
  runtime->functions_.GetDeviceQueue(runtime->device_, info.queue_family, 0, &runtime->queue_);
  ONNXIFI_RETURN_IF_ERROR(runtime->MakeObjects());
  return runtime;
}

base::Result<std::unique_ptr<Runtime>> Runtime::Share(const Instance& instance,
                                                      const CallersDevice& callers) {
  std::unique_ptr<Runtime> runtime(new Runtime(instance, callers.info));
  runtime->callers_ = callers;
  runtime->functions_ = callers.functions;
  runtime->device_ = callers.device;
  runtime->queue_ = callers.queue;
  ONNXIFI_RETURN_IF_ERROR(runtime->MakeObjects());
  return runtime;
}

Status Runtime::MakeObjects() {
  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo layout_info{};
  layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout_info.pushConstantRangeCount = 1;
  layout_info.pPushConstantRanges = &range;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(
      Check(functions_.CreatePipelineLayout(device_, &layout_info, nullptr, &layout),
            "create a pipeline layout"));
  layout_ = {device_, layout, functions_.DestroyPipelineLayout};

  ONNXIFI_ASSIGN_OR_RETURN(VkSemaphore semaphore, NewSemaphore());
  timeline_ = {device_, semaphore, functions_.DestroySemaphore};
  return base::Ok();
}

base::Result<VkSemaphore> Runtime::NewSemaphore() const {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  create.pNext = &type;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(Check(functions_.CreateSemaphore(device_, &create, nullptr, &semaphore),
                                "create a semaphore"));
  return semaphore;
}

Status Runtime::OpenDevice() {
  const codegen::MatrixUnits& units = info_.capabilities.matrix_units;
  const bool has_matrices = info_.has_cooperative_matrices;
  const bool has_bfloat16 = has_matrices && units.bfloat16.rows > 0;
  Features used = info_.features;
  used.float16 = units.kind == codegen::MatrixUnits::Kind::kCooperative;
  used.memory_model = has_matrices;
  FeatureChain features(has_matrices, has_bfloat16);
  features.Enable(used);

  constexpr float kPriority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = info_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &kPriority;
  std::vector<const char*> extensions;
  if (info_.has_memory_budget) extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (info_.takes_opaque_fds) extensions.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  if (info_.host_memory_alignment > 0) {
    extensions.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  }
  if (has_matrices) extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  if (has_bfloat16) extensions.push_back(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.pNext = features.get();
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  create.ppEnabledExtensionNames = extensions.data();
  ONNXIFI_RETURN_IF_ERROR(ToStatus(
      instance_.api().CreateDevice(info_.id, &create, nullptr, &device_), "open " + info_.name));
  ONNXIFI_ASSIGN_OR_RETURN(functions_, LoadDeviceApi(instance_.api(), device_));
  return base::Ok();
}

Runtime::~Runtime() {
  if (device_ == VK_NULL_HANDLE) return;
  if (functions_.DestroyDevice == nullptr) {
    // Other functions are missing.
    const auto destroy = reinterpret_cast<PFN_vkDestroyDevice>(
        instance_.api().GetDeviceProcAddr(device_, "vkDestroyDevice"));
    if (destroy != nullptr && !callers_) destroy(device_, nullptr);
    return;
  }
  if (callers_) {
    // The caller's own work is none of ours to wait for.
    if (timeline_.get() != VK_NULL_HANDLE) static_cast<void>(Wait(submissions_));
  } else {
    functions_.DeviceWaitIdle(device_);
  }
  timeline_ = {};
  layout_ = {};
  if (!callers_) functions_.DestroyDevice(device_, nullptr);
}

Status Runtime::Check(VkResult result, std::string_view doing) const {
  if (result == VK_ERROR_DEVICE_LOST) is_lost_ = true;
  return ToStatus(result, doing);
}

base::Result<uint64_t> Runtime::Submit(std::span<const VkCommandBuffer> commands) {
  constexpr std::string_view kDoing = "submit a run";
  const std::lock_guard lock(queue_mutex_);
  if (instance_.validation() != nullptr) {
    ONNXIFI_RETURN_IF_ERROR(instance_.validation()->Check());
  }
  if (is_lost_) return ToStatus(VK_ERROR_DEVICE_LOST, kDoing);
  const uint64_t submission = submissions_ + 1;
  VkSemaphore semaphore = timeline_.get();
  VkTimelineSemaphoreSubmitInfo values{};
  values.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &submission;
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.pNext = &values;
  submit.commandBufferCount = static_cast<uint32_t>(commands.size());
  submit.pCommandBuffers = commands.data();
  submit.signalSemaphoreCount = 1;
  submit.pSignalSemaphores = &semaphore;
  const QueueLock callers_turn(callers_ ? &*callers_ : nullptr);
  ONNXIFI_RETURN_IF_ERROR(
      Check(functions_.QueueSubmit(queue_, 1, &submit, VK_NULL_HANDLE), kDoing));
  submissions_ = submission;
  return submission;
}

VkResult Runtime::WaitFor(uint64_t submission, uint64_t timeout_ns) const {
  VkSemaphore semaphore = timeline_.get();
  VkSemaphoreWaitInfo wait{};
  wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  wait.semaphoreCount = 1;
  wait.pSemaphores = &semaphore;
  wait.pValues = &submission;
  return functions_.WaitSemaphores(device_, &wait, timeout_ns);
}

bool Runtime::IsDone(uint64_t submission) const {
  if (is_lost_) return true;
  const VkResult result = WaitFor(submission, /*timeout_ns=*/0);
  if (result == VK_TIMEOUT) return false;
  // Who cannot be asked is asked again.
  return Check(result, "look at a run").ok() || is_lost_;
}

Status Runtime::Wait(uint64_t submission) {
  constexpr std::string_view kDoing = "finish a run";
  if (is_lost_) return ToStatus(VK_ERROR_DEVICE_LOST, kDoing);
  Status status = Check(WaitFor(submission, UINT64_MAX), kDoing);
  if (!status.ok() && !is_lost_) {
    // The device may still use what the caller is going to give up: there is another way to wait.
    const std::lock_guard lock(queue_mutex_);
    const QueueLock callers_turn(callers_ ? &*callers_ : nullptr);
    for (auto pause = kFirstPause; pause < kLastPause && !is_lost_; pause *= 2) {
      const VkResult result = functions_.DeviceWaitIdle(device_);
      if (result == VK_SUCCESS) return base::Ok();
      if (result == VK_ERROR_DEVICE_LOST) break;
      std::this_thread::sleep_for(pause);
    }
    is_lost_ = true;
  }
  ONNXIFI_RETURN_IF_ERROR(std::move(status));
  return instance_.validation() == nullptr ? base::Ok() : instance_.validation()->Check();
}

uint64_t Runtime::AvailableBytes(const MemoryType& type) const {
  if (!info_.has_memory_budget) {
    return type.heap_bytes - std::min<uint64_t>(type.heap_bytes, own_bytes_[type.heap]);
  }
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  properties.pNext = &budget;
  instance_api().GetPhysicalDeviceMemoryProperties2(info_.id, &properties);
  return budget.heapBudget[type.heap] -
         std::min(budget.heapBudget[type.heap], budget.heapUsage[type.heap]);
}

}  // namespace onnxifi::vulkan
