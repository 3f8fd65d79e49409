// SPDX-License-Identifier: Apache-2.0
//
// InfoValue: the bytes of a number, a pointer or a NUL-terminated string.

#include "backends/core/abi/info_value.h"

#include <onnxifi/sdk.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "backends/core/abi/extension.h"

namespace onnxifi::abi {

using base::Code;
using base::Status;

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
            ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL, ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL,
            ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS}) {
        if (id.TakesGraphProperty(key)) *bits |= key;
      }
    }
  }
  return value;
}

Status StoreInfoValue(const InfoValue& value, void* buffer, size_t* size_bytes) {
  const void* bytes = nullptr;
  size_t size = 0;
  if (const auto* text = std::get_if<std::string>(&value)) {
    bytes = text->c_str();
    size = text->size() + 1;
  } else if (const auto* number = std::get_if<uint64_t>(&value)) {
    bytes = number;
    size = sizeof(*number);
  } else {
    bytes = &std::get<void*>(value);
    size = sizeof(void*);
  }
  const bool fits = buffer != nullptr && *size_bytes >= size;
  *size_bytes = size;
  if (!fits) {
    return Status(Code::kFallback, "The value takes " + std::to_string(size) + " bytes.");
  }
  std::memcpy(buffer, bytes, size);
  return base::Ok();
}

}  // namespace onnxifi::abi
