// SPDX-License-Identifier: Apache-2.0
//
// Validation: the layer, and a messenger that counts.

#include "backends/vulkan/validation.h"

#include <cstdlib>
#include <string_view>

#include "backends/core/base/log.h"

namespace onnxifi::vulkan {

using base::Code;
using base::Status;

bool IsValidationAskedFor() {
  const char* const value = std::getenv("ONNXIFI_VULKAN_VALIDATION");
  return value != nullptr && std::string_view(value) == "1";
}

Status Validation::CreateInstance(const Api& api, VkInstanceCreateInfo create,
                                  VkInstance& instance) {
  constexpr const char* kLayer = "VK_LAYER_KHRONOS_validation";
  constexpr const char* kExtension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  constexpr VkValidationFeatureEnableEXT kEnabled =
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{};
  features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &kEnabled;
  VkDebugUtilsMessengerCreateInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.pNext = &features;
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = &Validation::Receive;
  info.pUserData = this;
  create.pNext = &info;  // what the creation itself is told
  create.enabledLayerCount = 1;
  create.ppEnabledLayerNames = &kLayer;
  create.enabledExtensionCount = 1;
  create.ppEnabledExtensionNames = &kExtension;
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api.CreateInstance(&create, nullptr, &instance),
                                   "create an instance with the validation layer"));
  info.pNext = nullptr;
  const auto make = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      api.GetInstanceProcAddr(instance, "vkCreateDebugUtilsMessengerEXT"));
  destroy_ = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      api.GetInstanceProcAddr(instance, "vkDestroyDebugUtilsMessengerEXT"));
  if (make == nullptr || destroy_ == nullptr) {
    return Status(Code::kBackendUnavailable, "The Vulkan loader has no messengers.");
  }
  instance_ = instance;
  return ToStatus(make(instance, &info, nullptr, &messenger_), "listen to the validation layer");
}

namespace {

// Whether a message is about the layer's own state and no call. Its tracking of timeline semaphores
// waits 10 s for an update that it has missed, at times, where a host signals (fixed in later
// releases: Vulkan-ValidationLayers, issues 4649 and 4968); the message itself names a validation
// bug as the likely cause.
bool IsOfTheLayerItself(const char* id) {
  return id != nullptr && std::string_view(id) == "UNASSIGNED-VkSemaphore-state-timeout";
}

}  // namespace

void Validation::Stop() {
  if (messenger_ != VK_NULL_HANDLE) destroy_(instance_, messenger_, nullptr);
  messenger_ = VK_NULL_HANDLE;
}

VkBool32 VKAPI_CALL Validation::Receive(VkDebugUtilsMessageSeverityFlagBitsEXT /*severity*/,
                                        VkDebugUtilsMessageTypeFlagsEXT /*types*/,
                                        const VkDebugUtilsMessengerCallbackDataEXT* data,
                                        void* self) {
  auto& validation = *static_cast<Validation*>(self);
  const bool is_counted = !IsOfTheLayerItself(data->pMessageIdName);
  base::Log().Write(is_counted ? base::LogLevel::kError : base::LogLevel::kWarning, "vulkan",
                    data->pMessage);
  if (!is_counted) return VK_FALSE;
  const std::lock_guard lock(validation.mutex_);
  if (validation.message_count_++ == 0) validation.first_message_ = data->pMessage;
  return VK_FALSE;
}

int64_t Validation::message_count() const {
  const std::lock_guard lock(mutex_);
  return message_count_;
}

Status Validation::Check() const {
  const std::lock_guard lock(mutex_);
  if (message_count_ == 0) return base::Ok();
  return Status(Code::kInternalError, "Vulkan's validation layer has " +
                                          std::to_string(message_count_) +
                                          " messages; the first is: " + first_message_);
}

}  // namespace onnxifi::vulkan
