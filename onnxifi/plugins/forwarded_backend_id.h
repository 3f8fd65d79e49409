// SPDX-License-Identifier: Apache-2.0
//
// ForwardedBackendId: one device of one plugin under our ID.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_BACKEND_ID_H_
#define ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_BACKEND_ID_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "backends/core/abi/provider.h"
#include "onnxifi/plugins/claim_memory.h"
#include "onnxifi/plugins/physical_device.h"
#include "onnxifi/plugins/plugin_calls.h"

namespace onnxifi::plugins {

class ForwardedBackendId final : public abi::BackendId {
 public:
  // Explains a model for a device whose plugin cannot, by asking it about models of single nodes.
  using PlainExplainer = abi::Explanation (*)(const ForwardedBackendId& device,
                                              std::span<const std::byte> model);

  // `priority` is the plugin's. Without `explain_plain` nothing is told of the nodes of a plugin
  // that does not explain.
  ForwardedBackendId(PluginCalls calls, int32_t priority, PlainExplainer explain_plain = nullptr);

  std::string key() const override { return calls_.key(); }
  base::Result<abi::InfoValue> Info(onnxBackendInfo query) const override;
  base::Status CheckCompatibility(std::span<const std::byte> model) const override;
  // UNSUPPORTED_DATATYPE where the plugin takes no values.
  base::Status CheckValueCompatibility(std::span<const std::byte> model) const override;
  // A plugin without the explain extension is asked by the plain explainer.
  base::Result<abi::Explanation> Explain(std::span<const std::byte> model) const override;
  base::Result<std::unique_ptr<abi::Backend>> InitBackend(
      const abi::BackendProperties& properties) const override;
  // Vendor keys that the plugin announces. Keys that it does not announce are refused here, because
  // only the plugin could say how long their entry is.
  bool TakesBackendProperty(uint64_t key) const override;
  bool TakesGraphProperty(uint64_t key) const override;
  // Functions of the plugin's own. They know the plugin's handles, not ours: of use are those that
  // take none.
  onnxExtensionFunctionPointer FindFunction(std::string_view name) const override;

  const PluginCalls& calls() const { return calls_; }
  // Whether its plugin tells of nodes by itself.
  bool explains_nodes() const { return calls_.explain_model != nullptr; }
  // Bytes per second of the device's own memory; 0 when the plugin does not say.
  uint64_t memory_bandwidth() const { return memory_bandwidth_; }
  // What it told of nodes so far.
  ClaimMemory& claim_memory() const { return claim_memory_; }
  int32_t priority() const { return priority_; }
  // ONNXIFI_DEVICE_TYPE_*; 0 when the plugin does not say.
  onnxEnum device_type() const { return device_type_; }
  // Whether it is the processor itself, reached through the interface of other devices, such as
  // OpenCL on a CPU: it takes buffers of that interface.
  bool is_processor_behind_interface() const {
    return device_type_ == ONNXIFI_DEVICE_TYPE_CPU &&
           (memory_types_ & ~uint64_t{ONNXIFI_MEMORY_TYPE_CPU}) != 0;
  }
  // What its plugin tells of the hardware, asked when it is first wanted. Any thread.
  const PhysicalDevice& physical_device() const;
  // Whether its plugin is `null`, which runs everything slowly and is chosen only by name.
  bool is_reference() const { return calls_.plugin_name() == "null"; }

 private:
  uint64_t NumberInfo(onnxBackendInfo query) const;
  PhysicalDevice AskPhysicalDevice() const;

  const PluginCalls calls_;
  const int32_t priority_;
  const PlainExplainer explain_plain_;
  const onnxEnum device_type_;
  const uint64_t backend_properties_;
  const uint64_t graph_properties_;
  const uint64_t memory_bandwidth_;
  const uint64_t memory_types_;
  mutable ClaimMemory claim_memory_;
  mutable std::once_flag has_physical_device_;
  mutable PhysicalDevice physical_device_;
};

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_BACKEND_ID_H_
