// SPDX-License-Identifier: Apache-2.0
//
// Api: dlopen, the tables of functions, and the table of faults.

#include "backends/vulkan/api.h"

#include <dlfcn.h>

#include <string>

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;

struct Fault {
  VkResult result;
  Code code;
  const char* name;
};

// What is not here is a fault of this backend's own.
constexpr Fault kFaults[] = {
    {VK_ERROR_OUT_OF_HOST_MEMORY, Code::kNoSystemMemory, "out of host memory"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, Code::kNoDeviceMemory, "out of device memory"},
    {VK_ERROR_FRAGMENTATION, Code::kNoDeviceMemory, "memory is fragmented"},
    {VK_ERROR_MEMORY_MAP_FAILED, Code::kNoSystemMemory, "memory map failed"},
    {VK_ERROR_TOO_MANY_OBJECTS, Code::kNoDeviceResources, "too many objects"},
    {VK_ERROR_OUT_OF_POOL_MEMORY, Code::kNoDeviceResources, "out of pool memory"},
    {VK_ERROR_DEVICE_LOST, Code::kBackendUnavailable, "device lost"},
    {VK_ERROR_INITIALIZATION_FAILED, Code::kBackendUnavailable, "initialization failed"},
    {VK_ERROR_INCOMPATIBLE_DRIVER, Code::kBackendUnavailable, "no compatible driver"},
    {VK_ERROR_EXTENSION_NOT_PRESENT, Code::kBackendUnavailable, "extension not present"},
    {VK_ERROR_INVALID_EXTERNAL_HANDLE, Code::kInvalidMemoryLocation, "no memory of such a handle"},
    {VK_ERROR_LAYER_NOT_PRESENT, Code::kBackendUnavailable, "layer not present"},
    {VK_ERROR_FEATURE_NOT_PRESENT, Code::kBackendUnavailable, "feature not present"},
};

Status MissingFunction(const char* name) {
  return Status(Code::kBackendUnavailable,
                std::string("The Vulkan loader has no function vk") + name + ".");
}

}  // namespace

#define ONNXIFI_VULKAN_REQUIRE(name)                                \
  table.name = reinterpret_cast<PFN_vk##name>(look_up("vk" #name)); \
  if (table.name == nullptr) return MissingFunction(#name);

Result<Api> LoadApi(const char* library) {
  void* loader = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr) {
    return Status(Code::kBackendUnavailable, std::string("The Vulkan loader ") + library +
                                                 " cannot be opened: " + dlerror() + ".");
  }
  Api table;
  table.GetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
  if (table.GetInstanceProcAddr == nullptr) return MissingFunction("GetInstanceProcAddr");
  const auto look_up = [&](const char* name) {
    return table.GetInstanceProcAddr(VK_NULL_HANDLE, name);
  };
  ONNXIFI_VULKAN_GLOBAL_FUNCTIONS(ONNXIFI_VULKAN_REQUIRE)
  return table;
}

Result<InstanceApi> LoadInstanceApi(const Api& api, VkInstance instance) {
  InstanceApi table;
  const auto look_up = [&](const char* name) { return api.GetInstanceProcAddr(instance, name); };
  ONNXIFI_VULKAN_INSTANCE_FUNCTIONS(ONNXIFI_VULKAN_REQUIRE)
  return table;
}

Result<DeviceApi> LoadDeviceApi(const InstanceApi& api, VkDevice device) {
  DeviceApi table;
  const auto look_up = [&](const char* name) { return api.GetDeviceProcAddr(device, name); };
  ONNXIFI_VULKAN_DEVICE_FUNCTIONS(ONNXIFI_VULKAN_REQUIRE)
  return table;
}

#undef ONNXIFI_VULKAN_REQUIRE

Status ToStatus(VkResult result, std::string_view doing) {
  if (result == VK_SUCCESS) return base::Ok();
  const std::string attempt = "Vulkan cannot " + std::string(doing) + ": ";
  for (const Fault& fault : kFaults) {
    if (fault.result == result) return Status(fault.code, attempt + fault.name + ".");
  }
  return Status(Code::kInternalError,
                attempt + "error " + std::to_string(static_cast<int>(result)) + ".");
}

}  // namespace onnxifi::vulkan
