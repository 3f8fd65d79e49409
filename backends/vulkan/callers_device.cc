// SPDX-License-Identifier: Apache-2.0
//
// CallersDevice: the physical device is known by its UUID and driver, since handles of another
// instance are other ones; features are taken from what the caller says.

#include "backends/vulkan/callers_device.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backends/vulkan/cooperative_matrices.h"

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;

Status Unfit(std::string sentence) { return Status(Code::kInvalidProperty, std::move(sentence)); }

Status CheckFeatures(const void* chain, DeviceInfo& info) {
  info.features = ReadFeatures(chain);
  codegen::MatrixUnits& units = info.capabilities.matrix_units;
  const Features& enabled = info.features;
  if (!enabled.bfloat16 || !enabled.bfloat16_matrices) units.bfloat16 = {};
  if (!enabled.matrices || !enabled.float16 || !enabled.memory_model ||
      (units.float16.rows == 0 && units.bfloat16.rows == 0)) {
    units = {};
  }
  info.has_cooperative_matrices = units.kind == codegen::MatrixUnits::Kind::kCooperative;
  info.product_library = ProductLibrary(units);
  const char* lack = enabled.FindLack();
  if (lack == nullptr && !enabled.float64 && info.capabilities.has_float64) lack = "shaderFloat64";
  if (lack == nullptr) return base::Ok();
  return Unfit("The Vulkan device to share was made without " + std::string(lack) + ".");
}

// Fills in the caller's handle.
Status CheckPhysicalDevice(const InstanceApi& api, VkInstance instance, VkPhysicalDevice id,
                           DeviceInfo& info) {
  uint32_t count = 0;
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api.EnumeratePhysicalDevices(instance, &count, nullptr),
                                   "list the devices of an instance"));
  std::vector<VkPhysicalDevice> ids(count);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api.EnumeratePhysicalDevices(instance, &count, ids.data()),
                                   "list the devices of an instance"));
  if (std::ranges::count(ids, id) == 0) {
    return Unfit("The physical device to share is none of its Vulkan instance.");
  }
  VkPhysicalDeviceIDProperties identity{};
  identity.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &identity;
  api.GetPhysicalDeviceProperties2(id, &properties);
  if (!std::ranges::equal(identity.deviceUUID, info.uuid) ||
      properties.properties.driverVersion != info.driver_version) {
    return Unfit("The Vulkan device to share is " +
                 std::string(static_cast<const char*>(properties.properties.deviceName)) +
                 ", another than this backend's " + info.name + ".");
  }
  info.id = id;
  return base::Ok();
}

Status CheckQueueFamily(const InstanceApi& api, uint32_t family, DeviceInfo& info) {
  uint32_t count = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(info.id, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.GetPhysicalDeviceQueueFamilyProperties(info.id, &count, families.data());
  if (family >= families.size()) {
    return Unfit("There is no queue family " + std::to_string(family) + "; " + info.name + " has " +
                 std::to_string(families.size()) + ".");
  }
  if ((families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
    return Unfit("Queues of family " + std::to_string(family) + " do not compute.");
  }
  info.queue_family = family;
  info.timestamp_bits = families[family].timestampValidBits;
  return base::Ok();
}

}  // namespace

Result<CallersDevice> CheckCallersDevice(const Api& api, uint64_t given, const DeviceInfo& info) {
  const auto* address = reinterpret_cast<const onnxVulkanDevice*>(static_cast<uintptr_t>(given));
  if (address == nullptr) return Unfit("The structure of the Vulkan device to share is NULL.");
  onnxVulkanDevice device = {};
  std::memcpy(&device, address, std::min(address->struct_size, sizeof(device)));
  const std::pair<const void*, const char*> parts[] = {{device.instance, "instance"},
                                                       {device.physical_device, "physical device"},
                                                       {device.device, "device"},
                                                       {device.queue, "queue"},
                                                       {device.features, "list of features"}};
  for (const auto& [part, name] : parts) {
    if (part == nullptr) return Unfit("The Vulkan " + std::string(name) + " to share is NULL.");
  }
  if ((device.lock_queue == nullptr) != (device.unlock_queue == nullptr)) {
    return Unfit("Of the functions that lock and unlock the Vulkan queue one is NULL.");
  }
  CallersDevice callers;
  callers.info = info;
  auto* instance = static_cast<VkInstance>(device.instance);
  const auto unfit = [](const Status& status) { return Unfit(std::string(status.sentence())); };
  Result<InstanceApi> instance_api = LoadInstanceApi(api, instance);
  if (!instance_api.ok()) return unfit(instance_api.status());
  callers.instance_api = *instance_api;
  ONNXIFI_RETURN_IF_ERROR(CheckPhysicalDevice(callers.instance_api, instance,
                                              static_cast<VkPhysicalDevice>(device.physical_device),
                                              callers.info));
  ONNXIFI_RETURN_IF_ERROR(
      CheckQueueFamily(callers.instance_api, device.queue_family, callers.info));
  ONNXIFI_RETURN_IF_ERROR(CheckFeatures(device.features, callers.info));
  callers.device = static_cast<VkDevice>(device.device);
  Result<DeviceApi> functions = LoadDeviceApi(callers.instance_api, callers.device);
  if (!functions.ok()) return unfit(functions.status());
  callers.functions = *functions;
  callers.queue = static_cast<VkQueue>(device.queue);
  callers.lock_queue = device.lock_queue;
  callers.unlock_queue = device.unlock_queue;
  callers.context = device.context;
  return callers;
}

}  // namespace onnxifi::vulkan
