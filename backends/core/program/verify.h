// SPDX-License-Identifier: Apache-2.0
//
// Verify: whether a program is what its data structures promise. Run between passes in debug builds
// and tests, so that the pass that broke a program is the one that is blamed.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_VERIFY_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_VERIFY_H_

#include "backends/core/base/status.h"
#include "backends/core/program/program.h"

namespace onnxifi::program {

// Ok, or INTERNAL_ERROR with a sentence naming the step and what is wrong with it. Checks: buffers
// and constants that are named exist; views have the rank their family gives them and the buffer's
// type; writing views have no guards and write temporaries; expressions have operands of the types
// their operation takes, and leaves that their place provides; roots have the types of their
// writes; states agree with their init, update and merge; attributes have one entry per spatial
// axis. Also of sub-programs.
base::Status Verify(const Program& program);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_VERIFY_H_
