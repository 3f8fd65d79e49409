// SPDX-License-Identifier: Apache-2.0
//
// Sentences with keys of devices.

#ifndef ONNXIFI_ONNXIFI_PLANNER_DEVICE_KEYS_H_
#define ONNXIFI_ONNXIFI_PLANNER_DEVICE_KEYS_H_

#include <span>
#include <string>

#include "backends/core/base/status.h"
#include "onnxifi/plugins/forwarded_backend_id.h"

namespace onnxifi::planner {

// "cpu:0, vulkan:0 and opencl:0".
std::string ListKeys(std::span<const std::string> keys);

// INVALID_PROPERTY for a caller's key that none of the devices has.
base::Status NoSuchDevice(const std::string& key,
                          std::span<const plugins::ForwardedBackendId* const> devices);

}  // namespace onnxifi::planner

#endif  // ONNXIFI_ONNXIFI_PLANNER_DEVICE_KEYS_H_
