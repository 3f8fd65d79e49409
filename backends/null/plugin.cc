// SPDX-License-Identifier: Apache-2.0
//
// The null plugin: the reference as a device. It is complete and slow, and the template of a
// backend: clone this folder, put your device in place of the reference's, and override Select and
// Build for the step families that your hardware does.

#include <unistd.h>

#include "backends/core/plugin/hardware.h"
#include "backends/core/reference/device.h"

namespace onnxifi::null {
namespace {

class Hardware : public plugin::Hardware {
 public:
  std::string plugin_name() const override { return "null"; }

  std::vector<plugin::DeviceDescription> Enumerate() override {
    plugin::DeviceDescription description;
    description.name = "Reference";
    description.vendor = "ONNXIFI SDK";
    description.version = ONNXIFI_SDK_VERSION;
    description.device = "Plain loops on one CPU thread";
    description.type = ONNXIFI_DEVICE_TYPE_CPU;
    description.memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                               static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
    return {description};
  }

  const device::Selector& selector(int /*index*/) const override { return selector_; }

  base::Result<std::unique_ptr<device::Device>> Open(
      int /*index*/, const abi::BackendProperties& /*properties*/) override {
    return std::unique_ptr<device::Device>(std::make_unique<reference::Device>());
  }

 private:
  const reference::Device selector_;
};

}  // namespace
}  // namespace onnxifi::null

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() {
  return plugin::MakeProvider(std::make_unique<null::Hardware>());
}

}  // namespace onnxifi::abi
