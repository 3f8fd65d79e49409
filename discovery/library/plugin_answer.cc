// SPDX-License-Identifier: Apache-2.0
//
// PluginAnswer: the list of devices.

#include "discovery/library/plugin_answer.h"

namespace onnxifi::library {

DeviceAnswer ReadDevices(const PluginFunctions& functions) {
  constexpr std::string_view kFunction = "onnxGetBackendIDs";
  PluginHealth& health = *functions.health;
  DeviceAnswer answer;
  answer.status = detail::ReadGrowing(health, kFunction, "devices", kMaxDevices, &answer.ids,
                                      functions.get_backend_ids);
  const auto missing = std::find(answer.ids.begin(), answer.ids.end(), nullptr);
  if (missing != answer.ids.end()) {
    health.Quarantine("Function " + std::string(kFunction) +
                      " of the plugin gives NULL for device " +
                      std::to_string(missing - answer.ids.begin()) + " of " +
                      std::to_string(answer.ids.size()) + ".");
    return {ONNXIFI_STATUS_BACKEND_UNAVAILABLE, {}};
  }
  return answer;
}

}  // namespace onnxifi::library
