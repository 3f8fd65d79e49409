// SPDX-License-Identifier: Apache-2.0
//
// Cooperative matrices (VK_KHR_cooperative_matrix, and VK_KHR_shader_bfloat16 for those of
// bfloat16): what a device offers, as one product of each type that kernels use, and the product
// library that has their functions (codegen/cooperative_matrix_text.cc).

#ifndef ONNXIFI_BACKENDS_VULKAN_COOPERATIVE_MATRICES_H_
#define ONNXIFI_BACKENDS_VULKAN_COOPERATIVE_MATRICES_H_

#include <string>

#include "backends/core/codegen/expression.h"
#include "backends/vulkan/features.h"

namespace onnxifi::vulkan {

// The products of float16 and of bfloat16, summed in float32 by a subgroup of `subgroup_items`,
// that kernels use on the device: of each type the one that is nearest to 16 x 16 x 16. None if the
// device has none, or lacks a feature that goes with it, or the compiler does not know the
// extension. `find` is looked up in the device's instance and may be null.
codegen::MatrixUnits FindCooperativeMatrices(
    PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR find, VkPhysicalDevice id,
    const Features& features, int subgroup_items);

// GLSL. With the functions that every device has; no others for units that are none.
std::string ProductLibrary(const codegen::MatrixUnits& units);

// "16 x 16 x 16 float16, 16 x 8 x 16 bfloat16", or empty.
std::string TextOf(const codegen::MatrixUnits& units);

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_COOPERATIVE_MATRICES_H_
