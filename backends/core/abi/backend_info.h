// SPDX-License-Identifier: Apache-2.0
//
// BackendInfo: the answers to queries about a device, before they are stored for the caller.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_BACKEND_INFO_H_
#define ONNXIFI_BACKENDS_CORE_ABI_BACKEND_INFO_H_

#include <onnx/onnxifi.h>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"

namespace onnxifi::abi {

// The answer of `id`, with what core/abi adds to it. UNSUPPORTED_ATTRIBUTE for an unknown query.
base::Result<InfoValue> FindInfoValue(const BackendId& id, onnxBackendInfo query);

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_BACKEND_INFO_H_
