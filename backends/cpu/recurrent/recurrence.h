// SPDX-License-Identifier: Apache-2.0
//
// Recurrence: a step of the family Recurrent with numbers: which threads do which part of it, and
// one run of it.

#ifndef ONNXIFI_BACKENDS_CPU_RECURRENT_RECURRENCE_H_
#define ONNXIFI_BACKENDS_CPU_RECURRENT_RECURRENCE_H_

#include <memory>

#include "backends/core/device/device.h"
#include "backends/cpu/runtime/packed_weights.h"
#include "backends/cpu/runtime/runtime.h"

namespace onnxifi::recurrent {

// `weights` are packed, or null: then each run packs them. `runtime` outlives the kernel.
std::unique_ptr<device::BoundKernel> BindRecurrence(const device::BoundStep& step,
                                                    runtime::PackedWeights weights,
                                                    runtime::Runtime& runtime);

}  // namespace onnxifi::recurrent

#endif  // ONNXIFI_BACKENDS_CPU_RECURRENT_RECURRENCE_H_
