// SPDX-License-Identifier: Apache-2.0
//
// PluginHealth: the first fault counts; what follows may be its consequence.

#include "discovery/library/plugin_health.h"

#include <utility>

namespace onnxifi::library {

PluginHealth::PluginHealth(std::string plugin_name, base::Log log)
    : plugin_name_(std::move(plugin_name)), log_(log) {}

std::string PluginHealth::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void PluginHealth::Quarantine(std::string sentence) {
  {
    const std::lock_guard lock(mutex_);
    if (!reason_.empty()) return;
    reason_ = sentence;
    is_quarantined_.store(true, std::memory_order_release);
  }
  log_.Write(base::LogLevel::kWarning, "loader",
             "Plugin '" + plugin_name_ + "' is quarantined: " + sentence);
}

}  // namespace onnxifi::library
