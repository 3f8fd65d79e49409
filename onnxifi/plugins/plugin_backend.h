// SPDX-License-Identifier: Apache-2.0
//
// PluginBackend: an initialised backend of a plugin, with the calls of that plugin. Graphs and
// events of the dispatcher share it, so that it outlives whatever the plugin made with it.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_PLUGIN_BACKEND_H_
#define ONNXIFI_ONNXIFI_PLUGINS_PLUGIN_BACKEND_H_

#include <onnx/onnxifi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"
#include "onnxifi/plugins/plugin_calls.h"
#include "onnxifi/plugins/shared_source.h"

namespace onnxifi::plugins {

// A property list as the interface wants it.
std::vector<uint64_t> EncodeProperties(const std::vector<abi::Property>& properties);

class PluginBackend final : public SharedSource,
                            public std::enable_shared_from_this<PluginBackend> {
 public:
  static base::Result<std::shared_ptr<const PluginBackend>> Init(
      const PluginCalls& calls, const std::vector<abi::Property>& properties);
  ~PluginBackend() override;
  PluginBackend(const PluginBackend&) = delete;
  PluginBackend& operator=(const PluginBackend&) = delete;

  const PluginCalls& calls() const { return calls_; }
  onnxBackend handle() const { return handle_; }
  // Releases the plugin's backend while its graphs and events are left. Afterwards nothing new is
  // made with the handle.
  void Release() const;

  // Keeps the backend. UNSUPPORTED_MEMORY_TYPE where the plugin or the device has none such.
  base::Result<abi::SharedMemory> AllocateShared(int64_t size_bytes) const override;

 private:
  PluginBackend(const PluginCalls& calls, onnxBackend handle) : calls_(calls), handle_(handle) {}

  const PluginCalls calls_;
  const onnxBackend handle_;
  mutable std::atomic<bool> is_released_ = false;
  // Whether it has said so.
  mutable std::atomic<bool> has_no_shared_memory_ = false;
};

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_PLUGIN_BACKEND_H_
