// SPDX-License-Identifier: Apache-2.0
//
// Api: the functions of Vulkan that this backend calls, looked up in the loader when the plugin is
// first used, so that it loads on machines without one; and the one place where their results
// become statuses. A table belongs to the loader, to an instance or to a device.

#ifndef ONNXIFI_BACKENDS_VULKAN_API_H_
#define ONNXIFI_BACKENDS_VULKAN_API_H_

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include <string_view>
#include <utility>

#include "backends/core/base/result.h"

namespace onnxifi::vulkan {

#define ONNXIFI_VULKAN_GLOBAL_FUNCTIONS(X) \
  X(CreateInstance)                        \
  X(EnumerateInstanceVersion)

#define ONNXIFI_VULKAN_INSTANCE_FUNCTIONS(X)   \
  X(CreateDevice)                              \
  X(DestroyInstance)                           \
  X(EnumerateDeviceExtensionProperties)        \
  X(EnumeratePhysicalDevices)                  \
  X(GetDeviceProcAddr)                         \
  X(GetPhysicalDeviceExternalBufferProperties) \
  X(GetPhysicalDeviceFeatures2)                \
  X(GetPhysicalDeviceMemoryProperties2)        \
  X(GetPhysicalDeviceProperties)               \
  X(GetPhysicalDeviceProperties2)              \
  X(GetPhysicalDeviceQueueFamilyProperties)

#define ONNXIFI_VULKAN_DEVICE_FUNCTIONS(X) \
  X(AllocateCommandBuffers)                \
  X(AllocateMemory)                        \
  X(BeginCommandBuffer)                    \
  X(BindBufferMemory)                      \
  X(CmdBindPipeline)                       \
  X(CmdCopyBuffer)                         \
  X(CmdDispatch)                           \
  X(CmdPipelineBarrier)                    \
  X(CmdPushConstants)                      \
  X(CmdResetQueryPool)                     \
  X(CmdWriteTimestamp)                     \
  X(CreateBuffer)                          \
  X(CreateCommandPool)                     \
  X(CreateComputePipelines)                \
  X(CreatePipelineCache)                   \
  X(CreatePipelineLayout)                  \
  X(CreateQueryPool)                       \
  X(CreateSemaphore)                       \
  X(CreateShaderModule)                    \
  X(DestroyBuffer)                         \
  X(DestroyCommandPool)                    \
  X(DestroyDevice)                         \
  X(DestroyPipeline)                       \
  X(DestroyPipelineCache)                  \
  X(DestroyPipelineLayout)                 \
  X(DestroyQueryPool)                      \
  X(DestroySemaphore)                      \
  X(DestroyShaderModule)                   \
  X(DeviceWaitIdle)                        \
  X(EndCommandBuffer)                      \
  X(FreeMemory)                            \
  X(GetBufferDeviceAddress)                \
  X(GetBufferMemoryRequirements)           \
  X(GetDeviceQueue)                        \
  X(GetPipelineCacheData)                  \
  X(GetQueryPoolResults)                   \
  X(MapMemory)                             \
  X(QueueSubmit)                           \
  X(ResetCommandPool)                      \
  X(WaitSemaphores)

// Plain pointers, so that a test can put a function that fails in a real one's place.
#define ONNXIFI_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;
struct Api {
  ONNXIFI_VULKAN_MEMBER(GetInstanceProcAddr)
  ONNXIFI_VULKAN_GLOBAL_FUNCTIONS(ONNXIFI_VULKAN_MEMBER)
};
struct InstanceApi {
  ONNXIFI_VULKAN_INSTANCE_FUNCTIONS(ONNXIFI_VULKAN_MEMBER)
};
struct DeviceApi {
  ONNXIFI_VULKAN_DEVICE_FUNCTIONS(ONNXIFI_VULKAN_MEMBER)
};
#undef ONNXIFI_VULKAN_MEMBER

// From the library of this name. BACKEND_UNAVAILABLE if there is none, or if it lacks a function.
// Once opened it stays: drivers run threads of their own.
base::Result<Api> LoadApi(const char* library);
inline constexpr char kLoaderLibrary[] = "libvulkan.so.1";
// BACKEND_UNAVAILABLE if a function is missing.
base::Result<InstanceApi> LoadInstanceApi(const Api& api, VkInstance instance);
base::Result<DeviceApi> LoadDeviceApi(const InstanceApi& api, VkDevice device);

// Ok for VK_SUCCESS; else the documented status with what was being done and the fault's name.
// `doing` reads like "allocate 64 bytes".
base::Status ToStatus(VkResult result, std::string_view doing);

// An owned object of a device.
template <typename T>
class Handle {
 public:
  using Destroy = void(VKAPI_PTR*)(VkDevice, T, const VkAllocationCallbacks*);
  Handle() = default;
  Handle(VkDevice device, T object, Destroy destroy)
      : device_(device), object_(object), destroy_(destroy) {}
  Handle(Handle&& other) noexcept
      : device_(other.device_),
        object_(std::exchange(other.object_, VK_NULL_HANDLE)),
        destroy_(other.destroy_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(object_, other.object_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (object_ != VK_NULL_HANDLE) destroy_(device_, object_, nullptr);
  }
  T get() const { return object_; }

 private:
  VkDevice device_ = VK_NULL_HANDLE;
  T object_ = VK_NULL_HANDLE;
  Destroy destroy_ = nullptr;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_API_H_
