// SPDX-License-Identifier: Apache-2.0
//
// DeviceRequest: what of a caller's request for a graph is passed on to a device that does not know
// all of the SDK's properties.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_DEVICE_REQUEST_H_
#define ONNXIFI_ONNXIFI_PLUGINS_DEVICE_REQUEST_H_

#include <cstdint>

#include "backends/core/abi/provider.h"
#include "onnxifi/plugins/forwarded_backend_id.h"

namespace onnxifi::plugins {

// The request without this property.
abi::GraphRequest Without(abi::GraphRequest request, uint64_t property);

// The request without what the device does not take and what is about time, memory and records
// alone. Whatever says how results are computed stays, for the device to refuse.
abi::GraphRequest RequestFor(const ForwardedBackendId& device, abi::GraphRequest request);

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_DEVICE_REQUEST_H_
