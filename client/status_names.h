// SPDX-License-Identifier: Apache-2.0
//
// The status codes of ONNXIFI 1.0 and their names, in the order of the interface's own table.

#ifndef ONNXIFI_CLIENT_STATUS_NAMES_H_
#define ONNXIFI_CLIENT_STATUS_NAMES_H_

#include <onnx/onnxifi.h>
#include <onnxifi/statuses.h>

#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "backends/core/base/function.h"

namespace onnxifi::client {

struct NamedStatus {
  onnxStatus status;
  std::string_view name;  // Without the prefix ONNXIFI_STATUS_.
};

inline constexpr NamedStatus kStatuses[] = {
#define ONNXIFI_MEMBER(name, code_name, meaning) {ONNXIFI_STATUS_##name, #name},
    ONNXIFI_SDK_STATUSES(ONNXIFI_MEMBER)
#undef ONNXIFI_MEMBER
};
inline constexpr size_t kStatusCount = std::size(kStatuses);

// The suite calls these; extensions are found by name.
using base::Function;
using base::FunctionName;
inline constexpr size_t kFunctionCount = base::kStandardFunctionCount;

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
