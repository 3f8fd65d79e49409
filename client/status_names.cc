// SPDX-License-Identifier: Apache-2.0
//
// Look-ups in the lists of status codes.

#include "client/status_names.h"

#include <fmt/format.h>

namespace onnxifi::client {

std::optional<size_t> FindStatus(onnxStatus status) {
  for (size_t index = 0; index < kStatusCount; ++index) {
    if (kStatuses[index].status == status) return index;
  }
  return std::nullopt;
}

std::string StatusName(onnxStatus status) {
  const std::optional<size_t> index = FindStatus(status);
  if (index) return std::string(kStatuses[*index].name);
  return fmt::format("status 0x{:04X}", static_cast<uint32_t>(status));
}

bool IsRefusal(onnxStatus status) {
  return status == ONNXIFI_STATUS_UNSUPPORTED_VERSION ||
         status == ONNXIFI_STATUS_UNSUPPORTED_OPERATOR ||
         status == ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE ||
         status == ONNXIFI_STATUS_UNSUPPORTED_SHAPE ||
         status == ONNXIFI_STATUS_UNSUPPORTED_DATATYPE;
}

}  // namespace onnxifi::client
