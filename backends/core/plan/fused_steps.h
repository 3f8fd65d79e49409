// SPDX-License-Identifier: Apache-2.0
//
// Fused steps: consecutive steps that one kernel may compute (device::FusableSteps), and what that
// means for the lifetimes of buffers.

#ifndef ONNXIFI_BACKENDS_CORE_PLAN_FUSED_STEPS_H_
#define ONNXIFI_BACKENDS_CORE_PLAN_FUSED_STEPS_H_

#include <vector>

#include "backends/core/plan/memory_plan.h"
#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/program.h"

namespace onnxifi::plan {

// No device is shown more steps at once, so that the time to plan is proportional to the program.
inline constexpr int kMaxFusedSteps = 8;

// How many steps from `first` on can be fused, at most kMaxFusedSteps: each is the sole consumer of
// the one before. 1 where `first` has no sole consumer behind it.
int CountFusableSteps(const program::Program& program, const program::BufferUses& uses, int first);

// The lifetimes of a program whose steps [first, end) are done at the same time: what they read
// lives until the last of them is done, what they write from the first on. What only the next of
// them reads has no lifetime.
void JoinLifetimes(const program::Program& program, int first, int end,
                   std::vector<BufferLifetime>& lifetimes);

}  // namespace onnxifi::plan

#endif  // ONNXIFI_BACKENDS_CORE_PLAN_FUSED_STEPS_H_
