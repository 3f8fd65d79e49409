// SPDX-License-Identifier: Apache-2.0
//
// NodeVerdict as callers get it.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_NODE_VERDICT_H_
#define ONNXIFI_BACKENDS_CORE_ABI_NODE_VERDICT_H_

#include <onnxifi/sdk.h>

#include "backends/core/abi/provider.h"

namespace onnxifi::abi {

// Points into `verdict`, which must outlive it.
onnxNodeVerdict ToRecord(const NodeVerdict& verdict);

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_NODE_VERDICT_H_
