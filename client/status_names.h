// SPDX-License-Identifier: Apache-2.0
//
// The status codes and functions of ONNXIFI 1.0 as lists, in the order of the interface's own
// tables.

#ifndef ONNXIFI_CLIENT_STATUS_NAMES_H_
#define ONNXIFI_CLIENT_STATUS_NAMES_H_

#include <onnx/onnxifi.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace onnxifi::client {

struct NamedStatus {
  onnxStatus status;
  std::string_view name;  // Without the prefix ONNXIFI_STATUS_.
};

inline constexpr std::array<NamedStatus, 36> kStatuses = {{
    {ONNXIFI_STATUS_SUCCESS, "SUCCESS"},
    {ONNXIFI_STATUS_FALLBACK, "FALLBACK"},
    {ONNXIFI_STATUS_INVALID_ID, "INVALID_ID"},
    {ONNXIFI_STATUS_INVALID_SIZE, "INVALID_SIZE"},
    {ONNXIFI_STATUS_INVALID_POINTER, "INVALID_POINTER"},
    {ONNXIFI_STATUS_INVALID_PROTOBUF, "INVALID_PROTOBUF"},
    {ONNXIFI_STATUS_INVALID_MODEL, "INVALID_MODEL"},
    {ONNXIFI_STATUS_INVALID_BACKEND, "INVALID_BACKEND"},
    {ONNXIFI_STATUS_INVALID_GRAPH, "INVALID_GRAPH"},
    {ONNXIFI_STATUS_INVALID_EVENT, "INVALID_EVENT"},
    {ONNXIFI_STATUS_INVALID_STATE, "INVALID_STATE"},
    {ONNXIFI_STATUS_INVALID_NAME, "INVALID_NAME"},
    {ONNXIFI_STATUS_INVALID_SHAPE, "INVALID_SHAPE"},
    {ONNXIFI_STATUS_INVALID_DATATYPE, "INVALID_DATATYPE"},
    {ONNXIFI_STATUS_INVALID_MEMORY_TYPE, "INVALID_MEMORY_TYPE"},
    {ONNXIFI_STATUS_INVALID_MEMORY_LOCATION, "INVALID_MEMORY_LOCATION"},
    {ONNXIFI_STATUS_INVALID_FENCE_TYPE, "INVALID_FENCE_TYPE"},
    {ONNXIFI_STATUS_INVALID_PROPERTY, "INVALID_PROPERTY"},
    {ONNXIFI_STATUS_UNSUPPORTED_TAG, "UNSUPPORTED_TAG"},
    {ONNXIFI_STATUS_UNSUPPORTED_VERSION, "UNSUPPORTED_VERSION"},
    {ONNXIFI_STATUS_UNSUPPORTED_OPERATOR, "UNSUPPORTED_OPERATOR"},
    {ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE, "UNSUPPORTED_ATTRIBUTE"},
    {ONNXIFI_STATUS_UNSUPPORTED_SHAPE, "UNSUPPORTED_SHAPE"},
    {ONNXIFI_STATUS_UNSUPPORTED_DATATYPE, "UNSUPPORTED_DATATYPE"},
    {ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE, "UNSUPPORTED_MEMORY_TYPE"},
    {ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE, "UNSUPPORTED_FENCE_TYPE"},
    {ONNXIFI_STATUS_UNSUPPORTED_PROPERTY, "UNSUPPORTED_PROPERTY"},
    {ONNXIFI_STATUS_UNIDENTIFIED_NAME, "UNIDENTIFIED_NAME"},
    {ONNXIFI_STATUS_MISMATCHING_SHAPE, "MISMATCHING_SHAPE"},
    {ONNXIFI_STATUS_MISMATCHING_DATATYPE, "MISMATCHING_DATATYPE"},
    {ONNXIFI_STATUS_NO_SYSTEM_MEMORY, "NO_SYSTEM_MEMORY"},
    {ONNXIFI_STATUS_NO_DEVICE_MEMORY, "NO_DEVICE_MEMORY"},
    {ONNXIFI_STATUS_NO_SYSTEM_RESOURCES, "NO_SYSTEM_RESOURCES"},
    {ONNXIFI_STATUS_NO_DEVICE_RESOURCES, "NO_DEVICE_RESOURCES"},
    {ONNXIFI_STATUS_BACKEND_UNAVAILABLE, "BACKEND_UNAVAILABLE"},
    {ONNXIFI_STATUS_INTERNAL_ERROR, "INTERNAL_ERROR"},
}};

enum class FunctionIndex : uint8_t {
  kGetBackendIDs,
  kReleaseBackendID,
  kGetBackendInfo,
  kGetBackendCompatibility,
  kInitBackend,
  kReleaseBackend,
  kInitEvent,
  kSignalEvent,
  kGetEventState,
  kWaitEvent,
  kReleaseEvent,
  kInitGraph,
  kSetGraphIO,
  kRunGraph,
  kReleaseGraph,
};

inline constexpr std::array<std::string_view, 15> kFunctionNames = {
    "onnxGetBackendIDs",  "onnxReleaseBackendID",
    "onnxGetBackendInfo", "onnxGetBackendCompatibility",
    "onnxInitBackend",    "onnxReleaseBackend",
    "onnxInitEvent",      "onnxSignalEvent",
    "onnxGetEventState",  "onnxWaitEvent",
    "onnxReleaseEvent",   "onnxInitGraph",
    "onnxSetGraphIO",     "onnxRunGraph",
    "onnxReleaseGraph"};

inline constexpr std::string_view NameOf(FunctionIndex function) {
  return kFunctionNames[static_cast<size_t>(function)];
}

// Position of a status in kStatuses; nothing for a code that the interface does not have.
std::optional<size_t> FindStatus(onnxStatus status);

// "INVALID_SHAPE", or "status 0x1234" for a code that the interface does not have.
std::string StatusName(onnxStatus status);

// The five codes by which a library may refuse a legal model.
bool IsRefusal(onnxStatus status);

// SUCCESS or FALLBACK.
inline bool IsAcceptance(onnxStatus status) {
  return status == ONNXIFI_STATUS_SUCCESS || status == ONNXIFI_STATUS_FALLBACK;
}

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_STATUS_NAMES_H_
