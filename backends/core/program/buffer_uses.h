// SPDX-License-Identifier: Apache-2.0
//
// BufferUses: which steps write and read each buffer, kept up to date while a pass puts steps in
// the place of others, so that a pass never walks the program to find a reader or a writer.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_BUFFER_USES_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_BUFFER_USES_H_

#include <set>
#include <vector>

#include "backends/core/program/program.h"

namespace onnxifi::program {

// Steps are numbered as in the program; a pass that removes some clears them and lets
// RemoveDeadSteps close the gaps. A step counts once per buffer, however many views it has of it.
class BufferUses {
 public:
  static constexpr int kNoStep = -1;

  explicit BufferUses(const Program& program);

  // A step that comes to, or leaves, place `number`. One that comes may have new buffers.
  void Add(int number, const Step& step);
  void Remove(int number, const Step& step);

  bool IsOutput(BufferId buffer) const;
  // The steps that write or read `buffer`, in order.
  std::set<int> StepsWith(BufferId buffer) const;
  // How many steps write it, and how many read it, in all.
  int CountOf(BufferId buffer) const;
  // The step that alone writes or reads `buffer`; kNoStep if there is none or more than one, and
  // for kNoBuffer.
  int OnlyWriter(BufferId buffer) const;
  int OnlyReader(BufferId buffer) const;
  // Whether `step`, which is at `number`, would find other values in what it reads at a later
  // place: some buffer that it reads is, or was before it was removed, written behind `number`.
  bool ReadsWhatIsWrittenAfter(int number, const Step& step) const;

 private:
  struct Uses {
    std::set<int> writers;
    std::set<int> readers;
    int last_writer = kNoStep;  // removed ones too
    bool is_output = false;
  };

  Uses& Grown(BufferId buffer);

  std::vector<Uses> uses_;  // by BufferId
};

// Puts `joined`, which does the work of both, in the place of step `consumer`. Step `producer`
// loses its views and goes with the dead steps.
void JoinSteps(Program& program, BufferUses& uses, int producer, int consumer, Step joined);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_BUFFER_USES_H_
