// SPDX-License-Identifier: Apache-2.0
//
// DeviceRequest: what of a caller's request for a graph is passed on to a device that does not know
// all of the SDK's properties.

#ifndef ONNXIFI_ONNXIFI_DISPATCH_DEVICE_REQUEST_H_
#define ONNXIFI_ONNXIFI_DISPATCH_DEVICE_REQUEST_H_

#include <cstdint>

#include "backends/core/abi/provider.h"
#include "onnxifi/dispatch/forwarded_backend_id.h"

namespace onnxifi::dispatch {

// The request without this property.
abi::GraphRequest Without(abi::GraphRequest request, uint64_t property);

// The request without what the device does not take and what is about time, memory and records
// alone. Whatever says how results are computed stays, for the device to refuse.
abi::GraphRequest RequestFor(const ForwardedBackendId& device, abi::GraphRequest request);

}  // namespace onnxifi::dispatch

#endif  // ONNXIFI_ONNXIFI_DISPATCH_DEVICE_REQUEST_H_
