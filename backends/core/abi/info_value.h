// SPDX-License-Identifier: Apache-2.0
//
// InfoValue: how the answer to a query reaches the caller's buffer (the two-call rule).

#ifndef ONNXIFI_BACKENDS_CORE_ABI_INFO_VALUE_H_
#define ONNXIFI_BACKENDS_CORE_ABI_INFO_VALUE_H_

#include <onnx/onnxifi.h>

#include <cstddef>

#include "backends/core/abi/provider.h"
#include "backends/core/base/status.h"

namespace onnxifi::abi {

// Writes the exact size (a string's counts its NUL), and the value if it fits; FALLBACK if not.
base::Status StoreInfoValue(const InfoValue& value, void* buffer, size_t* size_bytes);

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_INFO_VALUE_H_
