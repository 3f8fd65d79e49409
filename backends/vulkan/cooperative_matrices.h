// SPDX-License-Identifier: Apache-2.0
//
// Cooperative matrices (VK_KHR_cooperative_matrix, and VK_KHR_shader_bfloat16 for those of
// bfloat16): what a device offers, as one product of each type that kernels use, and the product
// library that has their functions (codegen/cooperative_matrix_text.cc). Headers of Vulkan older
// than 1.3.255 and 1.4.311 lack the extensions, so that their declarations stand here.

#ifndef ONNXIFI_BACKENDS_VULKAN_COOPERATIVE_MATRICES_H_
#define ONNXIFI_BACKENDS_VULKAN_COOPERATIVE_MATRICES_H_

#include <string>

#include "backends/core/codegen/expression.h"
#include "backends/vulkan/api.h"

// NOLINTBEGIN(readability-identifier-naming): the names of Vulkan.
#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
inline constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
inline constexpr auto VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR =
    static_cast<VkStructureType>(1000506001);
enum VkScopeKHR { VK_SCOPE_SUBGROUP_KHR = 3, VK_SCOPE_MAX_ENUM_KHR = 0x7FFFFFFF };
enum VkComponentTypeKHR {
  VK_COMPONENT_TYPE_FLOAT16_KHR = 0,
  VK_COMPONENT_TYPE_FLOAT32_KHR = 1,
  VK_COMPONENT_TYPE_SINT8_KHR = 3,
  VK_COMPONENT_TYPE_MAX_ENUM_KHR = 0x7FFFFFFF
};
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  uint32_t MSize;
  uint32_t NSize;
  uint32_t KSize;
  VkComponentTypeKHR AType;
  VkComponentTypeKHR BType;
  VkComponentTypeKHR CType;
  VkComponentTypeKHR ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
};
using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
    VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, VkCooperativeMatrixPropertiesKHR*);
#endif
#ifndef VK_KHR_shader_bfloat16
#define VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME "VK_KHR_shader_bfloat16"
inline constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR =
    static_cast<VkStructureType>(1000141000);
inline constexpr auto VK_COMPONENT_TYPE_BFLOAT16_KHR = static_cast<VkComponentTypeKHR>(1000141000);
struct VkPhysicalDeviceShaderBfloat16FeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 shaderBFloat16Type;
  VkBool32 shaderBFloat16DotProduct;
  VkBool32 shaderBFloat16CooperativeMatrix;
};
#endif
// NOLINTEND(readability-identifier-naming)

namespace onnxifi::vulkan {

// The products of float16 and of bfloat16, summed in float32 by a subgroup of `subgroup_items`,
// that kernels use on the device: of each type the one that is nearest to 16 x 16 x 16. None if the
// device has none, or lacks the extension or a feature that goes with it, or the compiler does not
// know the extension. `find` is looked up in the device's instance and may be null; `has_bfloat16`:
// the device has VK_KHR_shader_bfloat16.
codegen::MatrixUnits FindCooperativeMatrices(
    const InstanceApi& api, PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR find,
    VkPhysicalDevice id, int subgroup_items, bool has_bfloat16);

// GLSL. With the functions that every device has; no others for units that are none.
std::string ProductLibrary(const codegen::MatrixUnits& units);

// "16 x 16 x 16 float16, 16 x 8 x 16 bfloat16", or empty.
std::string TextOf(const codegen::MatrixUnits& units);

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_COOPERATIVE_MATRICES_H_
