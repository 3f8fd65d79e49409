// SPDX-License-Identifier: Apache-2.0
//
// Chains: steps that a device may do as one (device::FusableSteps), and what that means for the
// lifetimes of buffers.

#ifndef ONNXIFI_BACKENDS_CORE_PLAN_FUSED_STEPS_H_
#define ONNXIFI_BACKENDS_CORE_PLAN_FUSED_STEPS_H_

#include <vector>

#include "backends/core/plan/memory_plan.h"
#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/program.h"

namespace onnxifi::plan {

// No device is shown more steps of a chain, so that plans take time in proportion to the program.
inline constexpr int kMaxFusedSteps = 8;

// How many steps from `first` on are a chain, at most kMaxFusedSteps; 1 where it hands nothing on.
int CountFusableSteps(const program::Program& program, const program::BufferUses& uses, int first);

// The lifetimes of a program whose steps [first, end) are done at the same time: what they read
// lives until the last of them is done, what they write from the first on. What one hands to the
// next has no life.
void JoinLifetimes(const program::Program& program, int first, int end,
                   std::vector<BufferLifetime>& lifetimes);

}  // namespace onnxifi::plan

#endif  // ONNXIFI_BACKENDS_CORE_PLAN_FUSED_STEPS_H_
