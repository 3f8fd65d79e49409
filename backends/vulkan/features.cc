// SPDX-License-Identifier: Apache-2.0

#include "backends/vulkan/features.h"

#include <cstddef>

namespace onnxifi::vulkan {
namespace {

// Where a structure has the flag of a feature.
struct Field {
  VkStructureType structure;
  size_t offset;
  bool Features::*feature;
};

#define ONNXIFI_PLACE(structure, type, flag, feature) \
  { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##structure, offsetof(type, flag), &Features::feature }
constexpr Field kFields[] = {
    ONNXIFI_PLACE(FEATURES_2, VkPhysicalDeviceFeatures2, features.shaderInt64, int64),
    ONNXIFI_PLACE(FEATURES_2, VkPhysicalDeviceFeatures2, features.shaderInt16, int16),
    ONNXIFI_PLACE(FEATURES_2, VkPhysicalDeviceFeatures2, features.shaderFloat64, float64),
    ONNXIFI_PLACE(VULKAN_1_1_FEATURES, VkPhysicalDeviceVulkan11Features, storageBuffer16BitAccess,
                  storage16),
#define ONNXIFI_OF_1_2(flag, feature) \
  ONNXIFI_PLACE(VULKAN_1_2_FEATURES, VkPhysicalDeviceVulkan12Features, flag, feature)
    ONNXIFI_OF_1_2(bufferDeviceAddress, address),
    ONNXIFI_OF_1_2(scalarBlockLayout, scalar_layout),
    ONNXIFI_OF_1_2(timelineSemaphore, timeline),
    ONNXIFI_OF_1_2(shaderInt8, int8),
    ONNXIFI_OF_1_2(storageBuffer8BitAccess, storage8),
    ONNXIFI_OF_1_2(shaderFloat16, float16),
    ONNXIFI_OF_1_2(vulkanMemoryModel, memory_model),
#undef ONNXIFI_OF_1_2
    // The same in structures of their own.
    ONNXIFI_PLACE(BUFFER_DEVICE_ADDRESS_FEATURES, VkPhysicalDeviceBufferDeviceAddressFeatures,
                  bufferDeviceAddress, address),
    ONNXIFI_PLACE(SCALAR_BLOCK_LAYOUT_FEATURES, VkPhysicalDeviceScalarBlockLayoutFeatures,
                  scalarBlockLayout, scalar_layout),
    ONNXIFI_PLACE(TIMELINE_SEMAPHORE_FEATURES, VkPhysicalDeviceTimelineSemaphoreFeatures,
                  timelineSemaphore, timeline),
    ONNXIFI_PLACE(SHADER_FLOAT16_INT8_FEATURES, VkPhysicalDeviceShaderFloat16Int8Features,
                  shaderInt8, int8),
    ONNXIFI_PLACE(SHADER_FLOAT16_INT8_FEATURES, VkPhysicalDeviceShaderFloat16Int8Features,
                  shaderFloat16, float16),
    ONNXIFI_PLACE(VULKAN_MEMORY_MODEL_FEATURES, VkPhysicalDeviceVulkanMemoryModelFeatures,
                  vulkanMemoryModel, memory_model),
    ONNXIFI_PLACE(8BIT_STORAGE_FEATURES, VkPhysicalDevice8BitStorageFeatures,
                  storageBuffer8BitAccess, storage8),
    ONNXIFI_PLACE(16BIT_STORAGE_FEATURES, VkPhysicalDevice16BitStorageFeatures,
                  storageBuffer16BitAccess, storage16),
    // Of extensions.
    ONNXIFI_PLACE(COOPERATIVE_MATRIX_FEATURES_KHR, VkPhysicalDeviceCooperativeMatrixFeaturesKHR,
                  cooperativeMatrix, matrices),
    ONNXIFI_PLACE(SHADER_BFLOAT16_FEATURES_KHR, VkPhysicalDeviceShaderBfloat16FeaturesKHR,
                  shaderBFloat16Type, bfloat16),
    ONNXIFI_PLACE(SHADER_BFLOAT16_FEATURES_KHR, VkPhysicalDeviceShaderBfloat16FeaturesKHR,
                  shaderBFloat16CooperativeMatrix, bfloat16_matrices),
};
#undef ONNXIFI_PLACE

}  // namespace

const char* Features::FindLack() const {
  const struct {
    bool is_present;
    const char* name;
  } needed[] = {{address, "bufferDeviceAddress"},
                {scalar_layout, "scalarBlockLayout"},
                {timeline, "timelineSemaphore"},
                {int64, "shaderInt64"},
                {int16, "shaderInt16"},
                {int8, "shaderInt8"},
                {storage16, "storageBuffer16BitAccess"},
                {storage8, "storageBuffer8BitAccess"}};
  for (const auto& [is_present, name] : needed) {
    if (!is_present) return name;
  }
  return nullptr;
}

Features ReadFeatures(const void* chain) {
  Features features;
  for (const auto* part = static_cast<const VkBaseInStructure*>(chain); part != nullptr;
       part = part->pNext) {
    for (const Field& field : kFields) {
      if (field.structure != part->sType) continue;
      const auto* flag = reinterpret_cast<const std::byte*>(part) + field.offset;
      features.*field.feature |= *reinterpret_cast<const VkBool32*>(flag) != VK_FALSE;
    }
  }
  return features;
}

FeatureChain::FeatureChain(bool has_matrices, bool has_bfloat16) {
  all_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  all_.pNext = &of_1_1_;
  of_1_1_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  of_1_1_.pNext = &of_1_2_;
  of_1_2_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  matrices_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
  bfloat16_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
  void** end = &of_1_2_.pNext;
  if (has_matrices) {
    *end = &matrices_;
    end = &matrices_.pNext;
  }
  if (has_bfloat16) *end = &bfloat16_;
}

void FeatureChain::Enable(const Features& features) {
  for (auto* part = reinterpret_cast<VkBaseOutStructure*>(&all_); part != nullptr;
       part = part->pNext) {
    for (const Field& field : kFields) {
      if (field.structure != part->sType) continue;
      auto* flag = reinterpret_cast<std::byte*>(part) + field.offset;
      *reinterpret_cast<VkBool32*>(flag) = features.*field.feature ? VK_TRUE : VK_FALSE;
    }
  }
}

}  // namespace onnxifi::vulkan
