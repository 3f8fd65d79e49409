// SPDX-License-Identifier: Apache-2.0
//
// DispatchProvider: what libonnxifi exports: the auto device, then every device of every plugin.

#ifndef ONNXIFI_ONNXIFI_DISPATCH_DISPATCH_PROVIDER_H_
#define ONNXIFI_ONNXIFI_DISPATCH_DISPATCH_PROVIDER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "backends/core/abi/provider.h"
#include "discovery/registry/plugin_registry.h"
#include "onnxifi/dispatch/auto_backend_id.h"
#include "onnxifi/plugins/device_source.h"
#include "onnxifi/plugins/forwarded_backend_id.h"

namespace onnxifi::dispatch {

class DispatchProvider final : public abi::Provider, public plugins::DeviceSource {
 public:
  // Discovery happens on the first call; the list never changes after it.
  base::Result<std::vector<const abi::BackendId*>> EnumerateBackendIds() override;
  onnxExtensionFunctionPointer FindFunction(std::string_view name) const override;

  // Discovers plugins if that has not happened yet.
  const registry::PluginRegistry& Registry();
  std::vector<const plugins::ForwardedBackendId*> Devices() override;
  // How many of them are the plugin's. Only after discovery.
  uint32_t CountDevices(std::string_view plugin) const;

 private:
  std::once_flag discovered_;
  registry::PluginRegistry registry_;
  std::vector<std::unique_ptr<plugins::ForwardedBackendId>> devices_;
  // Null when there is no device it could choose.
  std::unique_ptr<AutoBackendId> auto_id_;
};

}  // namespace onnxifi::dispatch

#endif  // ONNXIFI_ONNXIFI_DISPATCH_DISPATCH_PROVIDER_H_
