// SPDX-License-Identifier: Apache-2.0
//
// PluginHealth: whether a plugin is quarantined, and why. A plugin is quarantined for good when a
// call into it does what no plugin may do: it throws, or it asks for more than a limit allows.

#ifndef ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_HEALTH_H_
#define ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_HEALTH_H_

#include <atomic>
#include <mutex>
#include <string>

#include "backends/core/base/log.h"

namespace onnxifi::library {

// Threads: any.
class PluginHealth {
 public:
  // `plugin_name` is for the log alone.
  explicit PluginHealth(std::string plugin_name = "",
                        base::Log log = base::Log(base::LogLevel::kSilent));

  bool is_quarantined() const { return is_quarantined_.load(std::memory_order_acquire); }
  // The full sentence of the first fault; empty while there is none.
  std::string reason() const;
  // Keeps the first sentence and logs it as a warning.
  void Quarantine(std::string sentence);

 private:
  const std::string plugin_name_;
  const base::Log log_;
  std::atomic<bool> is_quarantined_ = false;
  mutable std::mutex mutex_;
  // Guarded by `mutex_`.
  std::string reason_;
};

}  // namespace onnxifi::library

#endif  // ONNXIFI_DISCOVERY_LIBRARY_PLUGIN_HEALTH_H_
