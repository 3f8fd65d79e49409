// SPDX-License-Identifier: Apache-2.0
//
// Driver: the instance, and the questions to its devices.

#include "backends/vulkan/driver.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "backends/core/base/cache_folder.h"
#include "backends/vulkan/cooperative_matrices.h"

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;

std::string VersionText(uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." +
         std::to_string(VK_API_VERSION_MINOR(version));
}

struct Properties {
  Properties() {
    all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    all.pNext = &of_1_1;
    of_1_1.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
    of_1_1.pNext = &of_1_2;
    of_1_2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  }
  Properties(const Properties&) = delete;
  Properties& operator=(const Properties&) = delete;

  VkPhysicalDeviceProperties2 all{};
  VkPhysicalDeviceVulkan11Properties of_1_1{};
  VkPhysicalDeviceVulkan12Properties of_1_2{};
};

bool HasExtension(const InstanceApi& api, VkPhysicalDevice id, const char* name) {
  uint32_t count = 0;
  if (api.EnumerateDeviceExtensionProperties(id, nullptr, &count, nullptr) != VK_SUCCESS) {
    return false;
  }
  std::vector<VkExtensionProperties> extensions(count);
  if (api.EnumerateDeviceExtensionProperties(id, nullptr, &count, extensions.data()) < 0) {
    return false;
  }
  return std::ranges::any_of(extensions, [&](const VkExtensionProperties& extension) {
    return std::strcmp(static_cast<const char*>(extension.extensionName), name) == 0;
  });
}

// A queue family that computes; one that does not draw is preferred: it has the device to itself.
bool FindQueueFamily(const InstanceApi& api, VkPhysicalDevice id, DeviceInfo& info) {
  uint32_t count = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(id, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.GetPhysicalDeviceQueueFamilyProperties(id, &count, families.data());
  bool is_found = false;
  for (uint32_t family = 0; family < count; ++family) {
    const VkQueueFlags flags = families[family].queueFlags;
    if ((flags & VK_QUEUE_COMPUTE_BIT) == 0 || families[family].queueCount == 0) continue;
    const bool draws = (flags & VK_QUEUE_GRAPHICS_BIT) != 0;
    if (is_found && draws) continue;
    info.queue_family = family;
    info.timestamp_bits = families[family].timestampValidBits;
    is_found = true;
    if (!draws) break;
  }
  return is_found;
}

void DescribeFloats(const VkPhysicalDeviceVulkan12Properties& of, FloatControls& controls) {
  using Width = FloatControls::Width;
  controls.by_width = {
      Width{16, of.shaderSignedZeroInfNanPreserveFloat16 != 0, of.shaderRoundingModeRTEFloat16 != 0,
            of.shaderDenormPreserveFloat16 != 0},
      Width{32, of.shaderSignedZeroInfNanPreserveFloat32 != 0, of.shaderRoundingModeRTEFloat32 != 0,
            of.shaderDenormPreserveFloat32 != 0},
      Width{64, of.shaderSignedZeroInfNanPreserveFloat64 != 0, of.shaderRoundingModeRTEFloat64 != 0,
            of.shaderDenormPreserveFloat64 != 0}};
  LimitByIndependence(of.roundingModeIndependence, &Width::rounds_to_nearest, controls);
  LimitByIndependence(of.denormBehaviorIndependence, &Width::keeps_subnormals, controls);
}

void DescribeAddress(const InstanceApi& api, DeviceInfo& info) {
  if (!HasExtension(api, info.id, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) return;
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{};
  pci.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &pci;
  api.GetPhysicalDeviceProperties2(info.id, &properties);
  info.pci_address = {pci.pciDomain, pci.pciBus, pci.pciDevice};
}

// Whether buffers of this backend's may lie in such memory that others made.
bool TakesMemory(const InstanceApi& api, VkPhysicalDevice id,
                 VkExternalMemoryHandleTypeFlagBits handle_type) {
  VkPhysicalDeviceExternalBufferInfo asked{};
  asked.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO;
  asked.usage = kBufferUsage;
  asked.handleType = handle_type;
  VkExternalBufferProperties told{};
  told.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
  api.GetPhysicalDeviceExternalBufferProperties(id, &asked, &told);
  constexpr VkExternalMemoryFeatureFlags kAsked =
      VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
  return (told.externalMemoryProperties.externalMemoryFeatures & kAsked) ==
         VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
}

void DescribeImports(const InstanceApi& api, DeviceInfo& info) {
  info.takes_opaque_fds = HasExtension(api, info.id, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME) &&
                          TakesMemory(api, info.id, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT);
  if (!HasExtension(api, info.id, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) return;
  if (!TakesMemory(api, info.id, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT)) return;
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{};
  host.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &host;
  api.GetPhysicalDeviceProperties2(info.id, &properties);
  info.host_memory_alignment = host.minImportedHostPointerAlignment;
}

void DescribeMatrices(const Instance& instance, int subgroup_items, DeviceInfo& info) {
  // Blocks of both operands, twice, and of the sums.
  constexpr int64_t kSharedBytes = int64_t{32} << 10;
  if (info.limits.shared_bytes >= kSharedBytes) {
    info.capabilities.matrix_units = FindCooperativeMatrices(
        reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(
            instance.Find("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")),
        info.id, info.features, subgroup_items);
  }
  info.has_cooperative_matrices =
      info.capabilities.matrix_units.kind == codegen::MatrixUnits::Kind::kCooperative;
  info.product_library = ProductLibrary(info.capabilities.matrix_units);
}

// For people; a heap is all of one kind of memory, whoever uses it.
std::string LimitsText(const Properties& properties,
                       const VkPhysicalDeviceMemoryProperties& memory) {
  const VkPhysicalDeviceLimits& limits = properties.all.properties.limits;
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    text += (text.empty() ? "" : "; ") + name + "=" + value;
  };
  for (uint32_t heap = 0; heap < memory.memoryHeapCount; ++heap) {
    const VkMemoryHeap& of = memory.memoryHeaps[heap];
    const bool is_device = (of.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
    add("heap_" + std::to_string(heap),
        std::to_string(of.size) + " bytes, " + (is_device ? "device" : "host"));
  }
  add("subgroup_items", std::to_string(properties.of_1_1.subgroupSize));
  std::string groups;
  for (const uint32_t count : limits.maxComputeWorkGroupCount) {
    groups += (groups.empty() ? "" : " x ") + std::to_string(count);
  }
  add("max_groups", groups);
  add("max_group_items", std::to_string(limits.maxComputeWorkGroupInvocations));
  add("max_shared_memory_bytes", std::to_string(limits.maxComputeSharedMemorySize));
  add("max_storage_range_bytes", std::to_string(limits.maxStorageBufferRange));
  add("max_push_constants_bytes", std::to_string(limits.maxPushConstantsSize));
  add("max_allocation_bytes", std::to_string(properties.of_1_1.maxMemoryAllocationSize));
  add("max_allocations", std::to_string(limits.maxMemoryAllocationCount));
  return text;
}

// Vulkan itself does not tell them: NVIDIA's extension does, and others are taken to be as large as
// most are. A processor behind Vulkan has none that run beside each other as a GPU's do.
int64_t CountMultiprocessors(const InstanceApi& api, VkPhysicalDevice id,
                             VkPhysicalDeviceType type) {
  constexpr int64_t kOfDiscrete = 48;
  constexpr int64_t kOfOthers = 12;
  if (type == VK_PHYSICAL_DEVICE_TYPE_CPU) return 0;
  if (HasExtension(api, id, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) {
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV found{};
    found.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
    VkPhysicalDeviceProperties2 properties{};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &found;
    api.GetPhysicalDeviceProperties2(id, &properties);
    if (found.shaderSMCount > 0) return found.shaderSMCount;
  }
  return type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? kOfDiscrete : kOfOthers;
}

// What the device lacks, or empty.
std::string Describe(const Instance& instance, VkPhysicalDevice id, DeviceInfo& info) {
  const InstanceApi& api = instance.api();
  VkPhysicalDeviceProperties first{};
  api.GetPhysicalDeviceProperties(id, &first);
  info.id = id;
  info.name = static_cast<const char*>(first.deviceName);
  info.type = first.deviceType;
  info.api_version = first.apiVersion;
  info.driver_version = first.driverVersion;
  if (first.apiVersion < kApiVersion) {
    return "has Vulkan " + VersionText(first.apiVersion) + " in place of " +
           VersionText(kApiVersion);
  }
  FeatureChain features(HasExtension(api, id, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME),
                        HasExtension(api, id, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME));
  api.GetPhysicalDeviceFeatures2(id, features.get());
  info.features = ReadFeatures(features.get());
  if (const char* const lack = info.features.FindLack()) return std::string("lacks ") + lack;
  if (!FindQueueFamily(api, id, info)) return "lacks a queue that computes";
  Properties properties;
  api.GetPhysicalDeviceProperties2(id, &properties.all);
  const VkPhysicalDeviceLimits& limits = properties.all.properties.limits;
  info.driver_name = static_cast<const char*>(properties.of_1_2.driverName);
  info.driver_info = static_cast<const char*>(properties.of_1_2.driverInfo);
  std::ranges::copy(properties.of_1_1.deviceUUID, info.uuid.begin());
  std::ranges::copy(properties.of_1_1.driverUUID, info.driver_uuid.begin());
  if (properties.of_1_1.deviceLUIDValid != VK_FALSE) {
    std::ranges::copy(properties.of_1_1.deviceLUID, info.luid.emplace().begin());
  }
  DescribeAddress(api, info);
  info.timestamp_period_ns = limits.timestampPeriod;
  info.most_groups_x = limits.maxComputeWorkGroupCount[0];
  info.most_groups_y = limits.maxComputeWorkGroupCount[1];
  info.largest_allocation_bytes = properties.of_1_1.maxMemoryAllocationSize;
  info.has_memory_budget = HasExtension(api, id, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  DescribeImports(api, info);
  DescribeFloats(properties.of_1_2, info.float_controls);
  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  api.GetPhysicalDeviceMemoryProperties2(id, &memory);
  if (!ChooseMemoryTypes(memory.memoryProperties, info.memory_types)) {
    return "lacks memory that the host can write";
  }
  info.memory_bytes = info.memory_types.device.heap_bytes;
  info.limits_text = LimitsText(properties, memory.memoryProperties);
  info.capabilities.has_float64 = info.features.float64;
  // Items are the lanes, on a processor too: its driver makes vectors of neighbouring items.
  info.limits = {.is_processor = false,
                 .vector_bits = 32,
                 .most_group_items = std::min(limits.maxComputeWorkGroupInvocations,
                                              limits.maxComputeWorkGroupSize[0]),
                 .shared_bytes = limits.maxComputeSharedMemorySize,
                 // Vulkan tells no rates; most GPUs have a small part of float32's.
                 .is_float64_fast = info.type == VK_PHYSICAL_DEVICE_TYPE_CPU};
  info.limits.multiprocessors = CountMultiprocessors(api, id, info.type);
  DescribeMatrices(instance, static_cast<int>(properties.of_1_1.subgroupSize), info);
  const std::filesystem::path folder = base::CacheFolder();
  info.tuning = codegen::FindTuning(info.limits, info.name, /*table=*/{},
                                    folder.empty() ? folder : folder / kTuningFile);
  if (info.capabilities.matrix_units.kind == codegen::MatrixUnits::Kind::kCooperative) {
    // A larger block's sums have no place in shared memory, through which they go to their items.
    constexpr int kMaxOutputs = 64 * 64;
    std::erase_if(info.tuning.tiles, [](const codegen::Tuning::Tile& tile) {
      return tile.depth > 0 &&
             tile.item_rows * tile.rows * tile.item_columns * tile.vectors > kMaxOutputs;
    });
  }
  info.tuning.Describe(info.capabilities);
  // Mesa's llvmpipe counts the rounds of all loops of an item, and leaves them after so many.
  constexpr int64_t kRoundsOfLlvmpipe = 65'535;
  if (properties.of_1_2.driverID == VK_DRIVER_ID_MESA_LLVMPIPE) {
    info.capabilities.most_rounds = kRoundsOfLlvmpipe;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Instance>> Instance::Create(const Api& api, bool is_validated) {
  uint32_t version = 0;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(api.EnumerateInstanceVersion(&version), "tell the loader's version"));
  if (version < kApiVersion) {
    return Status(Code::kBackendUnavailable, "The Vulkan loader has version " +
                                                 VersionText(version) + "; the backend needs " +
                                                 VersionText(kApiVersion) + ".");
  }
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "ONNXIFI SDK";
  application.apiVersion = kApiVersion;
  VkInstanceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  create.pApplicationInfo = &application;
  std::unique_ptr<Instance> instance(new Instance(api.GetInstanceProcAddr));
  if (is_validated) {
    instance->validation_ = std::make_unique<Validation>();
    ONNXIFI_RETURN_IF_ERROR(
        instance->validation_->CreateInstance(api, create, instance->instance_));
  } else {
    ONNXIFI_RETURN_IF_ERROR(
        ToStatus(api.CreateInstance(&create, nullptr, &instance->instance_), "create an instance"));
  }
  ONNXIFI_ASSIGN_OR_RETURN(instance->functions_, LoadInstanceApi(api, instance->instance_));
  return instance;
}

Instance::~Instance() {
  if (validation_ != nullptr) validation_->Stop();
  if (instance_ == VK_NULL_HANDLE) return;
  // Where other functions are missing, it is looked up by itself.
  const auto destroy =
      reinterpret_cast<PFN_vkDestroyInstance>(look_up_(instance_, "vkDestroyInstance"));
  if (destroy != nullptr) destroy(instance_, nullptr);
}

Result<FoundDevices> FindDevices(const Instance& instance) {
  const InstanceApi& api = instance.api();
  uint32_t count = 0;
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(api.EnumeratePhysicalDevices(instance.get(), &count, nullptr), "list its devices"));
  std::vector<VkPhysicalDevice> ids(count);
  if (count > 0) {
    const VkResult result = api.EnumeratePhysicalDevices(instance.get(), &count, ids.data());
    // One that came since is for the next who ask.
    if (result != VK_INCOMPLETE) ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "list its devices"));
    ids.resize(count);
  }
  FoundDevices found;
  for (const VkPhysicalDevice id : ids) {
    DeviceInfo info;
    const std::string lack = Describe(instance, id, info);
    if (lack.empty()) {
      found.fit.push_back(std::move(info));
    } else {
      found.left_out.push_back(info.name + " " + lack);
    }
  }
  return found;
}

}  // namespace onnxifi::vulkan
