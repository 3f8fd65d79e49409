// SPDX-License-Identifier: Apache-2.0
//
// DeviceSource: where the devices of this library come from, for functions that callers get by name
// and that know the library's provider only as what it exports.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_DEVICE_SOURCE_H_
#define ONNXIFI_ONNXIFI_PLUGINS_DEVICE_SOURCE_H_

#include <vector>

#include "onnxifi/plugins/forwarded_backend_id.h"

namespace onnxifi::plugins {

class DeviceSource {
 public:
  // Every device of every plugin, in the order of their IDs. Discovers plugins if that has not
  // happened yet.
  virtual std::vector<const ForwardedBackendId*> Devices() = 0;

 protected:
  ~DeviceSource() = default;
};

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_DEVICE_SOURCE_H_
