// SPDX-License-Identifier: Apache-2.0
//
// FoldConstantSteps: what lowering an operator leaves to compute from constants alone, such as the
// scales of a normalisation that has no convolution before it, is computed once while the graph is
// made ready. Constant folding sees whole nodes only.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_CONSTANT_STEPS_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_CONSTANT_STEPS_H_

#include <cstdint>

#include "backends/core/base/status.h"
#include "backends/core/device/device.h"
#include "backends/core/program/program.h"

namespace onnxifi::plugin {

// Replaces Maps that read nothing but constants, and whose extents are all numbers, by constants,
// as long as their results are small, or take long to compute, or are no larger than what they read
// but by widening and unpacking elements, which has a limit for the whole program. Results that
// callers see stay, as they are written in each run, and so do those of more than `max_bytes`.
// `device` computes in the host's memory. Resource codes.
base::Status FoldConstantSteps(program::Program& program, device::Device& device,
                               int64_t max_bytes = INT64_MAX);

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_CONSTANT_STEPS_H_
