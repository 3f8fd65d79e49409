// SPDX-License-Identifier: Apache-2.0
//
// TransposedCopy: a Map that only moves elements to a transposed place, block by block without
// registers of the tile engine between. A result too large for caches is read in long runs, and
// stored in whole lines past them.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_TRANSPOSED_COPY_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_TRANSPOSED_COPY_H_

#include <memory>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/runtime.h"

namespace onnxifi::engine {

// Null where `code` and `step` are anything else, or rows are shorter than a line. Results of
// runtime.settings().streamed_transposed_bytes or more go past the caches. `runtime` outlives what
// is returned.
std::unique_ptr<device::BoundKernel> BindTransposedCopy(const Code& code,
                                                        const device::BoundStep& step,
                                                        Runtime& runtime);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_TRANSPOSED_COPY_H_
