// SPDX-License-Identifier: Apache-2.0
//
// Validation: what the Khronos validation layer says of an instance's calls, synchronisation
// included. Asked for by ONNXIFI_VULKAN_VALIDATION: every message is then printed, and makes the
// submission or wait that follows it fail, so that no test passes with one.

#ifndef ONNXIFI_BACKENDS_VULKAN_VALIDATION_H_
#define ONNXIFI_BACKENDS_VULKAN_VALIDATION_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "backends/vulkan/api.h"

namespace onnxifi::vulkan {

// Whether the variable is set to 1.
bool IsValidationAskedFor();

// Outlives its instance. Any thread.
class Validation {
 public:
  Validation() = default;
  ~Validation() { Stop(); }
  Validation(const Validation&) = delete;
  Validation& operator=(const Validation&) = delete;

  // As vkCreateInstance, with the layer. BACKEND_UNAVAILABLE where it is not installed.
  base::Status CreateInstance(const Api& api, VkInstanceCreateInfo create, VkInstance& instance);
  // No more messages; before the instance goes.
  void Stop();

  // Warnings and errors so far, without those about the layer's own state.
  int64_t message_count() const;
  // INTERNAL_ERROR with the first message, if there is one.
  base::Status Check() const;

 private:
  static VkBool32 VKAPI_CALL Receive(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                     VkDebugUtilsMessageTypeFlagsEXT types,
                                     const VkDebugUtilsMessengerCallbackDataEXT* data, void* self);

  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  PFN_vkDestroyDebugUtilsMessengerEXT destroy_ = nullptr;
  mutable std::mutex mutex_;
  int64_t message_count_ = 0;
  std::string first_message_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_VALIDATION_H_
