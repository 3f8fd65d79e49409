// SPDX-License-Identifier: Apache-2.0
//
// The plugin 'example': a clone of backends/null that adds the domain of its vendor. The reference
// stands where the vendor's device goes.

#include "backends/core/plugin/hardware.h"
#include "backends/core/reference/device.h"
#include "domain/domain.h"

namespace example {
namespace {

namespace plugin = onnxifi::plugin;

class Hardware : public plugin::Hardware {
 public:
  std::string plugin_name() const override { return "example"; }

  std::vector<plugin::DeviceDescription> Enumerate() override {
    plugin::DeviceDescription description;
    description.name = "Example";
    description.vendor = "Example Corporation";
    description.version = ONNXIFI_SDK_VERSION;
    description.device = "Plain loops on one CPU thread";
    return {description};
  }

  const onnxifi::device::Selector& selector(int /*index*/) const override { return selector_; }

  onnxifi::base::Result<std::unique_ptr<onnxifi::device::Device>> Open(
      int /*index*/, const onnxifi::abi::BackendProperties& /*properties*/) override {
    return std::unique_ptr<onnxifi::device::Device>(std::make_unique<onnxifi::reference::Device>());
  }

  std::span<const plugin::VendorDomain> domains() const override { return Domains(); }

 private:
  const onnxifi::reference::Device selector_;
};

}  // namespace
}  // namespace example

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() {
  return plugin::MakeProvider(std::make_unique<example::Hardware>());
}

}  // namespace onnxifi::abi
