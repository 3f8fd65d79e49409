// SPDX-License-Identifier: Apache-2.0
//
// ForwardedBackend: a plugin's backend under our handle; every graph goes to that plugin.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_BACKEND_H_
#define ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_BACKEND_H_

#include <atomic>
#include <memory>
#include <utility>

#include "backends/core/abi/provider.h"
#include "onnxifi/plugins/plugin_backend.h"

namespace onnxifi::plugins {

class ForwardedBackend final : public abi::Backend {
 public:
  // `takes_implicit_fences`: the plugin lists that it does.
  ForwardedBackend(std::shared_ptr<const PluginBackend> backend, bool takes_implicit_fences)
      : backend_(std::move(backend)), takes_implicit_fences_(takes_implicit_fences) {}

  // A plugin that waits for events of drivers is told at once, so that it waits for them no longer.
  void Release() override {
    if (has_imported_) backend_->Release();
  }
  base::Result<std::unique_ptr<abi::Graph>> InitGraph(const abi::GraphRequest& request) override;
  base::Result<std::shared_ptr<abi::Event>> NewEvent() override;
  base::Result<std::shared_ptr<abi::Event>> ImportEvent(const abi::NativeEvent& native) override;
  base::Result<abi::NativeEvent> ExportEvent(uint32_t kind,
                                             std::shared_ptr<abi::Event> event) override;
  base::Result<abi::SharedMemory> AllocateSharedMemory(int64_t size_bytes) override {
    return backend_->AllocateShared(size_bytes);
  }
  bool TakesImplicitFences() const override { return takes_implicit_fences_; }
  // The plugin checks.
  bool TakesDataType(onnxEnum /*data_type*/) const override { return true; }
  bool TakesMemoryType(onnxEnum /*memory_type*/) const override { return true; }

 private:
  const std::shared_ptr<const PluginBackend> backend_;
  const bool takes_implicit_fences_;
  std::atomic<bool> has_imported_ = false;
};

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_BACKEND_H_
