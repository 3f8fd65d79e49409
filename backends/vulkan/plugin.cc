// SPDX-License-Identifier: Apache-2.0
//
// The Vulkan plugin: the devices of every driver that the loader knows, as far as they are fit.

#include <onnx/onnxifi.h>
#include <onnxifi/sdk.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "backends/core/base/cache_folder.h"
#include "backends/core/plugin/device_identity.h"
#include "backends/core/plugin/driver_hardware.h"
#include "backends/vulkan/cooperative_matrices.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/driver.h"

namespace onnxifi::vulkan {
namespace {

onnxEnum TypeOf(const DeviceInfo& info) {
  return info.is_processor() ? ONNXIFI_DEVICE_TYPE_CPU : ONNXIFI_DEVICE_TYPE_GPU;
}

plugin::DeviceDescription Describe(const DeviceInfo& info) {
  plugin::DeviceDescription description;
  description.name = "Vulkan on " + info.driver_name;
  description.vendor = "ONNXIFI SDK";
  description.version =
      std::string(ONNXIFI_SDK_VERSION) + " with " + info.driver_name + " " + info.driver_info;
  const std::string matrices = TextOf(info.capabilities.matrix_units);
  if (!matrices.empty()) description.version += ", cooperative matrices " + matrices;
  description.device = info.name;
  description.type = TypeOf(info);
  description.memory_bytes = info.memory_bytes;
  description.memory_types = ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER;
  if (info.takes_opaque_fds) description.memory_types |= ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD;
  // With a device of the caller's.
  description.synchronization_types = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  description.event_kinds = {ONNXIFI_SDK_NATIVE_EVENT_VULKAN};
  description.backend_properties = {ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE};
  const std::span<const uint8_t> luid =
      info.luid ? std::span<const uint8_t>(*info.luid) : std::span<const uint8_t>();
  plugin::AnswerIdentity(info.uuid, luid, info.pci_address, description);
  description.more.emplace_back(ONNXIFI_SDK_BACKEND_DEVICE_LIMITS, info.limits_text);
  return description;
}

class Hardware final : public plugin::DriverHardware<DeviceInfo> {
 public:
  Hardware()
      : DriverHardware({.no_device = "No Vulkan driver has a device.",
                        .none_is_fit = "No Vulkan device is fit"}) {}

  std::string plugin_name() const override { return "vulkan"; }

  base::Result<std::unique_ptr<device::Device>> Open(
      int index, const abi::BackendProperties& properties) override {
    const auto given = std::ranges::find(
        properties.given, ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE, &abi::Property::key);
    if (given == properties.given.end()) {
      ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                               Device::Open(*instance_, info(index), base::CacheFolder()));
      return std::unique_ptr<device::Device>(std::move(device));
    }
    ONNXIFI_ASSIGN_OR_RETURN(const CallersDevice callers,
                             CheckCallersDevice(api_, given->value, info(index)));
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                             Device::Share(*instance_, callers, base::CacheFolder()));
    return std::unique_ptr<device::Device>(std::move(device));
  }

  device::Sharing* SharingOf(device::Device& device) const override {
    return &static_cast<Device&>(device).sharing();
  }

 private:
  base::Result<Found> Find() override {
    ONNXIFI_ASSIGN_OR_RETURN(api_, LoadApi(kLoaderLibrary));
    ONNXIFI_ASSIGN_OR_RETURN(instance_, Instance::Create(api_));
    ONNXIFI_ASSIGN_OR_RETURN(FoundDevices found, FindDevices(*instance_));
    return Found{std::move(found.fit), std::move(found.left_out)};
  }

  plugin::DeviceDescription Describe(const DeviceInfo& info) const override {
    return vulkan::Describe(info);
  }

  Api api_;
  std::unique_ptr<Instance> instance_;
};

}  // namespace
}  // namespace onnxifi::vulkan

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() {
  return plugin::MakeProvider(std::make_unique<vulkan::Hardware>());
}

}  // namespace onnxifi::abi
