// SPDX-License-Identifier: Apache-2.0
//
// Property lists of onnxInitBackend and onnxInitGraph: `key, value, ..., 0`. An unknown key ends
// the reading at once, because nobody knows what lies behind it.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_PROPERTY_LIST_H_
#define ONNXIFI_BACKENDS_CORE_ABI_PROPERTY_LIST_H_

#include <cstdint>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"

namespace onnxifi::abi {

// Both take NULL for an empty list. UNSUPPORTED_PROPERTY for a key that `id` does not take,
// INVALID_PROPERTY for a value out of range.
base::Result<BackendProperties> ReadBackendProperties(const uint64_t* list, const BackendId& id);
base::Result<GraphProperties> ReadGraphProperties(const uint64_t* list, const BackendId& id);

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_PROPERTY_LIST_H_
