// SPDX-License-Identifier: Apache-2.0
//
// Sentences with keys of devices.

#include "onnxifi/planner/device_keys.h"

namespace onnxifi::planner {

std::string ListKeys(std::span<const std::string> keys) {
  std::string text;
  for (size_t index = 0; index < keys.size(); ++index) {
    if (index > 0) text += index + 1 == keys.size() ? " and " : ", ";
    text += keys[index];
  }
  return text;
}

base::Status NoSuchDevice(const std::string& key,
                          std::span<const plugins::ForwardedBackendId* const> devices) {
  std::string keys;
  for (const plugins::ForwardedBackendId* device : devices) keys += " " + device->key();
  return base::Status(base::Code::kInvalidProperty,
                      "The auto device has no device '" + key + "'; it has:" + keys + ".");
}

}  // namespace onnxifi::planner
