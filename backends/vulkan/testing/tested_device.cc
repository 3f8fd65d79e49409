// SPDX-License-Identifier: Apache-2.0
//
// OpenTestedDevice: the first Vulkan device of the machine that is fit.

#include "backends/core/codegen/testing/tested_device.h"

#include <utility>

#include "backends/vulkan/device.h"

namespace onnxifi::codegen {
namespace {

class VulkanDevice final : public TestedDevice {
 public:
  VulkanDevice(std::unique_ptr<vulkan::Instance> instance, std::unique_ptr<vulkan::Device> device,
               const vulkan::DeviceInfo& info)
      : instance_(std::move(instance)),
        device_(std::move(device)),
        has_float64_(info.capabilities.has_float64),
        meaning_(MeaningOf(info)) {}

  device::Device& device() override { return *device_; }
  std::string name() const override { return device_->name(); }
  bool HasFloat64() const override { return has_float64_; }
  FloatMeaning Meaning() const override { return meaning_; }
  int64_t kernel_count() const override { return device_->kernel_count(); }

 private:
  // Of both widths. Mesa's llvmpipe keeps subnormals without offering it, and rounds all results.
  static FloatMeaning MeaningOf(const vulkan::DeviceInfo& info) {
    const bool is_exact = info.driver_name == "llvmpipe";
    FloatMeaning meaning{.has_exact_quotients = is_exact};
    for (const size_t width : {1, 2}) {
      const auto& of = info.float_controls.by_width[width];
      if (width == 2 && !info.capabilities.has_float64) continue;
      meaning.keeps_subnormals = meaning.keeps_subnormals && (of.keeps_subnormals || is_exact);
      meaning.keeps_specials = meaning.keeps_specials && of.keeps_specials;
    }
    return meaning;
  }

  const std::unique_ptr<vulkan::Instance> instance_;  // outlives the device
  const std::unique_ptr<vulkan::Device> device_;
  const bool has_float64_;
  const FloatMeaning meaning_;
};

}  // namespace

base::Result<std::unique_ptr<TestedDevice>> OpenTestedDevice(
    const std::filesystem::path& cache_folder) {
  ONNXIFI_ASSIGN_OR_RETURN(const vulkan::Api api, vulkan::LoadApi(vulkan::kLoaderLibrary));
  ONNXIFI_ASSIGN_OR_RETURN(auto instance, vulkan::Instance::Create(api));
  ONNXIFI_ASSIGN_OR_RETURN(const vulkan::FoundDevices devices, FindDevices(*instance));
  if (devices.fit.empty()) {
    return base::Status(base::Code::kBackendUnavailable, "No Vulkan device is fit.");
  }
  const vulkan::DeviceInfo& info = devices.fit.front();
  ONNXIFI_ASSIGN_OR_RETURN(auto device, vulkan::Device::Open(*instance, info, cache_folder));
  return std::unique_ptr<TestedDevice>(
      std::make_unique<VulkanDevice>(std::move(instance), std::move(device), info));
}

}  // namespace onnxifi::codegen
