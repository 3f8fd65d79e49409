// SPDX-License-Identifier: Apache-2.0
//
// The Vulkan plugin: the devices of every driver that the loader knows, as far as they are fit.

#include <onnx/onnxifi.h>
#include <onnxifi/sdk.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/cache_folder.h"
#include "backends/core/codegen/selector.h"
#include "backends/core/plugin/device_identity.h"
#include "backends/core/plugin/hardware.h"
#include "backends/vulkan/cooperative_matrices.h"
#include "backends/vulkan/device.h"
#include "backends/vulkan/driver.h"

namespace onnxifi::vulkan {
namespace {

// The interface's limit for a backend's name, less its zero.
constexpr size_t kMaxNameBytes = 49;

onnxEnum TypeOf(const DeviceInfo& info) {
  return info.is_processor() ? ONNXIFI_DEVICE_TYPE_CPU : ONNXIFI_DEVICE_TYPE_GPU;
}

plugin::DeviceDescription Describe(const DeviceInfo& info) {
  plugin::DeviceDescription description;
  description.name = "Vulkan on " + info.driver_name;
  description.name.resize(std::min(description.name.size(), kMaxNameBytes));
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
  std::optional<plugin::PciAddress> pci;
  if (info.pci_address) {
    pci = {info.pci_address->domain, info.pci_address->bus, info.pci_address->device};
  }
  plugin::AnswerIdentity(info.uuid, luid, pci, description);
  description.more.emplace_back(ONNXIFI_SDK_BACKEND_DEVICE_LIMITS, info.limits_text);
  return description;
}

// "a, b" of the clauses.
std::string Join(const std::vector<std::string>& clauses) {
  std::string text;
  for (const std::string& clause : clauses) text += (text.empty() ? "" : ", ") + clause;
  return text;
}

class Hardware : public plugin::Hardware {
 public:
  std::string plugin_name() const override { return "vulkan"; }

  std::vector<plugin::DeviceDescription> Enumerate() override {
    const base::Status found = Find();
    if (!found.ok()) {
      absence_ = std::string(found.sentence());
    } else if (devices_.left_out.empty()) {
      absence_ = "No Vulkan driver has a device.";
    } else {
      absence_ = "No Vulkan device is fit: " + Join(devices_.left_out) + ".";
    }
    std::vector<plugin::DeviceDescription> descriptions;
    for (const DeviceInfo& info : devices_.fit) {
      descriptions.push_back(Describe(info));
      selectors_.push_back(std::make_unique<codegen::Selector>(info.capabilities, info.tuning));
    }
    return descriptions;
  }

  std::string absence() const override { return absence_; }

  const device::Selector& selector(int index) const override {
    return *selectors_[static_cast<size_t>(index)];
  }

  base::Result<std::unique_ptr<device::Device>> Open(
      int index, const abi::BackendProperties& properties) override {
    const DeviceInfo& info = devices_.fit[static_cast<size_t>(index)];
    const auto given = std::ranges::find(
        properties.given, ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE, &abi::Property::key);
    if (given == properties.given.end()) {
      ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                               Device::Open(*instance_, info, base::CacheFolder()));
      return std::unique_ptr<device::Device>(std::move(device));
    }
    ONNXIFI_ASSIGN_OR_RETURN(const CallersDevice callers,
                             CheckCallersDevice(api_, given->value, info));
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                             Device::Share(*instance_, callers, base::CacheFolder()));
    return std::unique_ptr<device::Device>(std::move(device));
  }

  device::Sharing* SharingOf(device::Device& device) const override {
    return &static_cast<Device&>(device).sharing();
  }

 private:
  base::Status Find() {
    ONNXIFI_ASSIGN_OR_RETURN(api_, LoadApi(kLoaderLibrary));
    ONNXIFI_ASSIGN_OR_RETURN(instance_, Instance::Create(api_));
    ONNXIFI_ASSIGN_OR_RETURN(devices_, FindDevices(*instance_));
    return base::Ok();
  }

  std::string absence_;
  Api api_;
  std::unique_ptr<Instance> instance_;
  FoundDevices devices_;
  std::vector<std::unique_ptr<codegen::Selector>> selectors_;
};

}  // namespace
}  // namespace onnxifi::vulkan

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() {
  return plugin::MakeProvider(std::make_unique<vulkan::Hardware>());
}

}  // namespace onnxifi::abi
