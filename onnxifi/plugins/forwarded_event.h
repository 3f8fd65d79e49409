// SPDX-License-Identifier: Apache-2.0
//
// ForwardedEvent: a plugin's event under our handle.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_EVENT_H_
#define ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_EVENT_H_

#include <onnx/onnxifi.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "backends/core/abi/event.h"
#include "onnxifi/plugins/plugin_backend.h"

namespace onnxifi::plugins {

// Owns the plugin's handle: releases it when abandoned, at the latest when destroyed.
class ForwardedEvent final : public abi::Event {
 public:
  // Takes `handle`. `owner` is the plugin's backend that the event belongs to.
  ForwardedEvent(std::shared_ptr<const PluginBackend> owner, onnxEvent handle);
  ~ForwardedEvent() override;

  base::Status Signal() override;
  base::Result<bool> IsSignalled() override;
  base::Status Wait() override;
  std::optional<base::Status> WaitFor(std::chrono::milliseconds timeout) override;
  void Abandon() override;
  base::Result<std::vector<abi::TensorShape>> OutputShapes() override;
  base::Result<std::vector<abi::KeptValue>> OutputValues() override;
  // The plugin's own structures, where they are sound.
  base::Status VisitOutputValues(const std::function<void(const onnxValue&)>& visit) override;

  const PluginBackend& owner() const { return *owner_; }
  onnxEvent handle() const { return handle_; }

 private:
  std::optional<base::Status> WaitForPlugin(uint32_t timeout_ms);

  const std::shared_ptr<const PluginBackend> owner_;
  const onnxEvent handle_;
  std::atomic<bool> is_released_ = false;
};

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_FORWARDED_EVENT_H_
