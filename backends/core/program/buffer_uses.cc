// SPDX-License-Identifier: Apache-2.0
//
// BufferUses: ordered numbers of steps per buffer; a change costs what the step has views, whatever
// else uses its buffers.

#include "backends/core/program/buffer_uses.h"

#include <algorithm>
#include <utility>

namespace onnxifi::program {
namespace {

int Only(const std::set<int>& steps) {
  return steps.size() == 1 ? *steps.begin() : BufferUses::kNoStep;
}

}  // namespace

BufferUses::BufferUses(const Program& program) : uses_(program.buffers.size()) {
  for (const Port& port : program.outputs) uses_[port.buffer].is_output = true;
  for (size_t s = 0; s < program.steps.size(); ++s) Add(static_cast<int>(s), program.steps[s]);
}

BufferUses::Uses& BufferUses::Grown(BufferId buffer) {
  if (static_cast<size_t>(buffer) >= uses_.size()) uses_.resize(static_cast<size_t>(buffer) + 1);
  return uses_[buffer];
}

void BufferUses::Add(int number, const Step& step) {
  for (const View& write : step.writes) {
    if (write.buffer == kNoBuffer) continue;
    Uses& uses = Grown(write.buffer);
    uses.writers.insert(number);
    uses.last_writer = std::max(uses.last_writer, number);
  }
  for (const View& read : step.reads) {
    if (read.buffer != kNoBuffer) Grown(read.buffer).readers.insert(number);
  }
}

void BufferUses::Remove(int number, const Step& step) {
  for (const View& write : step.writes) {
    if (write.buffer != kNoBuffer) uses_[write.buffer].writers.erase(number);
  }
  for (const View& read : step.reads) {
    if (read.buffer != kNoBuffer) uses_[read.buffer].readers.erase(number);
  }
}

bool BufferUses::IsOutput(BufferId buffer) const { return uses_[buffer].is_output; }

std::set<int> BufferUses::StepsWith(BufferId buffer) const {
  std::set<int> steps = uses_[buffer].writers;
  steps.insert(uses_[buffer].readers.begin(), uses_[buffer].readers.end());
  return steps;
}

int BufferUses::CountOf(BufferId buffer) const {
  return static_cast<int>(uses_[buffer].writers.size() + uses_[buffer].readers.size());
}

int BufferUses::OnlyWriter(BufferId buffer) const {
  return buffer == kNoBuffer ? kNoStep : Only(uses_[buffer].writers);
}

int BufferUses::OnlyReader(BufferId buffer) const {
  return buffer == kNoBuffer ? kNoStep : Only(uses_[buffer].readers);
}

bool BufferUses::ReadsWhatIsWrittenAfter(int number, const Step& step) const {
  return std::any_of(step.reads.begin(), step.reads.end(), [&](const View& read) {
    return read.buffer != kNoBuffer && uses_[read.buffer].last_writer > number;
  });
}

void JoinSteps(Program& program, BufferUses& uses, int producer, int consumer, Step joined) {
  Step& before = program.steps[producer];
  Step& place = program.steps[consumer];
  uses.Remove(producer, before);
  uses.Remove(consumer, place);
  place = std::move(joined);
  uses.Add(consumer, place);
  before.reads.clear();
  before.writes.clear();
}

}  // namespace onnxifi::program
