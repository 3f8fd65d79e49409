// SPDX-License-Identifier: Apache-2.0
//
// FindSoleConsumer, and OrderFusableSteps, which places a step right before its sole consumer.

#include "backends/core/program/sole_consumer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/core/program/passes.h"

namespace onnxifi::program {

int FindSoleConsumer(const Program& program, const BufferUses& uses, int number) {
  const Step& step = program.steps[number];
  if (IsRunByExecution(step) || step.writes.size() != 1) return BufferUses::kNoStep;
  const BufferId buffer = step.writes[0].buffer;
  if (buffer == kNoBuffer || program.buffers[buffer].kind != Buffer::Kind::kTemporary ||
      uses.IsOutput(buffer) || uses.OnlyWriter(buffer) != number) {
    return BufferUses::kNoStep;
  }
  const int reader = uses.OnlyReader(buffer);
  if (reader <= number || IsRunByExecution(program.steps[reader])) return BufferUses::kNoStep;
  const std::vector<View>& reads = program.steps[reader].reads;
  const auto count = std::ranges::count(reads, buffer, &View::buffer);
  return count == 1 && reads[0].buffer == buffer ? reader : BufferUses::kNoStep;
}

void OrderFusableSteps(Program& program, const Joins& joins) {
  const BufferUses uses(program);
  const auto count = static_cast<int>(program.steps.size());
  // By reader: the step that goes before it. A step that waits for its reader reads what was there
  // before itself, so that it finds the same later.
  std::vector<int> before(program.steps.size(), BufferUses::kNoStep);
  std::vector<bool> waits(program.steps.size(), false);
  for (int number = 0; number < count; ++number) {
    const Step& step = program.steps[number];
    const int reader = FindSoleConsumer(program, uses, number);
    if (reader == BufferUses::kNoStep || uses.ReadsWhatIsWrittenAfter(number, step) ||
        !joins(program, step, program.steps[reader])) {
      continue;
    }
    before[reader] = number;
    waits[number] = true;
  }
  std::vector<Step> steps;
  steps.reserve(program.steps.size());
  std::vector<int> chain;
  for (int number = 0; number < count; ++number) {
    if (waits[number]) continue;
    chain.clear();
    for (int at = number; at != BufferUses::kNoStep; at = before[at]) chain.push_back(at);
    for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
      steps.push_back(std::move(program.steps[*at]));
    }
  }
  program.steps = std::move(steps);
}

}  // namespace onnxifi::program
