// SPDX-License-Identifier: Apache-2.0
//
// BufferUses: counts and sums of step numbers per buffer, so that a change costs what the step has
// views, whatever else uses its buffers.

#include "backends/core/program/buffer_uses.h"

#include <algorithm>

namespace onnxifi::program {
namespace {

// Calls `visit` once for every buffer that the views are of.
template <typename Visit>
void ForEachBuffer(const std::vector<View>& views, Visit&& visit) {
  for (size_t k = 0; k < views.size(); ++k) {
    const BufferId buffer = views[k].buffer;
    const auto is_same = [buffer](const View& view) { return view.buffer == buffer; };
    const auto end = views.begin() + static_cast<std::ptrdiff_t>(k);
    if (buffer != kNoBuffer && std::none_of(views.begin(), end, is_same)) visit(buffer);
  }
}

}  // namespace

void BufferUses::Steps::Add(int number, int sign) {
  count += sign;
  sum += int64_t{sign} * number;
}

int BufferUses::Steps::Only() const { return count == 1 ? static_cast<int>(sum) : kNoStep; }

BufferUses::BufferUses(const Program& program) : uses_(program.buffers.size()) {
  for (const Port& port : program.outputs) uses_[port.buffer].is_output = true;
  for (size_t s = 0; s < program.steps.size(); ++s) Add(static_cast<int>(s), program.steps[s]);
}

void BufferUses::Count(int number, const Step& step, int sign) {
  ForEachBuffer(step.writes, [&](BufferId id) { uses_[id].writers.Add(number, sign); });
  ForEachBuffer(step.reads, [&](BufferId id) { uses_[id].readers.Add(number, sign); });
}

void BufferUses::Add(int number, const Step& step) {
  Count(number, step, 1);
  for (const View& write : step.writes) {
    uses_[write.buffer].last_writer = std::max(uses_[write.buffer].last_writer, number);
  }
}

void BufferUses::Remove(int number, const Step& step) { Count(number, step, -1); }

bool BufferUses::IsOutput(BufferId buffer) const { return uses_[buffer].is_output; }

int BufferUses::OnlyWriter(BufferId buffer) const {
  return buffer == kNoBuffer ? kNoStep : uses_[buffer].writers.Only();
}

int BufferUses::OnlyReader(BufferId buffer) const {
  return buffer == kNoBuffer ? kNoStep : uses_[buffer].readers.Only();
}

bool BufferUses::ReadsWhatIsWrittenAfter(int number, const Step& step) const {
  return std::any_of(step.reads.begin(), step.reads.end(), [&](const View& read) {
    return read.buffer != kNoBuffer && uses_[read.buffer].last_writer > number;
  });
}

}  // namespace onnxifi::program
