// SPDX-License-Identifier: Apache-2.0
//
// FakeDriver: what it is told and tells, instances, and the questions to physical devices.

#include "backends/vulkan/testing/fake_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "backends/vulkan/testing/fake_objects.h"

namespace onnxifi::vulkan {
namespace fake {

namespace {

constexpr Id kPhysicalDevices = Id{1} << 32;

FakeDevice* PhysicalOf(VkPhysicalDevice id, const char* function) {
  State& state = TheState();
  const Id index = IdOf(id) - kPhysicalDevices;
  if (index < state.devices.size()) return &state.devices[index];
  Note(std::string("vk") + function + " is given a physical device that does not exist.");
  return nullptr;
}

template <size_t kSize>
void CopyText(const std::string& text, char (&to)[kSize]) {
  std::memset(to, 0, kSize);
  std::memcpy(to, text.data(), std::min(text.size(), kSize - 1));
}

// Vulkan's way to tell a list: its length, then as much as there is room for.
template <typename T>
VkResult Tell(const std::vector<T>& list, uint32_t* count, T* room) {
  const auto length = static_cast<uint32_t>(list.size());
  if (room == nullptr) {
    *count = length;
    return VK_SUCCESS;
  }
  const uint32_t told = std::min(*count, length);
  std::copy_n(list.begin(), told, room);
  *count = told;
  return told < length ? VK_INCOMPLETE : VK_SUCCESS;
}

struct Feature {
  const char* name;
  VkBool32 VkPhysicalDeviceFeatures::*of_1_0;
  VkBool32 VkPhysicalDeviceVulkan11Features::*of_1_1;
  VkBool32 VkPhysicalDeviceVulkan12Features::*of_1_2;
};
using Of10 = VkPhysicalDeviceFeatures;
using Of11 = VkPhysicalDeviceVulkan11Features;
using Of12 = VkPhysicalDeviceVulkan12Features;
// A device has these unless it lacks them, and no others.
constexpr Feature kFeatures[] = {
    {"shaderInt64", &Of10::shaderInt64, nullptr, nullptr},
    {"shaderInt16", &Of10::shaderInt16, nullptr, nullptr},
    {"shaderFloat64", &Of10::shaderFloat64, nullptr, nullptr},
    {"storageBuffer16BitAccess", nullptr, &Of11::storageBuffer16BitAccess, nullptr},
    {"bufferDeviceAddress", nullptr, nullptr, &Of12::bufferDeviceAddress},
    {"scalarBlockLayout", nullptr, nullptr, &Of12::scalarBlockLayout},
    {"timelineSemaphore", nullptr, nullptr, &Of12::timelineSemaphore},
    {"shaderInt8", nullptr, nullptr, &Of12::shaderInt8},
    {"shaderFloat16", nullptr, nullptr, &Of12::shaderFloat16},
    {"storageBuffer8BitAccess", nullptr, nullptr, &Of12::storageBuffer8BitAccess},
    {"vulkanMemoryModel", nullptr, nullptr, &Of12::vulkanMemoryModel},
};

// The features in a chain of structures, by what a chain may hold.
struct FeatureChain {
  explicit FeatureChain(void* chain) {
    for (auto* link = static_cast<VkBaseOutStructure*>(chain); link != nullptr;
         link = link->pNext) {
      void* const at = link;
      // No constants of older headers.
      if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR) {
        bfloat16 = static_cast<VkPhysicalDeviceShaderBfloat16FeaturesKHR*>(at);
        continue;
      }
      if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR) {
        matrices =
            &static_cast<VkPhysicalDeviceCooperativeMatrixFeaturesKHR*>(at)->cooperativeMatrix;
        continue;
      }
      switch (link->sType) {
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2:
          of_1_0 = &static_cast<VkPhysicalDeviceFeatures2*>(at)->features;
          break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
          of_1_1 = static_cast<Of11*>(at);
          break;
        case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES:
          of_1_2 = static_cast<Of12*>(at);
          break;
        default:
          break;
      }
    }
  }
  // Null if the chain lacks its structure.
  VkBool32* Find(const Feature& feature) const {
    if (feature.of_1_0 != nullptr) return of_1_0 == nullptr ? nullptr : &(of_1_0->*feature.of_1_0);
    if (feature.of_1_1 != nullptr) return of_1_1 == nullptr ? nullptr : &(of_1_1->*feature.of_1_1);
    return of_1_2 == nullptr ? nullptr : &(of_1_2->*feature.of_1_2);
  }

  Of10* of_1_0 = nullptr;
  Of11* of_1_1 = nullptr;
  Of12* of_1_2 = nullptr;
  VkBool32* matrices = nullptr;
  VkPhysicalDeviceShaderBfloat16FeaturesKHR* bfloat16 = nullptr;
};

bool HasMatrices(const FakeDevice& device) {
  return device.extensions.contains(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME) &&
         !device.lacks.contains("cooperativeMatrix");
}

bool HasBfloat16(const FakeDevice& device, const char* feature) {
  return device.extensions.contains(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME) &&
         !device.lacks.contains(feature);
}

VKAPI_ATTR VkResult VKAPI_CALL EnumerateInstanceVersion(uint32_t* version) {
  FAKE_CALL(EnumerateInstanceVersion, 0);
  *version = TheState().loader_version;
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL CreateInstance(const VkInstanceCreateInfo* info,
                                              const VkAllocationCallbacks*, VkInstance* made) {
  FAKE_CALL(CreateInstance, 0);
  if (info->enabledLayerCount > 0) return VK_ERROR_LAYER_NOT_PRESENT;
  if (info->enabledExtensionCount > 0) return VK_ERROR_EXTENSION_NOT_PRESENT;
  *made = HandleOf<VkInstance>(Make<Instance>(0).id);
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL DestroyInstance(VkInstance id, const VkAllocationCallbacks*) {
  FAKE_LOCK();
  for (const auto& [child, object] : TheState().objects) {
    if (object->owner != 0 && object->owner == IdOf(id)) {
      Note("vkDestroyInstance takes away an instance with an open device.");
    }
  }
  Destroy<Instance>(0, IdOf(id), "DestroyInstance");
}

VKAPI_ATTR VkResult VKAPI_CALL EnumeratePhysicalDevices(VkInstance instance, uint32_t* count,
                                                        VkPhysicalDevice* devices) {
  FAKE_LOCK();
  const VkResult fault = FaultOf("EnumeratePhysicalDevices", 0);
  // As if there were more.
  if (fault != VK_SUCCESS && fault != VK_INCOMPLETE) return fault;
  Find<Instance>(IdOf(instance), "EnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> all;
  for (size_t k = 0; k < TheState().devices.size(); ++k) {
    all.push_back(HandleOf<VkPhysicalDevice>(kPhysicalDevices + k));
  }
  const VkResult told = Tell(all, count, devices);
  return fault == VK_SUCCESS ? told : fault;
}

VKAPI_ATTR VkResult VKAPI_CALL EnumerateDeviceExtensionProperties(VkPhysicalDevice id, const char*,
                                                                  uint32_t* count,
                                                                  VkExtensionProperties* room) {
  FAKE_CALL(EnumerateDeviceExtensionProperties, 0);
  const FakeDevice* const device = PhysicalOf(id, "EnumerateDeviceExtensionProperties");
  std::vector<VkExtensionProperties> all;
  for (const std::string& name : device->extensions) {
    VkExtensionProperties& properties = all.emplace_back();
    CopyText(name, properties.extensionName);
    properties.specVersion = 1;
  }
  return Tell(all, count, room);
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceFeatures2(VkPhysicalDevice id,
                                                      VkPhysicalDeviceFeatures2* features) {
  FAKE_LOCK();
  const FakeDevice* const device = PhysicalOf(id, "GetPhysicalDeviceFeatures2");
  const FeatureChain chain(features);
  for (const Feature& feature : kFeatures) {
    VkBool32* const place = chain.Find(feature);
    if (place != nullptr) *place = device->lacks.contains(feature.name) ? VK_FALSE : VK_TRUE;
  }
  if (chain.matrices != nullptr) *chain.matrices = HasMatrices(*device) ? VK_TRUE : VK_FALSE;
  if (chain.bfloat16 != nullptr) {
    const auto has = [device](const char* feature) {
      return HasBfloat16(*device, feature) ? VK_TRUE : VK_FALSE;
    };
    chain.bfloat16->shaderBFloat16Type = has("shaderBFloat16Type");
    chain.bfloat16->shaderBFloat16CooperativeMatrix = has("shaderBFloat16CooperativeMatrix");
  }
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties(VkPhysicalDevice id,
                                                       VkPhysicalDeviceProperties* properties) {
  FAKE_LOCK();
  const FakeDevice* const device = PhysicalOf(id, "GetPhysicalDeviceProperties");
  *properties = {};
  properties->apiVersion = device->api_version;
  properties->driverVersion = device->driver_version;
  properties->vendorID = 0x10005;
  properties->deviceType = device->type;
  CopyText(device->name, properties->deviceName);
  VkPhysicalDeviceLimits& limits = properties->limits;
  limits.maxPushConstantsSize = 128;
  limits.maxMemoryAllocationCount = 4096;
  limits.maxComputeSharedMemorySize = 32 << 10;
  limits.maxComputeWorkGroupInvocations = 1024;
  limits.maxStorageBufferRange = 128U << 20;
  limits.nonCoherentAtomSize = 64;
  limits.minMemoryMapAlignment = 64;
  limits.timestampPeriod = 10;
  limits.timestampComputeAndGraphics = VK_TRUE;
  for (size_t k = 0; k < 3; ++k) {
    limits.maxComputeWorkGroupCount[k] = device->most_groups[k];
    limits.maxComputeWorkGroupSize[k] = 1024;
  }
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties2(VkPhysicalDevice id,
                                                        VkPhysicalDeviceProperties2* properties) {
  FAKE_LOCK();
  const FakeDevice* const device = PhysicalOf(id, "GetPhysicalDeviceProperties2");
  GetPhysicalDeviceProperties(id, &properties->properties);
  for (auto* link = static_cast<VkBaseOutStructure*>(properties->pNext); link != nullptr;
       link = link->pNext) {
    void* const at = link;
    if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES) {
      auto& of_1_1 = *static_cast<VkPhysicalDeviceVulkan11Properties*>(at);
      std::ranges::copy(device->uuid, std::begin(of_1_1.deviceUUID));
      std::ranges::copy(device->driver_uuid, std::begin(of_1_1.driverUUID));
      of_1_1.subgroupSize = 32;
      of_1_1.maxMemoryAllocationSize = device->largest_allocation_bytes;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES) {
      auto& of_1_2 = *static_cast<VkPhysicalDeviceVulkan12Properties*>(at);
      CopyText(device->driver_name, of_1_2.driverName);
      CopyText(device->driver_info, of_1_2.driverInfo);
      of_1_2.roundingModeIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
      of_1_2.denormBehaviorIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
      of_1_2.shaderSignedZeroInfNanPreserveFloat32 = VK_TRUE;
      of_1_2.shaderRoundingModeRTEFloat32 = VK_TRUE;
      of_1_2.shaderDenormPreserveFloat32 = VK_TRUE;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES) {
      auto& identity = *static_cast<VkPhysicalDeviceIDProperties*>(at);
      std::ranges::copy(device->uuid, std::begin(identity.deviceUUID));
      std::ranges::copy(device->driver_uuid, std::begin(identity.driverUUID));
    } else if (link->sType ==
               VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT) {
      static_cast<VkPhysicalDeviceExternalMemoryHostPropertiesEXT*>(at)
          ->minImportedHostPointerAlignment = device->host_memory_alignment;
    }
  }
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceExternalBufferProperties(
    VkPhysicalDevice id, const VkPhysicalDeviceExternalBufferInfo* info,
    VkExternalBufferProperties* told) {
  FAKE_LOCK();
  const FakeDevice* const device = PhysicalOf(id, "GetPhysicalDeviceExternalBufferProperties");
  VkExternalMemoryProperties& properties = told->externalMemoryProperties;
  properties = {};
  if ((device->refused_handle_types & info->handleType) != 0) return;
  properties.externalMemoryFeatures = VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
  properties.compatibleHandleTypes = info->handleType;
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceMemoryProperties2(
    VkPhysicalDevice id, VkPhysicalDeviceMemoryProperties2* properties) {
  FAKE_LOCK();
  const FakeDevice* const device = PhysicalOf(id, "GetPhysicalDeviceMemoryProperties2");
  VkPhysicalDeviceMemoryProperties& of = properties->memoryProperties;
  of = {};
  of.memoryHeapCount = static_cast<uint32_t>(device->heaps.size());
  for (size_t k = 0; k < device->heaps.size(); ++k) {
    of.memoryHeaps[k] = {device->heaps[k].size_bytes, device->heaps[k].flags};
  }
  of.memoryTypeCount = static_cast<uint32_t>(device->memory_types.size());
  std::ranges::copy(device->memory_types, std::begin(of.memoryTypes));
  for (auto* link = static_cast<VkBaseOutStructure*>(properties->pNext); link != nullptr;
       link = link->pNext) {
    if (link->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) continue;
    void* const at = link;
    auto& budget = *static_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(at);
    for (size_t k = 0; k < device->heaps.size(); ++k) {
      budget.heapBudget[k] = device->heaps[k].budget_bytes;
      budget.heapUsage[k] = device->heaps[k].others_bytes;
    }
    for (const auto& [child, object] : TheState().objects) {
      const auto* const memory = dynamic_cast<const Memory*>(object.get());
      if (memory == nullptr) continue;
      budget.heapUsage[device->memory_types[memory->type].heapIndex] += memory->size_bytes;
    }
  }
}

VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice id,
                                                                  uint32_t* count,
                                                                  VkQueueFamilyProperties* room) {
  FAKE_LOCK();
  Tell(PhysicalOf(id, "GetPhysicalDeviceQueueFamilyProperties")->queue_families, count, room);
}

VKAPI_ATTR VkResult VKAPI_CALL CreateDevice(VkPhysicalDevice id, const VkDeviceCreateInfo* info,
                                            const VkAllocationCallbacks*, VkDevice* made) {
  FAKE_CALL(CreateDevice, 0);
  const FakeDevice* const physical = PhysicalOf(id, "CreateDevice");
  for (uint32_t k = 0; k < info->enabledExtensionCount; ++k) {
    if (!physical->extensions.contains(info->ppEnabledExtensionNames[k])) {
      return VK_ERROR_EXTENSION_NOT_PRESENT;
    }
  }
  const uint32_t family = info->pQueueCreateInfos[0].queueFamilyIndex;
  if (info->queueCreateInfoCount != 1 || family >= physical->queue_families.size() ||
      physical->queue_families[family].queueCount == 0) {
    Note("vkCreateDevice asks for queues that the device has not.");
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  const FeatureChain chain(const_cast<void*>(info->pNext));
  const auto is_on = [&](const Feature& feature) {
    const VkBool32* const place = chain.Find(feature);
    return place != nullptr && *place != VK_FALSE;
  };
  for (const Feature& feature : kFeatures) {
    if (is_on(feature) && physical->lacks.contains(feature.name)) {
      return VK_ERROR_FEATURE_NOT_PRESENT;
    }
  }
  const bool wants_matrices = chain.matrices != nullptr && *chain.matrices != VK_FALSE;
  if (wants_matrices && !HasMatrices(*physical)) return VK_ERROR_FEATURE_NOT_PRESENT;
  const bool wants_bfloat16 = chain.bfloat16 != nullptr &&
                              chain.bfloat16->shaderBFloat16Type != VK_FALSE &&
                              chain.bfloat16->shaderBFloat16CooperativeMatrix != VK_FALSE;
  if (wants_bfloat16 && (!HasBfloat16(*physical, "shaderBFloat16Type") ||
                         !HasBfloat16(*physical, "shaderBFloat16CooperativeMatrix"))) {
    return VK_ERROR_FEATURE_NOT_PRESENT;
  }
  auto& device = Make<Device>(0);
  // Instances are not told apart: the newest is the one that is asked.
  for (const auto& [other, object] : TheState().objects) {
    if (dynamic_cast<const Instance*>(object.get()) != nullptr) device.owner = other;
  }
  device.physical = IdOf(id) - kPhysicalDevices;
  device.has_addresses = chain.of_1_2 != nullptr && chain.of_1_2->bufferDeviceAddress != VK_FALSE;
  device.has_timelines = chain.of_1_2 != nullptr && chain.of_1_2->timelineSemaphore != VK_FALSE;
  const auto enables = [info](std::string_view extension) {
    return std::any_of(info->ppEnabledExtensionNames,
                       info->ppEnabledExtensionNames + info->enabledExtensionCount,
                       [extension](std::string_view name) { return name == extension; });
  };
  device.has_matrices = wants_matrices && enables(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME) &&
                        chain.of_1_2 != nullptr && chain.of_1_2->vulkanMemoryModel != VK_FALSE;
  device.has_float16 = chain.of_1_2 != nullptr && chain.of_1_2->shaderFloat16 != VK_FALSE;
  device.has_bfloat16_matrices =
      device.has_matrices && wants_bfloat16 && enables(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
  *made = HandleOf<VkDevice>(device.id);
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL GetPhysicalDeviceCooperativeMatrixPropertiesKHR(
    VkPhysicalDevice id, uint32_t* count, VkCooperativeMatrixPropertiesKHR* room) {
  FAKE_CALL(GetPhysicalDeviceCooperativeMatrixPropertiesKHR, 0);
  const FakeDevice* const device =
      PhysicalOf(id, "GetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  if (!HasMatrices(*device)) {
    Note("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR is asked of a device without them.");
  }
  return Tell(device->cooperative_matrices, count, room);
}

PFN_vkVoidFunction Look(const char* name) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  if (std::ranges::count(state.hidden, std::string(name)) > 0) return nullptr;
  const auto found = state.functions.find(name);
  return found == state.functions.end() ? nullptr : found->second;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice, const char* name) {
  return Look(name);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetInstanceProcAddr(VkInstance, const char* name) {
  return Look(name);
}

void AddInstanceFunctions(State& state) {
#define FAKE_ADD(name) state.Add(#name, name);
  FAKE_ADD(CreateDevice)
  FAKE_ADD(CreateInstance)
  FAKE_ADD(DestroyInstance)
  FAKE_ADD(EnumerateDeviceExtensionProperties)
  FAKE_ADD(EnumerateInstanceVersion)
  FAKE_ADD(EnumeratePhysicalDevices)
  FAKE_ADD(GetDeviceProcAddr)
  FAKE_ADD(GetPhysicalDeviceExternalBufferProperties)
  FAKE_ADD(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)
  FAKE_ADD(GetPhysicalDeviceFeatures2)
  FAKE_ADD(GetPhysicalDeviceMemoryProperties2)
  FAKE_ADD(GetPhysicalDeviceProperties)
  FAKE_ADD(GetPhysicalDeviceProperties2)
  FAKE_ADD(GetPhysicalDeviceQueueFamilyProperties)
#undef FAKE_ADD
}

}  // namespace

State& TheState() {
  static State state;
  static const bool is_made = [] {
    AddInstanceFunctions(state);
    AddMemoryFunctions(state);
    AddCommandFunctions(state);
    state.devices.emplace_back();
    return true;
  }();
  static_cast<void>(is_made);
  return state;
}

void Note(std::string sentence) {
  // A driver may not survive it, and neither may this one.
  std::fprintf(stderr, "Misuse of Vulkan: %s\n", sentence.c_str());
  TheState().misuses.push_back(std::move(sentence));
}

VkResult FaultOf(const char* function, Id device) {
  State& state = TheState();
  ++state.calls[function];
  const auto found = state.faults.find(function);
  if (found == state.faults.end()) return VK_SUCCESS;
  Fault& fault = found->second;
  if (fault.calls_before > 0) {
    --fault.calls_before;
    return VK_SUCCESS;
  }
  if (fault.count == 0) return VK_SUCCESS;
  if (fault.count != INT_MAX) --fault.count;
  const auto object = state.objects.find(device);
  if (fault.result == VK_ERROR_DEVICE_LOST && object != state.objects.end()) {
    Lose(dynamic_cast<Device&>(*object->second));
  }
  return fault.result;
}

}  // namespace fake

using fake::State;
using fake::TheState;

Api FakeDriver::GetApi() {
  Api api;
  api.GetInstanceProcAddr = fake::GetInstanceProcAddr;
  const auto look_up = [](const char* name) { return fake::Look(name); };
#define FAKE_MEMBER(name) api.name = reinterpret_cast<PFN_vk##name>(look_up("vk" #name));
  ONNXIFI_VULKAN_GLOBAL_FUNCTIONS(FAKE_MEMBER)
#undef FAKE_MEMBER
  return api;
}

std::vector<std::string> FakeDriver::Functions() { return TheState().functions_that_fail; }

void FakeDriver::Reset() {
  Recover();
  SetLoaderVersion(VK_API_VERSION_1_3);
  SetDevices({FakeDevice{}});
  const std::lock_guard lock(TheState().mutex);
  TheState().misuses.clear();
}

void FakeDriver::SetDevices(std::vector<FakeDevice> devices) {
  const std::lock_guard lock(TheState().mutex);
  TheState().objects.clear();
  TheState().devices = std::move(devices);
}

void FakeDriver::SetBudget(size_t device, size_t heap, uint64_t budget_bytes,
                           uint64_t others_bytes) {
  const std::lock_guard lock(TheState().mutex);
  FakeDevice::Heap& of = TheState().devices[device].heaps[heap];
  of.budget_bytes = budget_bytes;
  of.others_bytes = others_bytes;
}

void FakeDriver::Fail(const std::string& function, VkResult result, int call, int count) {
  const std::lock_guard lock(TheState().mutex);
  TheState().faults[function] = {result, call, count};
}

void FakeDriver::Hide(const std::string& function) {
  const std::lock_guard lock(TheState().mutex);
  TheState().hidden.push_back("vk" + function);
}

void FakeDriver::LoseOpenDevices(size_t device) {
  const std::lock_guard lock(TheState().mutex);
  for (const auto& [id, object] : TheState().objects) {
    auto* const open = dynamic_cast<fake::Device*>(object.get());
    if (open != nullptr && open->physical == device) fake::Lose(*open);
  }
}

#define FAKE_SET(function, type, member)          \
  void FakeDriver::function(type value) {         \
    const std::lock_guard lock(TheState().mutex); \
    TheState().member = value;                    \
  }
FAKE_SET(SetLoaderVersion, uint32_t, loader_version)
FAKE_SET(HoldQueues, bool, holds_queues)
#undef FAKE_SET

void FakeDriver::Recover() {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.holds_queues = false;
  state.faults.clear();
  state.calls.clear();
  state.hidden.clear();
  state.destroyed.clear();
  state.starts.clear();
  state.barriers = 0;
  state.copies = 0;
  state.pipelines_from_cache = 0;
  state.modules.clear();
  state.allocated_types.clear();
  state.most_allocations = 0;
}

int FakeDriver::CallCount(const std::string& function) {
  const std::lock_guard lock(TheState().mutex);
  const auto found = TheState().calls.find(function);
  return found == TheState().calls.end() ? 0 : found->second;
}

int64_t FakeDriver::LiveObjects() {
  const std::lock_guard lock(TheState().mutex);
  return static_cast<int64_t>(TheState().objects.size());
}

int64_t FakeDriver::LiveAllocations() {
  const std::lock_guard lock(TheState().mutex);
  return std::ranges::count_if(TheState().objects, [](const auto& entry) {
    return dynamic_cast<const fake::Memory*>(entry.second.get()) != nullptr;
  });
}

#define FAKE_TELL(type, function, member)         \
  type FakeDriver::function() {                   \
    const std::lock_guard lock(TheState().mutex); \
    return TheState().member;                     \
  }
FAKE_TELL(int64_t, MostAllocations, most_allocations)
FAKE_TELL(std::vector<std::string>, Misuses, misuses)
FAKE_TELL(std::vector<FakeStart>, Starts, starts)
FAKE_TELL(int, BarrierCount, barriers)
FAKE_TELL(int, CopyCount, copies)
FAKE_TELL(int, PipelinesFromCache, pipelines_from_cache)
FAKE_TELL(std::chrono::steady_clock::time_point, LastSubmission, last_submission)
FAKE_TELL(std::vector<std::vector<uint32_t>>, Modules, modules)
FAKE_TELL(std::vector<uint32_t>, AllocatedTypes, allocated_types)
#undef FAKE_TELL

}  // namespace onnxifi::vulkan
