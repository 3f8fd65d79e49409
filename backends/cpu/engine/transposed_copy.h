// SPDX-License-Identifier: Apache-2.0
//
// TransposedCopy: a Map that only moves elements to a transposed place, where the result is too
// large for caches. A tile that goes through registers would either read or write in pieces of a
// line; here memory is read in long runs and whole lines are stored past the caches.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_TRANSPOSED_COPY_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_TRANSPOSED_COPY_H_

#include <memory>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/runtime.h"

namespace onnxifi::engine {

// Null where `code` and `step` are anything else, or the result has fewer bytes than
// runtime.settings().streamed_transposed_bytes. `runtime` outlives what is returned.
std::unique_ptr<device::BoundKernel> BindTransposedCopy(const Code& code,
                                                        const device::BoundStep& step,
                                                        Runtime& runtime);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_TRANSPOSED_COPY_H_
