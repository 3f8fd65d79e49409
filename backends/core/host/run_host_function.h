// SPDX-License-Identifier: Apache-2.0
//
// RunHostFunction: computes any function of the list in program/host_function.h. Works on values in
// host memory alone; execution brings tensors of a device here and back.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_RUN_HOST_FUNCTION_H_
#define ONNXIFI_BACKENDS_CORE_HOST_RUN_HOST_FUNCTION_H_

#include <span>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/program/host_function.h"
#include "backends/core/tensor/value.h"

namespace onnxifi::host {

// `inputs` as the function's comment says, null where one is omitted; tensors of strings hold
// strings. A tensor without owner is borrowed for the call: what keeps it, copies it. One output
// per output of the function. MISMATCHING_*, INVALID_SHAPE and the like where values do not fit,
// NO_SYSTEM_MEMORY. Any thread.
base::Result<std::vector<tensor::ValueRef>> RunHostFunction(
    const program::HostFunction& function, std::span<const tensor::ValueRef> inputs);

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_RUN_HOST_FUNCTION_H_
