// SPDX-License-Identifier: Apache-2.0
//
// The devices of a library under the names by which people choose them: "auto", a plugin's name, or
// "plugin:index".

#ifndef ONNXIFI_CLIENT_DEVICE_LIST_H_
#define ONNXIFI_CLIENT_DEVICE_LIST_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/library.h"

namespace onnxifi::client {

struct Device {
  onnxBackendID id = nullptr;
  // "auto" or "cpu:0". A library that does not name its devices has "<name of its file>:<index>".
  std::string key;

  // The key up to its colon.
  std::string_view plugin() const { return std::string_view(key).substr(0, key.find(':')); }
};

// All devices in the library's order. BACKEND_UNAVAILABLE when listing fails, with the library's
// sentence.
base::Result<std::vector<Device>> ListDevices(const Library& library);

// The first device whose key or plugin is `name`; an empty name takes the first of all.
// INVALID_NAME, with the names there are, when there is none.
base::Result<Device> ChooseDevice(std::span<const Device> devices, std::string_view name);

// A string or number query; nothing when the device does not answer it.
std::optional<std::string> QueryText(const Library& library, onnxBackendID id,
                                     onnxBackendInfo query);
std::optional<uint64_t> QueryNumber(const Library& library, onnxBackendID id,
                                    onnxBackendInfo query);

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_DEVICE_LIST_H_
