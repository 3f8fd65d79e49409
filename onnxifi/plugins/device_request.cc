// SPDX-License-Identifier: Apache-2.0
//
// DeviceRequest: devices read the list of properties; what core/abi made of it here is kept in
// step.

#include "onnxifi/plugins/device_request.h"

#include <onnxifi/auto_device.h>
#include <onnxifi/sdk.h>

#include <utility>
#include <vector>

namespace onnxifi::plugins {

abi::GraphRequest Without(abi::GraphRequest request, uint64_t property) {
  std::erase_if(request.properties.given,
                [&](const abi::Property& given) { return given.key == property; });
  switch (property) {
    case ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL:
      request.properties.is_mapped_model = false;
      break;
    case ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL:
      request.properties.is_lasting_model = false;
      break;
    case ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS:
      request.properties.caller_runs = false;
      break;
    case ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION:
      request.properties.precision = tensor::Precision::kFloat32;
      break;
    case ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION:
      request.properties.has_dynamic_quantization = false;
      break;
    case ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE:
      request.properties.may_measure = false;
      break;
    case ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE:
      request.properties.is_profiled = false;
      break;
    default:
      break;
  }
  return request;
}

abi::GraphRequest RequestFor(const ForwardedBackendId& device, abi::GraphRequest request) {
  for (const uint64_t property :
       {ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL, ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL,
        ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS, ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION,
        ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION, ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE,
        ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE}) {
    if (!device.TakesGraphProperty(property)) request = Without(std::move(request), property);
  }
  return request;
}

}  // namespace onnxifi::plugins
