// SPDX-License-Identifier: Apache-2.0
//
// MakeRecurrentKernels: as many time steps a launch as a driver goes through a loop.

#include "backends/core/codegen/recurrent_kernels.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/core/codegen/recurrent_numbers.h"
#include "backends/core/program/operand_extents.h"

namespace onnxifi::codegen {
namespace {

using program::Recurrent;

// Of shared memory, which every device has 16 KiB of: hidden states before and after a time step,
// cell states or what a reset leaves of the hidden states.
constexpr int64_t kMaxStates = 4 * 1024;
constexpr int64_t kRowsOfStates = 4;

bool AreNarrow(const device::BoundStep& step, const LoopNest& loops) {
  constexpr int64_t kNarrow = int64_t{1} << 29;
  for (size_t k = 0; k < loops.reads.size(); ++k) {
    if (loops.reads[k].buffer == program::kNoBuffer) continue;
    const tensor::Extents extents =
        program::OperandExtents(*step.step, static_cast<int>(k), step.dims);
    if (!IsNarrow(loops.reads[k], extents)) return false;
  }
  const tensor::Extents& domain = step.domain;
  const tensor::Extents state = {domain[0], domain[2], domain[3]};
  for (size_t k = 0; k < loops.writes.size(); ++k) {
    if (loops.writes[k].buffer == program::kNoBuffer) continue;
    if (!IsNarrow(loops.writes[k], k == Recurrent::kSequence ? domain : state)) return false;
  }
  return domain[0] * domain[3] * domain[3] * 4 <= kNarrow &&
         tensor::ElementCount(domain) <= kNarrow;
}

}  // namespace

base::Status CheckRecurrent(const program::Step& step) {
  const int64_t hidden = step.domain[3].constant();
  const int64_t bytes = tensor::SizeBytes(step.As<Recurrent>()->type, 1);
  const int64_t most = kMaxStates / kRowsOfStates * static_cast<int64_t>(sizeof(float)) / bytes;
  if (hidden <= most) return base::Ok();
  return base::Status(base::Code::kUnsupportedShape,
                      "The hidden size of " + std::to_string(hidden) + " exceeds the limit of " +
                          std::to_string(most) + ".");
}

KernelSequence MakeRecurrentKernels(const device::BoundStep& step, LoopNest loops,
                                    const Capabilities& capabilities) {
  const Recurrent& recurrent = *step.step->As<Recurrent>();
  const int64_t directions = step.domain[0];
  const int64_t time = step.domain[1];
  const int64_t batch = step.domain[2];
  const int64_t hidden = step.domain[3];
  const int64_t bytes = tensor::SizeBytes(recurrent.type, 1);
  loops.form.is_narrow = AreNarrow(step, loops);
  KernelSequence sequence;
  const int64_t weights = directions * recurrent.gates() * hidden * hidden;
  sequence.scratch_bytes[kTurnedWeights] = weights * bytes;
  sequence.scratch_bytes[kHiddenStates] = directions * batch * hidden * bytes;
  if (recurrent.kind == Recurrent::Kind::kLstm) {
    sequence.scratch_bytes[kCellStates] = directions * batch * hidden * bytes;
  }
  if (batch == 0) return sequence;
  loops.given = {weights, batch, time, 0, 0};
  sequence.launches.push_back({.kernel = kTurnWeights, .loops = loops});
  // Rounds of an item in one time step: over the states for each of its hidden units, and once more
  // where there are two products.
  const int64_t units = (hidden + kRecurrentGroupSize - 1) / kRecurrentGroupSize;
  const int64_t rounds = 2 * units * (hidden + 4) + 1;
  const int64_t most_steps = std::max<int64_t>(1, capabilities.most_rounds / rounds);
  loops.given[kRecurrentItems] = directions * batch;
  int64_t first = 0;
  // Without time steps too, to hand on the states.
  do {
    const int64_t end = first + std::min(most_steps, time - first);
    loops.given[kFirstStep] = first;
    loops.given[kEndStep] = end;
    sequence.launches.push_back({.kernel = kRecur, .loops = loops});
    first = end;
  } while (first < time);
  return sequence;
}

}  // namespace onnxifi::codegen
