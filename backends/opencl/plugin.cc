// SPDX-License-Identifier: Apache-2.0
//
// The OpenCL plugin: the devices of every platform that the loader knows.

#include <onnx/onnxifi.h>
#include <onnxifi/sdk.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/base/cache_folder.h"
#include "backends/core/plugin/device_identity.h"
#include "backends/core/plugin/driver_hardware.h"
#include "backends/opencl/device.h"
#include "backends/opencl/driver.h"

namespace onnxifi::opencl {
namespace {

onnxEnum TypeOf(const DeviceInfo& info) {
  if ((info.type & CL_DEVICE_TYPE_GPU) != 0) return ONNXIFI_DEVICE_TYPE_GPU;
  if ((info.type & CL_DEVICE_TYPE_CPU) != 0) return ONNXIFI_DEVICE_TYPE_CPU;
  // What OpenCL calls an accelerator is one of these, as far as anybody sells them.
  return ONNXIFI_DEVICE_TYPE_FPGA;
}

plugin::DeviceDescription Describe(const DeviceInfo& info) {
  plugin::DeviceDescription description;
  description.name = "OpenCL on " + info.platform_name;
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
  plugin::AnswerIdentity(info.uuid, info.luid, info.pci_address, description);
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

class Hardware final : public plugin::DriverHardware<DeviceInfo> {
 public:
  Hardware()
      : DriverHardware({.no_device = "No OpenCL platform has a device that can compile kernels.",
                        .none_is_fit = {}}) {}

  std::string plugin_name() const override { return "opencl"; }

  base::Result<std::unique_ptr<device::Device>> Open(
      int index, const abi::BackendProperties& properties) override {
    ONNXIFI_ASSIGN_OR_RETURN(const Shared shared, SharedOf(properties));
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                             Device::Open(api_, info(index), base::CacheFolder(), shared));
    return std::unique_ptr<device::Device>(std::move(device));
  }

  device::Sharing* SharingOf(device::Device& device) const override {
    return &static_cast<Device&>(device).sharing();
  }

 private:
  base::Result<Found> Find() override {
    ONNXIFI_ASSIGN_OR_RETURN(api_, LoadApi(kLoaderLibrary));
    ONNXIFI_ASSIGN_OR_RETURN(std::vector<DeviceInfo> devices, FindDevices(api_));
    return Found{std::move(devices), {}};
  }

  plugin::DeviceDescription Describe(const DeviceInfo& info) const override {
    return opencl::Describe(info);
  }

  Api api_;
};

}  // namespace
}  // namespace onnxifi::opencl

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() {
  return plugin::MakeProvider(std::make_unique<opencl::Hardware>());
}

}  // namespace onnxifi::abi
