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

// The features that kernels use, and shaderFloat64, which they use where there is one.
struct EnabledFeatures {
  bool address = false;
  bool scalar_layout = false;
  bool timeline = false;
  bool int8 = false;
  bool storage8 = false;
  bool storage16 = false;
  bool int64 = false;
  bool int16 = false;
  bool float64 = false;
  // Without these, kernels do without cooperative matrices.
  bool float16 = false;
  bool memory_model = false;
  bool matrices = false;
  bool bfloat16_matrices = false;
};

template <typename T>
const T& As(const VkBaseInStructure* part) {
  return *reinterpret_cast<const T*>(part);
}

EnabledFeatures ReadFeatures(const void* chain) {
  EnabledFeatures enabled;
  for (const auto* part = static_cast<const VkBaseInStructure*>(chain); part != nullptr;
       part = part->pNext) {
    // No constants of older headers.
    if (part->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR) {
      const auto& features = As<VkPhysicalDeviceShaderBfloat16FeaturesKHR>(part);
      enabled.bfloat16_matrices |= features.shaderBFloat16Type != VK_FALSE &&
                                   features.shaderBFloat16CooperativeMatrix != VK_FALSE;
      continue;
    }
    if (part->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR) {
      enabled.matrices |=
          As<VkPhysicalDeviceCooperativeMatrixFeaturesKHR>(part).cooperativeMatrix != VK_FALSE;
      continue;
    }
    switch (part->sType) {
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2: {
        const auto& features = As<VkPhysicalDeviceFeatures2>(part).features;
        enabled.int64 |= features.shaderInt64 != VK_FALSE;
        enabled.int16 |= features.shaderInt16 != VK_FALSE;
        enabled.float64 |= features.shaderFloat64 != VK_FALSE;
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
        enabled.storage16 |=
            As<VkPhysicalDeviceVulkan11Features>(part).storageBuffer16BitAccess != VK_FALSE;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES: {
        const auto& features = As<VkPhysicalDeviceVulkan12Features>(part);
        enabled.address |= features.bufferDeviceAddress != VK_FALSE;
        enabled.scalar_layout |= features.scalarBlockLayout != VK_FALSE;
        enabled.timeline |= features.timelineSemaphore != VK_FALSE;
        enabled.int8 |= features.shaderInt8 != VK_FALSE;
        enabled.storage8 |= features.storageBuffer8BitAccess != VK_FALSE;
        enabled.float16 |= features.shaderFloat16 != VK_FALSE;
        enabled.memory_model |= features.vulkanMemoryModel != VK_FALSE;
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES:
        enabled.address |=
            As<VkPhysicalDeviceBufferDeviceAddressFeatures>(part).bufferDeviceAddress != VK_FALSE;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SCALAR_BLOCK_LAYOUT_FEATURES:
        enabled.scalar_layout |=
            As<VkPhysicalDeviceScalarBlockLayoutFeatures>(part).scalarBlockLayout != VK_FALSE;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES:
        enabled.timeline |=
            As<VkPhysicalDeviceTimelineSemaphoreFeatures>(part).timelineSemaphore != VK_FALSE;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES:
        enabled.int8 |= As<VkPhysicalDeviceShaderFloat16Int8Features>(part).shaderInt8 != VK_FALSE;
        enabled.float16 |=
            As<VkPhysicalDeviceShaderFloat16Int8Features>(part).shaderFloat16 != VK_FALSE;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES:
        enabled.memory_model |=
            As<VkPhysicalDeviceVulkanMemoryModelFeatures>(part).vulkanMemoryModel != VK_FALSE;
        break;

      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES:
        enabled.storage8 |=
            As<VkPhysicalDevice8BitStorageFeatures>(part).storageBuffer8BitAccess != VK_FALSE;
        break;
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES:
        enabled.storage16 |=
            As<VkPhysicalDevice16BitStorageFeatures>(part).storageBuffer16BitAccess != VK_FALSE;
        break;
      default:
        break;
    }
  }
  return enabled;
}

Status CheckFeatures(const void* chain, DeviceInfo& info) {
  const EnabledFeatures enabled = ReadFeatures(chain);
  codegen::MatrixUnits& units = info.capabilities.matrix_units;
  if (!enabled.bfloat16_matrices) units.bfloat16 = {};
  if (!enabled.matrices || !enabled.float16 || !enabled.memory_model ||
      (units.float16.rows == 0 && units.bfloat16.rows == 0)) {
    units = {};
  }
  info.has_cooperative_matrices = units.kind == codegen::MatrixUnits::Kind::kCooperative;
  info.product_library = ProductLibrary(units);
  const std::pair<bool, const char*> needed[] = {
      {enabled.address, "bufferDeviceAddress"},
      {enabled.scalar_layout, "scalarBlockLayout"},
      {enabled.timeline, "timelineSemaphore"},
      {enabled.int8, "shaderInt8"},
      {enabled.storage8, "storageBuffer8BitAccess"},
      {enabled.storage16, "storageBuffer16BitAccess"},
      {enabled.int64, "shaderInt64"},
      {enabled.int16, "shaderInt16"},
      {enabled.float64 || !info.capabilities.has_float64, "shaderFloat64"}};
  for (const auto& [is_enabled, name] : needed) {
    if (!is_enabled) {
      return Unfit("The Vulkan device to share was made without " + std::string(name) + ".");
    }
  }
  return base::Ok();
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
