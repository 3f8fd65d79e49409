// SPDX-License-Identifier: Apache-2.0
//
// The OpenCL plugin: the devices of every platform that the loader knows.

#include <onnx/onnxifi.h>
#include <onnxifi/sdk.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/core/base/cache_folder.h"
#include "backends/core/codegen/selector.h"
#include "backends/core/plugin/device_identity.h"
#include "backends/core/plugin/hardware.h"
#include "backends/opencl/device.h"
#include "backends/opencl/driver.h"

namespace onnxifi::opencl {
namespace {

// The interface's limit for a backend's name, less its zero.
constexpr size_t kMaxNameBytes = 49;

onnxEnum TypeOf(const DeviceInfo& info) {
  if ((info.type & CL_DEVICE_TYPE_GPU) != 0) return ONNXIFI_DEVICE_TYPE_GPU;
  if ((info.type & CL_DEVICE_TYPE_CPU) != 0) return ONNXIFI_DEVICE_TYPE_CPU;
  // What OpenCL calls an accelerator is one of these, as far as anybody sells them.
  return ONNXIFI_DEVICE_TYPE_FPGA;
}

plugin::DeviceDescription Describe(const DeviceInfo& info) {
  plugin::DeviceDescription description;
  description.name = "OpenCL on " + info.platform_name;
  description.name.resize(std::min(description.name.size(), kMaxNameBytes));
  description.vendor = "ONNXIFI SDK";
  description.version =
      std::string(ONNXIFI_SDK_VERSION) + " with " + info.platform_name + " " + info.driver_version;
  description.device = info.name;
  description.type = TypeOf(info);
  description.memory_bytes = info.memory_bytes;
  description.memory_types = ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER;
  // With a queue of the caller's.
  description.synchronization_types = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  description.event_kinds = {ONNXIFI_SDK_NATIVE_EVENT_OPENCL};
  description.backend_properties = {ONNXIFI_BACKEND_OPENCL_CONTEXT,
                                    ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE};
  description.more = {
      {ONNXIFI_BACKEND_OPENCL_PLATFORM_ID, abi::InfoValue(static_cast<void*>(info.platform))},
      {ONNXIFI_BACKEND_OPENCL_DEVICE_ID, abi::InfoValue(static_cast<void*>(info.id))},
  };
  std::optional<plugin::PciAddress> pci;
  if (info.pci_address) {
    pci = {info.pci_address->domain, info.pci_address->bus, info.pci_address->device};
  }
  plugin::AnswerIdentity(info.uuid, info.luid, pci, description);
  return description;
}

base::Result<Shared> SharedOf(const abi::BackendProperties& properties) {
  Shared shared;
  for (const abi::Property& property : properties.given) {
    const bool is_context = property.key == ONNXIFI_BACKEND_OPENCL_CONTEXT;
    if (!is_context && property.key != ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE) continue;
    if (property.value == 0) {
      return base::Status(
          base::Code::kInvalidProperty,
          std::string("The ") + (is_context ? "context" : "queue") + " to share is NULL.");
    }
    const auto address = static_cast<uintptr_t>(property.value);
    if (is_context) {
      shared.context = reinterpret_cast<cl_context>(address);
    } else {
      shared.queue = reinterpret_cast<cl_command_queue>(address);
    }
  }
  return shared;
}

class Hardware : public plugin::Hardware {
 public:
  std::string plugin_name() const override { return "opencl"; }

  std::vector<plugin::DeviceDescription> Enumerate() override {
    const base::Status found = Find();
    absence_ = found.ok() ? "No OpenCL platform has a device that can compile kernels."
                          : std::string(found.sentence());
    if (!found.ok()) return {};
    std::vector<plugin::DeviceDescription> descriptions;
    for (const DeviceInfo& info : devices_) {
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
    ONNXIFI_ASSIGN_OR_RETURN(const Shared shared, SharedOf(properties));
    ONNXIFI_ASSIGN_OR_RETURN(
        std::unique_ptr<Device> device,
        Device::Open(api_, devices_[static_cast<size_t>(index)], base::CacheFolder(), shared));
    return std::unique_ptr<device::Device>(std::move(device));
  }

  device::Sharing* SharingOf(device::Device& device) const override {
    return &static_cast<Device&>(device).sharing();
  }

 private:
  base::Status Find() {
    ONNXIFI_ASSIGN_OR_RETURN(api_, LoadApi(kLoaderLibrary));
    ONNXIFI_ASSIGN_OR_RETURN(devices_, FindDevices(api_));
    return base::Ok();
  }

  std::string absence_;
  Api api_;
  std::vector<DeviceInfo> devices_;
  std::vector<std::unique_ptr<codegen::Selector>> selectors_;
};

}  // namespace
}  // namespace onnxifi::opencl

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() {
  return plugin::MakeProvider(std::make_unique<opencl::Hardware>());
}

}  // namespace onnxifi::abi
