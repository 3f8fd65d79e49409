// SPDX-License-Identifier: Apache-2.0
//
// RemoveDeadSteps: one walk from the end. Shape computations die here, once their values have
// become extents.

#include <algorithm>

#include "backends/core/program/passes.h"

namespace onnxifi::program {

void RemoveDeadSteps(Program& program) {
  std::vector<bool> is_read(program.buffers.size(), false);
  for (const Port& output : program.outputs) is_read[output.buffer] = true;
  std::vector<bool> is_live(program.steps.size(), false);
  for (size_t s = program.steps.size(); s-- > 0;) {
    const Step& step = program.steps[s];
    // They give symbols their numbers, so they stay.
    is_live[s] = IsRunByExecution(step) ||
                 std::any_of(step.writes.begin(), step.writes.end(), [&](const View& write) {
                   return write.buffer != kNoBuffer && is_read[write.buffer];
                 });
    if (!is_live[s]) continue;
    for (const View& read : step.reads) {
      if (read.buffer != kNoBuffer) is_read[read.buffer] = true;
    }
  }
  std::vector<Step> kept;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    if (is_live[s]) kept.push_back(std::move(program.steps[s]));
  }
  program.steps = std::move(kept);
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.kind == Buffer::Kind::kConstant && !is_read[b]) program.constants[buffer.index] = {};
  }
}

}  // namespace onnxifi::program
