// SPDX-License-Identifier: Apache-2.0
//
// Features: what kernels use of Vulkan's features, wherever they are named: by a device that offers
// them, by who opens one, and by a caller who tells with what one was opened.

#ifndef ONNXIFI_BACKENDS_VULKAN_FEATURES_H_
#define ONNXIFI_BACKENDS_VULKAN_FEATURES_H_

#include "backends/vulkan/api.h"
#include "backends/vulkan/later_extensions.h"

namespace onnxifi::vulkan {

struct Features {
  // Needed.
  bool address = false;
  bool scalar_layout = false;
  bool timeline = false;
  bool int64 = false;
  bool int16 = false;
  bool int8 = false;
  bool storage16 = false;
  bool storage8 = false;
  // Used where they are.
  bool float64 = false;
  // For cooperative matrices.
  bool float16 = false;
  bool memory_model = false;
  bool matrices = false;
  bool bfloat16 = false;
  bool bfloat16_matrices = false;

  // The first that is needed and absent, as Vulkan names it; null if there is none.
  const char* FindLack() const;
};

// Of a chain that begins with a VkPhysicalDeviceFeatures2, of the structures of Vulkan 1.1 and 1.2
// or of extensions. Null: none.
Features ReadFeatures(const void* chain);

// The structures of Vulkan 1.2, and of extensions that are there.
class FeatureChain {
 public:
  FeatureChain(bool has_matrices, bool has_bfloat16);
  FeatureChain(const FeatureChain&) = delete;
  FeatureChain& operator=(const FeatureChain&) = delete;

  VkPhysicalDeviceFeatures2* get() { return &all_; }
  void Enable(const Features& features);

 private:
  VkPhysicalDeviceFeatures2 all_{};
  VkPhysicalDeviceVulkan11Features of_1_1_{};
  VkPhysicalDeviceVulkan12Features of_1_2_{};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices_{};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16_{};
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_FEATURES_H_
