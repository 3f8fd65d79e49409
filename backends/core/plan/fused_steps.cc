// SPDX-License-Identifier: Apache-2.0
//
// Fused steps: found step by step.

#include "backends/core/plan/fused_steps.h"

#include <algorithm>
#include <set>

#include "backends/core/program/sole_consumer.h"

namespace onnxifi::plan {

int CountFusableSteps(const program::Program& program, const program::BufferUses& uses, int first) {
  int length = 1;
  while (length < kMaxFusedSteps &&
         FindSoleConsumer(program, uses, first + length - 1) == first + length) {
    ++length;
  }
  return length;
}

void JoinLifetimes(const program::Program& program, int first, int end,
                   std::vector<BufferLifetime>& lifetimes) {
  std::set<program::BufferId> intermediates;
  for (int s = first; s + 1 < end; ++s) intermediates.insert(program.steps[s].writes[0].buffer);
  std::erase_if(lifetimes, [&](const BufferLifetime& lifetime) {
    return intermediates.contains(lifetime.buffer);
  });
  const auto is_inside = [&](int step) { return step >= first && step < end; };
  for (BufferLifetime& lifetime : lifetimes) {
    // In place of what an earlier one of the fused steps still reads, or of what has no lifetime.
    if (is_inside(lifetime.first_write) || intermediates.contains(lifetime.shares)) {
      lifetime.shares = program::kNoBuffer;
    }
    if (is_inside(lifetime.first_write)) lifetime.first_write = first;
    if (is_inside(lifetime.last_use)) lifetime.last_use = end - 1;
  }
}

}  // namespace onnxifi::plan
