// SPDX-License-Identifier: Apache-2.0
//
// Sole consumer: the one step that reads what another writes, so that one kernel may compute both.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_SOLE_CONSUMER_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_SOLE_CONSUMER_H_

#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/program.h"

namespace onnxifi::program {

// The step, somewhere behind `number`, that alone reads the temporary which step `number` alone
// writes and which is all that this writes; with its read 0 and no other. kNoStep if there is none,
// and where execution runs either of them.
int FindSoleConsumer(const Program& program, const BufferUses& uses, int number);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_SOLE_CONSUMER_H_
