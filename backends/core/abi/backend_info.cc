// SPDX-License-Identifier: Apache-2.0
//
// BackendInfo: what core/abi itself knows of a device, added to what its provider says.

#include "backends/core/abi/backend_info.h"

#include <onnxifi/auto_device.h>
#include <onnxifi/sdk.h>

#include <cstdint>
#include <string>
#include <variant>

#include "backends/core/abi/extension.h"

namespace onnxifi::abi {

base::Result<InfoValue> FindInfoValue(const BackendId& id, onnxBackendInfo query) {
  constexpr uint64_t kVersion1Dot0 = uint64_t{1} << 32;
  if (query == ONNXIFI_BACKEND_ONNXIFI_VERSION) return InfoValue(kVersion1Dot0);
  ONNXIFI_ASSIGN_OR_RETURN(InfoValue value, id.Info(query));
  if (query == ONNXIFI_BACKEND_EXTENSIONS) {
    const auto* names = std::get_if<std::string>(&value);
    return InfoValue(ExtensionNames(names != nullptr ? *names : std::string()));
  }
  if (query == ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES) {
    if (auto* bits = std::get_if<uint64_t>(&value)) {
      for (const uint64_t key :
           {ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER, ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE,
            ONNXIFI_SDK_GRAPH_PROPERTY_VALUES, ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS,
            ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION, ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION,
            ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL, ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL,
            ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS, ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE}) {
        if (id.TakesGraphProperty(key)) *bits |= key;
      }
    }
  }
  return value;
}

}  // namespace onnxifi::abi
